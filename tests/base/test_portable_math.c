/* Functions of reals give the same bits on every machine, and the right ones. */
#include "base/portable_math.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"

/* Found with 200 bits. In the lines that name it, glibc 2.36 has another last bit on x86-64. */
static void same_bits(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double (*function)(double), x, wanted;
    } cases[] = {
        {"exp", portable_exp, 0x1.8p-1, 0x1.0ef9db467dcf8p+1},
        {"exp", portable_exp, -0x1.23456789abcdep+3, 0x1.d35219873e6ep-14},
        {"exp", portable_exp, 0x1.62e42fefa39efp+9, 0x1.fffffffffff2ap+1023},
        {"exp", portable_exp, -0x1.74p+9, 0x1p-1073},
        {"exp2", portable_exp2, 0x1p-2, 0x1.306fe0a31b715p+0},
        {"exp2", portable_exp2, -0x1.4p+3, 0x1p-10},
        {"expm1", portable_expm1, -0x1.5p-40, -0x1.4fffffffff238p-40},
        {"expm1, glibc", portable_expm1, 0x1.f2b8f9a5bcb4ap-1, 0x1.a610f35d8f51dp+0},
        {"log", portable_log, 0x1.fffffffffffffp-1, -0x1p-53},
        {"log", portable_log, 0x1.8p+1, 0x1.193ea7aad030bp+0},
        {"log", portable_log, 0x1p-1074, -0x1.74385446d71c3p+9},
        {"log2", portable_log2, 0x1p-30, -0x1.ep+4},
        {"log2", portable_log2, 0x1.2p+5, 0x1.4ae00d1cfdeb4p+2},
        {"log10", portable_log10, 0x1.f4p+9, 0x1.8p+1},
        {"log10", portable_log10, 0x1.9p+4, 0x1.65df657b04301p+0},
        {"log1p", portable_log1p, 0x1.8p-1, 0x1.1e85f5e7040dp-1},
        {"cbrt, glibc", portable_cbrt, 0x1.bp+4, 0x1.8p+1},
        {"cbrt", portable_cbrt, -0x1.9p+1, -0x1.764636974629cp+0},
        {"cos", portable_cos, 0x1p+0, 0x1.14a280fb5068cp-1},
        {"cos", portable_cos, 0x1.81p+1, -0x1.fb6cd78c2fbecp-1},
        {"cos", portable_cos, 0x1.2d97c7f3321d2p+2, -0x1.a79394c9e8a0ap-53},
        {"erfc", portable_erfc, 0x1p-1, 0x1.eb02147ce245cp-2},
        {"erfc", portable_erfc, 0x1.4p+3, 0x1.7d8a7f2a8a2dp-149},
        {"lgamma", portable_lgamma, 0x1p-1, 0x1.250d048e7a1bdp-1},
        {"lgamma", portable_lgamma, 0x1.86a08p+16, 0x1.00a9d7726c1dep+20},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        double value = cases[i].function(cases[i].x);
        if (value != cases[i].wanted)
            fail_msg("%s of %a: %a, not %a", cases[i].name, cases[i].x, value, cases[i].wanted);
    }
    assert_true(portable_pow(0x1.ffffffff1p-1, 1e5) == 0x1.fffe91ca82f72p-1);
    assert_true(portable_pow(10, -1) == 0.1);
    assert_true(portable_pow(10, 22) == 1e22);
    assert_true(portable_pow(-1.5, 3) == -3.375);
    /* hypot: ...b3 on x86-64, ...b4 on aarch64 (glibc 2.36). */
    assert_true(portable_hypot(0x1.142d72p+13, 0x1.fc716p+9) == 0x1.15ffed9915cb3p+13);
    assert_true(portable_hypot(3, -4) == 5);
}

/* Nothing is far off anywhere. */
static void as_libm(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double (*own)(double), (*libm)(double), from, to;
    } cases[] = {
        {"exp", portable_exp, exp, -700, 700},      {"exp2", portable_exp2, exp2, -1000, 1000},
        {"expm1", portable_expm1, expm1, -45, 45},  {"log", portable_log, log, 1e-9, 5},
        {"log2", portable_log2, log2, 1e-9, 5},     {"log10", portable_log10, log10, 1e-9, 5},
        {"log1p", portable_log1p, log1p, -0.99, 3}, {"cbrt", portable_cbrt, cbrt, -9, 9},
        {"cos", portable_cos, cos, -7, 7},          {"erfc", portable_erfc, erfc, -6, 20},
        {"lgamma", portable_lgamma, lgamma, 3, 60}, {"erfc", portable_erfc, erfc, 0, 2},
    };
    enum { STEPS = 1000 };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        for (int k = 0; k <= STEPS; k++) {
            double x = cases[i].from + (cases[i].to - cases[i].from) * k / STEPS;
            double own = cases[i].own(x), libm = cases[i].libm(x);
            if (fabs(own - libm) > 1e-13 * fabs(libm) + 1e-300)
                fail_msg("%s of %g: %.17g, by libm %.17g", cases[i].name, x, own, libm);
        }
}

static void special_values(void **state)
{
    (void)state;
    static double (*const all[])(double) = {portable_exp,   portable_exp2,  portable_expm1,
                                            portable_log,   portable_log2,  portable_log10,
                                            portable_log1p, portable_cbrt,  portable_cos,
                                            portable_erfc,  portable_lgamma};
    for (size_t i = 0; i < COUNT_OF(all); i++)
        assert_true(isnan(all[i](NAN)));
    assert_true(isnan(portable_hypot(NAN, 1)) && isinf(portable_hypot(1, -INFINITY)));
    assert_true(portable_hypot(0, 0) == 0);
    assert_true(portable_exp(INFINITY) == INFINITY && portable_exp(-INFINITY) == 0);
    assert_true(portable_exp(710) == INFINITY && portable_exp(-746) == 0 && portable_exp(0) == 1);
    assert_true(portable_exp2(1e9) == INFINITY && portable_exp2(-1e9) == 0);
    assert_true(portable_expm1(-INFINITY) == -1 && portable_expm1(INFINITY) == INFINITY);
    assert_true(portable_expm1(1e-20) == 1e-20 && portable_log1p(1e-20) == 1e-20);
    assert_true(portable_log(0) == -INFINITY && portable_log(INFINITY) == INFINITY);
    assert_true(isnan(portable_log(-1)) && portable_log(1) == 0);
    assert_true(portable_log1p(-1) == -INFINITY && isnan(portable_log1p(-2)));
    assert_true(portable_pow(0, 0) == 1 && portable_pow(NAN, 0) == 1 && portable_pow(1, NAN) == 1);
    assert_true(portable_pow(0, 3) == 0 && portable_pow(0, -2) == INFINITY);
    assert_true(portable_pow(0.5, INFINITY) == 0 && portable_pow(2, 1e300) == INFINITY);
    assert_true(portable_pow(INFINITY, -1) == 0 && portable_pow(-INFINITY, 3) == -INFINITY);
    assert_true(isnan(portable_pow(-2, 0.5)) && isnan(portable_pow(2, NAN)));
    assert_true(portable_cbrt(0) == 0 && portable_cbrt(-INFINITY) == -INFINITY);
    assert_true(portable_erfc(INFINITY) == 0 && portable_erfc(-INFINITY) == 2);
    assert_true(portable_erfc(0) == 1);
    assert_true(portable_lgamma(0) == INFINITY && portable_lgamma(-1.5) == INFINITY);
    assert_true(isnan(portable_cos(INFINITY)));
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
        cmocka_unit_test(as_libm),
        cmocka_unit_test(special_values),
        cmocka_unit_test(nothing_is_fused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
