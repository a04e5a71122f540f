/* Loads of shared memory through the stand-in for the driver: what was asked arrives. */
#include "opened.h"

#include <errno.h>
#include <stdlib.h>

#include "device/shared_load.h"

static void every_width(void **state)
{
    (void)state;
    for (uint32_t width = 4; width <= 16; width *= 2)
        for (uint32_t warps = 1; warps <= 32; warps *= 2) {
            const struct device_shared_load load = {warps, 8, 2 * width, width, 64};
            struct device_shared_load_answer answer;
            struct err err = {0};
            assert_int_equal(device_load_shared(device, &load, &answer, &err), 0);
            /* Of the stand-in: 20 cycles, the stride and the width. */
            assert_int_equal(answer.cycles, (20 + 3 * width) * 64);
        }
}

static void bad_requests(void **state)
{
    (void)state;
    const struct device_shared_load good = {32, 32, 16, 16, 16};
    struct device_shared_load bad[] = {good, good, good, good, good, good, good};
    struct device_shared_load_answer answer;
    struct err err = {0};
    bad[0].warps = 33;
    bad[1].lanes = 0;
    bad[2].lanes = 33;
    bad[3].lane_stride_bytes = 8;
    bad[4].width_bytes = 2;
    bad[5].loads = 8;
    bad[6].lane_stride_bytes = 1 << 16;
    assert_int_equal(device_load_shared(device, &good, &answer, &err), 0);
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_int_equal(device_load_shared(device, &bad[i], &answer, &err), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_width, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bad_requests, set_up, tear_down),
    };
    unsetenv("CUDA_VISIBLE_DEVICES");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
