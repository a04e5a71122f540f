/* Sums of errors are the same on every machine: arguments for which hypot of glibc is not. */
#include "base/quadrature.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void same_bits(void **state)
{
    (void)state;
    /* hypot: 0x1.15ffed9915cb3p+13 on x86-64, ...4 on aarch64 (glibc 2.36). */
    assert_true(quadrature(0x1.142d72p+13, 0x1.fc716p+9) == 0x1.15ffed9915cb4p+13);
    assert_true(quadrature(3, 4) == 5);
    assert_true(isnan(quadrature(NAN, 1)));
}

/* a * b + c with one rounding is -2^-60 here, with two it is 0. */
static void nothing_is_fused(void **state)
{
    (void)state;
    volatile double a = 1 + 0x1p-30, b = 1 - 0x1p-30, c = -1;
    assert_true(a * b + c == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits),
        cmocka_unit_test(nothing_is_fused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
