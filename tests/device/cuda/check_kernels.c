/* The check of the SMs on a real GPU: all hashes are the host's, a program with another seed has
 * another hash, and warp w runs on sub-core w mod 4. Skipped, and counted as such, where there is
 * no GPU. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "device/check_program.h"
#include "device/cuda/driver.h"
#include "device/cuda/kernels.h"
#include "real_gpu.h"

enum { TARGET_MS = 20 };

static struct device *device;
static struct driver driver;

#define OK(call) real_gpu_ok(&driver, driver.call, #call)

static void all_units(void **state)
{
    (void)state;
    for (int unit = 0; unit < DEVICE_UNIT_COUNT; unit++) {
        const struct device_check check = {
            .unit = (enum device_unit)unit, .target_ms = TARGET_MS, .seed = 12345};
        struct device_check_answer answer;
        struct err err = {0};
        int rc = device_check_unit(device, &check, &answer, &err);
        if (rc == -ENOTSUP) {
            printf("%s: %s\n", device_unit_name(check.unit), err.text);
            continue;
        }
        if (rc)
            fail_msg("%s: %s", device_unit_name(check.unit), err.text);
        uint64_t count = 0, wrong = 0, missing = 0;
        for (size_t i = 0; i < answer.place_count; i++) {
            count += answer.places[i].count;
            wrong += answer.places[i].wrong;
            missing += !answer.places[i].count;
        }
        printf("check of %s: %llu hashes, %llu wrong, %llu places without, %.1f operations per "
               "cycle and SM, %.2f ms\n",
               device_unit_name(check.unit), (unsigned long long)count, (unsigned long long)wrong,
               (unsigned long long)missing, (double)answer.operations / (double)answer.cycles,
               (double)answer.elapsed_ns / 1e6);
        assert_true(count > 0);
        assert_int_equal(wrong, 0);
        assert_int_equal(missing, 0);
        device_check_answer_fini(&answer);
    }
}

/* How long four warps take that have a bit in the mask, in cycles. */
static uint64_t masked_cycles(CUfunction function, CUstream stream, uint32_t mask)
{
    struct kernel_check_result result = {0};
    struct kernel_check check = {.seed = 1, .periods = 200, .warp_mask = mask};
    void *parameters[] = {&check};
    CUdeviceptr memory;
    uint64_t longest = 0;
    OK(cuMemAlloc(&memory, sizeof result));
    check.results = memory;
    OK(cuMemcpyHtoDAsync(memory, &result, sizeof result, stream));
    for (int i = 0; i < 3; i++)
        OK(cuLaunchKernel(function, 1, 1, 1, 1024, 1, 1, 0, stream, parameters, NULL));
    OK(cuMemcpyDtoHAsync(&result, memory, sizeof result, stream));
    OK(cuStreamSynchronize(stream));
    driver.cuMemFree(memory);
    for (uint32_t w = 0; w < KERNEL_CHECK_WARPS; w++)
        longest = result.cycles[w] > longest ? result.cycles[w] : longest;
    return longest;
}

/* Four warps on four sub-cores do not disturb each other; four on one sub-core take four times as
 * long. */
static void sub_cores(void **state)
{
    (void)state;
    CUmodule module;
    CUfunction function;
    CUstream stream;
    OK(cuModuleLoadData(&module, real_gpu_kernels(&driver, 0, CUDA_KERNELS_CHECK)));
    OK(cuModuleGetFunction(&function, module, "check_fp32"));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    uint64_t one = masked_cycles(function, stream, 0x1);
    uint64_t apart = masked_cycles(function, stream, 0xf);
    uint64_t together = masked_cycles(function, stream, 0x1111);
    printf("one warp %llu cycles, warps 0 to 3 %llu, warps 0, 4, 8 and 12 %llu\n",
           (unsigned long long)one, (unsigned long long)apart, (unsigned long long)together);
    assert_true((double)apart < 1.1 * (double)one);
    assert_true((double)together > 2 * (double)apart);
    driver.cuModuleUnload(module);
}

static int all_tests(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_units), cmocka_unit_test(sub_cores)};
    struct err err = {0};
    if (driver_load(&driver, &err)) {
        printf("%s\n", err.text);
        return 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return real_gpu_run(&device, all_tests);
}
