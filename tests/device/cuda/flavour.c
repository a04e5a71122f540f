/* Which flavour a GPU runs, in a program with kernels by CUDA 13.0 (sm_75, sm_80) and 11.8
 * (sm_60, sm_75, sm_90): the build gives this test its own table of flavours, and the fat binaries
 * are empty. */
#include "device/cuda/flavour.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../check.h"
#include "device/source.h"

#define FATBIN(name, file, toolkit)                                                                \
    extern const unsigned char cuda_##file##_##toolkit[];                                          \
    const unsigned char cuda_##file##_##toolkit[1] = {0};
CUDA_KERNELS(FATBIN, 13000)
CUDA_KERNELS(FATBIN, 11080)

static void newest_that_fits(void **state)
{
    (void)state;
    static const struct {
        int capability, driver;
        const char *asked;
        int toolkit; /* 0: none */
    } cases[] = {
        {75, 13000, NULL, 13000},   {80, 13000, NULL, 13000},  {80, 13000, "", 13000},
        {86, 13000, NULL, 13000},   {90, 13000, NULL, 11080},  /* machine code rather than PTX of a
                                                                  newer toolkit */
        {90, 13000, "13.0", 13000}, {120, 13000, NULL, 13000}, /* both as PTX */
        {120, 12080, NULL, 11080},  {120, 11070, NULL, 0}, /* a driver compiles no PTX that is newer
                                                              than itself */
        {90, 11000, NULL, 11080},   {61, 13000, NULL, 11080},  {61, 13000, "13.0", 0},
        {80, 12080, NULL, 11080},   {80, 12080, "13.0", 0},    {80, 11070, NULL, 0},
        {35, 13000, NULL, 0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct flavour *flavour = NULL;
        struct err err = {0};
        if (cases[i].asked)
            setenv("GPUMEMTOPO_CUDA_TOOLKIT", cases[i].asked, 1);
        assert_int_equal(device_cuda_check(&err), 0);
        int rc = flavour_choose(cases[i].capability, cases[i].driver, &flavour, &err);
        if (rc != (cases[i].toolkit ? 0 : -ENOTSUP) ||
            (flavour ? flavour->toolkit : 0) != cases[i].toolkit)
            fail_msg("case %zu: %d, CUDA %d: %s", i, rc, flavour ? flavour->toolkit : 0, err.text);
        unsetenv("GPUMEMTOPO_CUDA_TOOLKIT");
    }
}

static void unknown_toolkit_is_refused(void **state)
{
    (void)state;
    struct err err = {0};
    setenv("GPUMEMTOPO_CUDA_TOOLKIT", "12.0", 1);
    assert_int_equal(device_cuda_check(&err), -EINVAL);
    assert_non_null(strstr(err.text, "expected 13.0 or 11.8, or unset it"));
    unsetenv("GPUMEMTOPO_CUDA_TOOLKIT");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(newest_that_fits),
                                       cmocka_unit_test(unknown_toolkit_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
