/* The driver's carve-outs on an H200, as Nsight Compute told them (launch__shared_mem_config_size).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "predict/machine.h"

enum { SIZES = 12 };
static const uint64_t sizes[SIZES] = {0,    512,  1024,  2048,  3072,  4096,
                                      6144, 8192, 12288, 16384, 24576, 49152};

/* KiB, by the threads of a block and its shared memory. */
static const struct {
    uint32_t threads;
    uint64_t kib[SIZES];
} seen[] = {
    {16, {32, 64, 64, 100, 132, 164, 228, 228, 228, 228, 228, 196}},
    {32, {32, 64, 64, 100, 132, 164, 228, 228, 228, 228, 228, 196}},
    {64, {32, 64, 64, 100, 132, 164, 228, 228, 228, 228, 228, 196}},
    {96, {32, 64, 64, 100, 132, 132, 164, 196, 228, 228, 228, 196}},
    {128, {32, 64, 64, 100, 132, 132, 132, 164, 228, 228, 228, 196}},
    {192, {32, 32, 64, 64, 100, 100, 132, 132, 132, 196, 228, 196}},
    {256, {32, 32, 32, 64, 64, 100, 132, 132, 132, 164, 228, 196}},
    {384, {32, 16, 32, 32, 64, 64, 100, 100, 132, 132, 132, 196}},
    {512, {16, 16, 16, 32, 32, 64, 64, 100, 132, 132, 132, 196}},
    {768, {8, 8, 8, 16, 16, 32, 32, 64, 64, 100, 100, 132}},
    {1024, {8, 8, 8, 8, 8, 16, 16, 32, 32, 64, 64, 100}},
};

static void as_the_driver_chose(void **state)
{
    (void)state;
    const struct sm_limits limits = {.warps_max = 64, .blocks_max = 32, .shared_bytes = 233472};
    for (size_t i = 0; i < COUNT_OF(seen); i++)
        for (size_t k = 0; k < SIZES; k++)
            assert_int_equal(
                machine_hopper_carveout(&limits, (seen[i].threads + 31) / 32, sizes[k]),
                seen[i].kib[k] << 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_the_driver_chose)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
