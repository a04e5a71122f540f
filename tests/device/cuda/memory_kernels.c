/* The kernels of the memory test on a real GPU: what they wrote reads back right, and bits that are
 * changed in between are found, all of them and nothing else. Skipped, and counted as such, where
 * there is no GPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "device/cuda/driver.h"
#include "device/cuda/kernels.h"

enum { SKIPPED = 77, BYTES = 64 << 20, BLOCKS = 64, THREADS = 1024 };

extern const unsigned char cuda_memory_fatbin[];

static struct driver driver;
static CUmodule module;
static CUstream stream;
static CUdeviceptr memory, result;

static void ok(CUresult code, const char *what)
{
    struct err err = {0};
    if (driver_check(&driver, code, what, &err))
        fail_msg("%s", err.text);
}
#define OK(call) ok(driver.call, #call)

static void launch(const char *name)
{
    struct kernel_region region = {.base = memory,
                                   .offset = UINT64_C(40) << 30,
                                   .count = BYTES / 16,
                                   .seed = UINT64_C(0x123456789abcdef),
                                   .result = result};
    void *parameters[] = {&region};
    CUfunction function;
    OK(cuModuleGetFunction(&function, module, name));
    OK(cuLaunchKernel(function, BLOCKS, 1, 1, THREADS, 1, 1, 0, stream, parameters, NULL));
}

static struct kernel_region_result check(const char *name)
{
    struct kernel_region_result found = {.wrong_offset = UINT64_MAX};
    OK(cuMemcpyHtoDAsync(result, &found, sizeof found, stream));
    launch(name);
    OK(cuMemcpyDtoHAsync(&found, result, sizeof found, stream));
    OK(cuStreamSynchronize(stream));
    return found;
}

static void flip(uint64_t offset, uint64_t bits)
{
    uint64_t word;
    OK(cuMemcpyDtoHAsync(&word, memory + offset, sizeof word, stream));
    OK(cuStreamSynchronize(stream));
    word ^= bits;
    OK(cuMemcpyHtoDAsync(memory + offset, &word, sizeof word, stream));
    OK(cuStreamSynchronize(stream));
}

static void changed_bits_are_found(void **state)
{
    (void)state;
    static const char *const kernels[][2] = {{"memory_write_address", "memory_check_address"},
                                             {"memory_write_inverse", "memory_check_inverse"},
                                             {"memory_write_walking", "memory_check_walking"},
                                             {"memory_write_random", "memory_check_random"}};
    for (size_t p = 0; p < COUNT_OF(kernels); p++) {
        launch(kernels[p][0]);
        struct kernel_region_result found = check(kernels[p][1]);
        assert_int_equal(found.wrong_words, 0);
        flip(BYTES - 8, UINT64_C(1) << 63);
        flip(12345 * 8, 1);
        flip(12346 * 8, UINT64_C(1) << 17);
        found = check(kernels[p][1]);
        assert_int_equal(found.wrong_words, 3);
        assert_int_equal(found.wrong_offset, 12345 * 8);
        assert_true(found.wrong_bits == (UINT64_C(1) << 63 | UINT64_C(1) << 17 | 1));
        assert_int_equal(check(kernels[(p + 1) % COUNT_OF(kernels)][1]).wrong_words > 3, 1);
    }
}

/* The first half is written again, and only the second half is compared. */
static void halves_are_exchanged(void **state)
{
    (void)state;
    launch("memory_write_address");
    assert_int_equal(check("memory_exchange").wrong_words, 0);
    flip(0, 1);
    flip(BYTES / 2 - 8, 1);
    flip(BYTES - 8, UINT64_C(1) << 63);
    struct kernel_region_result found = check("memory_exchange");
    assert_int_equal(found.wrong_words, 1);
    assert_int_equal(found.wrong_offset, BYTES / 2 - 8);
    assert_int_equal(check("memory_check_address").wrong_words, 1);
}

/* A chase waits for each load: through memory that L2 holds, a load takes a hundred cycles at
 * least. */
static void loads_depend_on_each_other(void **state)
{
    (void)state;
    struct kernel_region_result found = {0};
    uint64_t region_bytes = 1 << 20;
    uint32_t loads = 4096;
    uint32_t round = 0, first = 0;
    void *parameters[] = {&memory, &region_bytes, &loads, &round, &first, &result};
    CUfunction function;
    launch("memory_write_address");
    OK(cuModuleGetFunction(&function, module, "memory_chase"));
    for (int i = 0; i < 2; i++)
        OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
    OK(cuMemcpyDtoHAsync(&found, result, sizeof found, stream));
    OK(cuStreamSynchronize(stream));
    double cycles = (double)found.cycles[0] / loads;
    print_message("a load in L2 takes %.0f cycles\n", cycles);
    assert_true(cycles > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changed_bits_are_found),
        cmocka_unit_test(halves_are_exchanged),
        cmocka_unit_test(loads_depend_on_each_other),
    };
    struct err err = {0};
    CUcontext context;
    CUdevice device;
    if (driver_load(&driver, &err)) {
        fprintf(stderr, "skipped: %s\n", err.text);
        return SKIPPED;
    }
    if (driver.cuDeviceGet(&device, 0) || driver.cuDevicePrimaryCtxRetain(&context, device) ||
        driver.cuCtxSetCurrent(context) || driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) ||
        driver.cuModuleLoadData(&module, cuda_memory_fatbin) || driver.cuMemAlloc(&memory, BYTES) ||
        driver.cuMemAlloc(&result, sizeof(struct kernel_region_result)))
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    driver.cuMemFree(memory);
    driver.cuMemFree(result);
    driver.cuDevicePrimaryCtxRelease(device);
    driver_unload(&driver);
    return failed;
}
