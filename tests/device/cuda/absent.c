/* Without driver or GPU the source says what is missing; skipped where there is a GPU. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "device/source.h"

enum { SKIPPED = 77 };

static void says_what_is_missing(void **state)
{
    (void)state;
    struct device_source *source = NULL;
    struct err err = {0};
    int rc = device_source_cuda(&source, &err);
    assert_true(rc == -ENODEV || rc == -ENOTSUP);
    assert_int_equal(err.code, rc);
    assert_null(source);
    if (rc == -ENOTSUP)
        assert_non_null(strstr(err.text, "without the CUDA backend"));
    else
        assert_true(strstr(err.text, "libcuda.so.1") || strstr(err.text, "no GPU") ||
                    strstr(err.text, "too old") || strstr(err.text, "CUDA_ERROR"));
}

static void may_be_asked_without_an_error_to_fill(void **state)
{
    (void)state;
    struct device_source *source = NULL;
    assert_true(device_source_cuda(&source, NULL) < 0);
    assert_null(source);
}

int main(void)
{
    struct device_source *source = NULL;
    if (device_source_cuda(&source, NULL) == 0) {
        device_source_destroy(source);
        return SKIPPED;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_what_is_missing),
        cmocka_unit_test(may_be_asked_without_an_error_to_fill),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
