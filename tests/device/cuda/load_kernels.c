/* The kernel of the sustained load on a real GPU: it counts what it does, computing and reading
 * reach a good part of what each reaches alone, and a load of two seconds gives samples. Skipped,
 * and counted as such, where there is no GPU. */
#include "../../check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/kernels.h"
#include "device/source.h"
#include "real_gpu.h"

enum { ROUNDS = 20000 };
static const uint64_t BYTES = UINT64_C(4) << 30;

static const char *const units[] = {"fma.f32", "mma.sync bf16", "wgmma bf16"};

static struct real_module gpu;
static int sms;

#define OK(call) real_gpu_ok(&gpu.driver, gpu.driver.call, #call)

/* One launch; the result is of it alone. */
static struct kernel_load_result run(uint32_t what, uint32_t rounds)
{
    struct kernel_load load = {.base = gpu.memory,
                               .chunks = BYTES / KERNEL_LOAD_CHUNK_BYTES,
                               .result = gpu.result,
                               .rounds = rounds,
                               .what = what};
    struct kernel_load_result found = {0};
    void *parameters[] = {&load};
    CUfunction function;
    OK(cuModuleGetFunction(&function, gpu.module, "load_both"));
    OK(cuMemsetD32Async(gpu.result, 0, sizeof found / 4, gpu.stream));
    OK(cuLaunchKernel(function, (unsigned)sms, 1, 1, KERNEL_LOAD_THREADS, 1, 1, 0, gpu.stream,
                      parameters, NULL));
    OK(cuMemcpyDtoHAsync(&found, gpu.result, sizeof found, gpu.stream));
    OK(cuStreamSynchronize(gpu.stream));
    return found;
}

static double rate_of(const struct kernel_load_result *found, uint64_t work)
{
    return found->elapsed_ns ? (double)work / (double)found->elapsed_ns : 0;
}

static void print(const char *what, const struct kernel_load_result *found)
{
    double per_sm = found->cycles ? (double)found->operations / (double)found->cycles / sms : 0;
    print_message("%s, %s: %.1f TFLOP/s (%.0f per cycle and SM), %.0f GB/s, %.0f MHz, %.2f ms\n",
                  what, units[found->unit], rate_of(found, found->operations) / 1e3, per_sm,
                  rate_of(found, found->bytes),
                  (double)found->cycles * 1e3 / (double)found->elapsed_ns,
                  (double)found->elapsed_ns / 1e6);
}

/* The work of a warp in a round follows from its instructions: 8 matrix products, or 64 FMAs. */
static void work_is_counted(void **state)
{
    (void)state;
    static const uint64_t per_warp[] = {2 * 32 * 64, 8 * 2 * 16 * 8 * 16,
                                        8 * 2 * 64 * 128 * 16 / 4};
    uint64_t warps = (KERNEL_LOAD_THREADS - KERNEL_LOAD_READERS) / 32;
    struct kernel_load_result found = run(KERNEL_LOAD_COMPUTES, 100);
    assert_true(found.operations == (uint64_t)sms * warps * 100 * per_warp[found.unit]);
    assert_int_equal(found.bytes, 0);
    found = run(KERNEL_LOAD_READS, 100);
    assert_true(found.bytes == (uint64_t)sms * 100 * KERNEL_LOAD_CHUNK_BYTES);
    assert_int_equal(found.operations, 0);
}

static void both_run_together(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) /* to leave the clock of an idle GPU */
        run(KERNEL_LOAD_COMPUTES, ROUNDS);
    struct kernel_load_result compute = run(KERNEL_LOAD_COMPUTES, ROUNDS);
    struct kernel_load_result read = run(KERNEL_LOAD_READS, ROUNDS);
    struct kernel_load_result both = run(KERNEL_LOAD_COMPUTES | KERNEL_LOAD_READS, ROUNDS);
    print("computes", &compute);
    print("reads", &read);
    print("both", &both);
    assert_true(rate_of(&both, both.operations) > 0.5 * rate_of(&compute, compute.operations));
    assert_true(rate_of(&both, both.bytes) > 0.5 * rate_of(&read, read.bytes));
}

static void a_load_has_samples(void **state)
{
    (void)state;
    const struct device_load load = {.duration_ms = 2000, .sample_ms = 100, .limit_ms = 60000};
    struct device_load_answer answer;
    struct device_source *source = NULL;
    struct device *device = NULL;
    struct err err = {0};
    assert_int_equal(device_source_cuda(&source, &err), 0);
    assert_int_equal(device_source_open(source, 0, &device, &err), 0);
    if (device_run_load(device, &load, &answer, &err))
        fail_msg("%s", err.text);
    for (size_t i = 0; i < answer.sample_count; i++) {
        const struct device_load_sample *s = &answer.samples[i];
        print_message(
            "%5.2f s %7.1f TFLOP %7.1f GB, %g MHz, %g W, %g J, %g C, memory %g C, %#llx\n",
            (double)s->at_ns / 1e9, (double)s->operations / 1e12, (double)s->bytes / 1e9, s->sm_mhz,
            s->power_w, s->energy_j, s->temperature_c, s->temperature_memory_c,
            (unsigned long long)s->throttle_reasons);
    }
    assert_true(answer.sample_count > 10);
    const struct device_load_sample *last = &answer.samples[answer.sample_count - 1];
    print_message("%s, ended by %d after %.2f s\n", units[answer.unit], (int)answer.end,
                  (double)last->at_ns / 1e9);
    assert_true(last->operations > 0 && last->bytes > 0 && last->cycles > 0);
    assert_true(answer.end != DEVICE_LOAD_DONE || last->at_ns >= UINT64_C(2000000000));
    device_load_answer_fini(&answer);
    device_destroy(device);
    device_source_destroy(source);
}

static int all_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_is_counted),
        cmocka_unit_test(both_run_together),
        cmocka_unit_test(a_load_has_samples),
    };
    if (gpu.driver.cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, gpu.device))
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return real_module_run(&gpu, CUDA_KERNELS_LOAD, BYTES, sizeof(struct kernel_load_result),
                           all_tests);
}
