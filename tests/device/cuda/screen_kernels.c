/* The screen for wrong results on a real GPU. All hashes are right, those of the host where it
 * knows them. In the armed build of the same kernels, which has the same digests while it changes
 * nothing, bits of operands and of results are made wrong, one at a time: how many are found, by
 * path. The table is that of docs/COVERAGE.md. Skipped, and counted as such, where there is no GPU.
 *
 * screen_kernels ARMED_FATBIN [MUTANTS] */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/rng.h"
#include "device/cuda/driver.h"
#include "device/cuda/kernels.h"
#include "device/screen_program.h"
#include "real_gpu.h"

enum { TARGET_MS = 20, MUTANTS = 100, FATBIN_BYTES_MAX = 64 << 20 };

/* The steps of a period, the words that a lane takes in a step and how their numbers grow, and the
 * operands of a step; 0: a thread reads them for others. */
static const struct path {
    uint32_t steps, results, result_stride, operands;
} paths[DEVICE_SCREEN_COUNT] = {
    [DEVICE_SCREEN_INT] = {64, 10, SCREEN_WORDS, 3},
    [DEVICE_SCREEN_FP32] = {64, 7, SCREEN_WORDS, 3},
    [DEVICE_SCREEN_FP64] = {64, 6, SCREEN_WORDS, 5},
    [DEVICE_SCREEN_HALF] = {64, 7, SCREEN_WORDS, 3},
    [DEVICE_SCREEN_SPECIAL] = {64, 9, SCREEN_WORDS, 2},
    [DEVICE_SCREEN_CONVERT] = {64, 11, SCREEN_WORDS, 2},
    [DEVICE_SCREEN_LANES] = {64, 10, SCREEN_WORDS, 2},
    [DEVICE_SCREEN_MMA_F16] = {8, 16, 16, 12},
    [DEVICE_SCREEN_MMA_BF16] = {8, 16, 16, 12},
    [DEVICE_SCREEN_MMA_TF32] = {8, 16, 16, 12},
    [DEVICE_SCREEN_MMA_INT8] = {8, 16, 16, 12},
    [DEVICE_SCREEN_MMA_FP64] = {8, 8, 8, 10},
    [DEVICE_SCREEN_WGMMA_F16] = {1, 64, 64, 0},
    [DEVICE_SCREEN_WGMMA_BF16] = {1, 64, 64, 0},
    [DEVICE_SCREEN_WGMMA_FP8] = {1, 64, 64, 0},
};

static struct device *device;
static struct driver driver;
static const char *armed_path;
static unsigned mutants = MUTANTS;
static uint64_t digests[DEVICE_SCREEN_COUNT]; /* 0: the GPU does not have the path */

#define OK(call) real_gpu_ok(&driver, driver.call, #call)

static void all_paths(void **state)
{
    (void)state;
    for (int path = 0; path < DEVICE_SCREEN_COUNT; path++) {
        const struct device_screen screen = {(enum device_screen_path)path, TARGET_MS};
        struct device_screen_answer answer;
        struct err err = {0};
        int rc = device_screen_path(device, &screen, &answer, &err);
        if (rc == -ENOTSUP) {
            printf("%s: %s\n", device_screen_names[path], err.text);
            continue;
        }
        if (rc)
            fail_msg("%s: %s", device_screen_names[path], err.text);
        uint64_t count = 0, wrong = 0, missing = 0;
        for (size_t i = 0; i < answer.place_count; i++) {
            count += answer.places[i].count;
            wrong += answer.places[i].wrong;
            missing += !answer.places[i].count;
        }
        printf("screen of %s: digest %06llu of code %06llu, %llu hashes, %llu wrong, %llu places "
               "without, %s, %u launches of %.3f ms\n",
               device_screen_names[path], (unsigned long long)answer.digest % 1000000,
               (unsigned long long)answer.code % 1000000, (unsigned long long)count,
               (unsigned long long)wrong, (unsigned long long)missing,
               device_screen_rows[path].by_host ? "as the host" : "host unknown", answer.launches,
               (double)answer.elapsed_ns / 1e6 / answer.launches);
        assert_int_equal(wrong, 0);
        assert_int_equal(missing, 0);
        uint64_t host = answer.digest;
        screen_host_hash(screen.path, &host);
        assert_true(answer.digest == host);
        digests[path] = answer.digest;
        device_screen_answer_fini(&answer);
    }
}

struct armed {
    CUmodule module;
    CUstream stream;
    CUfunction kernel;
    CUdeviceptr results, operand_flip;
    const struct path *path;
    uint32_t threads;
    struct kernel_check_result result;
    uint32_t launch;
};

/* Launches one block. Returns how many warps have another hash than the digest. */
static uint32_t wrong_warps(struct armed *armed, const struct kernel_screen_flip *of_operand,
                            const struct kernel_screen_flip *of_result, uint64_t digest)
{
    static const struct kernel_screen_flip none;
    struct kernel_screen screen = {.results = armed->results,
                                   .periods = SCREEN_PERIODS,
                                   .launch = armed->launch++,
                                   .flip = of_result ? *of_result : none};
    void *parameters[] = {&screen};
    uint32_t wrong = 0;
    OK(cuMemcpyHtoDAsync(armed->operand_flip, of_operand ? of_operand : &none, sizeof none,
                         armed->stream));
    OK(cuLaunchKernel(armed->kernel, 1, 1, 1, armed->threads, 1, 1, 0, armed->stream, parameters,
                      NULL));
    OK(cuMemcpyDtoHAsync(&armed->result, armed->results, sizeof armed->result, armed->stream));
    OK(cuStreamSynchronize(armed->stream));
    for (uint32_t w = 0; w < armed->threads / 32; w++)
        wrong += armed->result.hashes[w] != digest;
    return wrong;
}

static struct kernel_screen_flip drawn(const struct armed *armed, bool operand, struct rng *rng)
{
    const struct path *path = armed->path;
    uint32_t step = (uint32_t)rng_below(rng, path->steps), word;
    if (operand)
        word = step * SCREEN_OPERANDS + (uint32_t)rng_below(rng, path->operands);
    else
        word = step * path->result_stride + (uint32_t)rng_below(rng, path->results);
    return (struct kernel_screen_flip){.thread = (uint32_t)rng_below(rng, armed->threads),
                                       .word = word,
                                       .bits = UINT32_C(1) << rng_below(rng, 32),
                                       .chance = UINT32_MAX};
}

/* How many of the mutants of a path are found by one launch. */
static unsigned found_of(struct armed *armed, bool operand, uint64_t digest, struct rng *rng)
{
    unsigned found = 0;
    for (unsigned i = 0; i < mutants; i++) {
        const struct kernel_screen_flip flip = drawn(armed, operand, rng);
        found += wrong_warps(armed, operand ? &flip : NULL, operand ? NULL : &flip, digest) > 0;
    }
    return found;
}

/* Every word of one thread may be wrong with a probability; the chance that one launch finds it is
 * 1 - (1 - p)^n of n visits. */
static unsigned found_at(struct armed *armed, double p, uint64_t digest, struct rng *rng)
{
    unsigned found = 0;
    for (unsigned i = 0; i < mutants; i++) {
        const struct kernel_screen_flip flip = {.thread = (uint32_t)rng_below(rng, armed->threads),
                                                .word = KERNEL_SCREEN_EVERY_WORD,
                                                .bits = UINT32_C(1) << rng_below(rng, 32),
                                                .chance = (uint32_t)(p * UINT32_MAX)};
        found += wrong_warps(armed, NULL, &flip, digest) > 0;
    }
    return found;
}

static void coverage(void **state)
{
    (void)state;
    struct armed armed = {.launch = 1};
    struct rng rng;
    size_t bytes = 0;
    if (!armed_path) {
        printf("no armed build was given\n");
        skip();
    }
    FILE *file = fopen(armed_path, "rb");
    void *fatbin = mem_array(1, FATBIN_BYTES_MAX);
    assert_non_null(file);
    assert_true(fread(fatbin, 1, FATBIN_BYTES_MAX, file) > 0);
    fclose(file);
    rng_init(&rng, 1, "mutants");
    OK(cuModuleLoadData(&armed.module, fatbin));
    OK(cuModuleGetGlobal(&armed.operand_flip, &bytes, armed.module, "screen_operand_flip"));
    OK(cuStreamCreate(&armed.stream, CU_STREAM_NON_BLOCKING));
    OK(cuMemAlloc(&armed.results, sizeof armed.result));
    printf("| path | words a launch and lane | wrong bit in an operand | in a result | p = 1e-3 | "
           "expected | "
           "p = 1e-4 | expected |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for (int path = 0; path < DEVICE_SCREEN_COUNT; path++) {
        char name[64];
        if (!digests[path])
            continue;
        snprintf(name, sizeof name, "screen_%s", device_screen_names[path]);
        OK(cuModuleGetFunction(&armed.kernel, armed.module, name));
        armed.path = &paths[path];
        armed.threads = 32 * device_screen_rows[path].warps;
        uint64_t digest = digests[path];
        /* The control: the armed build changes nothing by itself. */
        assert_int_equal(wrong_warps(&armed, NULL, NULL, digest), 0);
        double visits = (double)SCREEN_PERIODS * armed.path->steps * armed.path->results;
        unsigned operands = armed.path->operands ? found_of(&armed, true, digest, &rng) : 0;
        unsigned results = found_of(&armed, false, digest, &rng);
        printf("| `%s` | %.0f | %u of %u | %u of %u |", device_screen_names[path], visits, operands,
               armed.path->operands ? mutants : 0, results, mutants);
        /* Every toggled bit of a result changes the hash. */
        assert_int_equal(results, mutants);
        for (double p = 1e-3; p > 5e-5; p /= 10) {
            double chance = 1 - exp(visits * log1p(-p)), expected = mutants * chance;
            unsigned found = found_at(&armed, p, digest, &rng);
            printf(" %u of %u | %.1f |", found, mutants, expected);
            assert_true(fabs(found - expected) < 4 * sqrt(expected * (1 - chance)) + 1);
        }
        printf("\n");
        assert_int_equal(wrong_warps(&armed, NULL, NULL, digest), 0);
    }
    free(fatbin);
    driver.cuModuleUnload(armed.module);
}

/* By the stamps of the GPU itself, SMs work for half of the time; nothing is wrong. */
static void pulses(void **state)
{
    (void)state;
    static const uint32_t rates[] = {0, 1, 5, 25, 100, 500, 1000, 2000};
    for (size_t i = 0; i < COUNT_OF(rates); i++) {
        const struct device_pulse pulse = {DEVICE_SCREEN_FP32, rates[i], 1000};
        struct device_pulse_answer answer;
        struct err err = {0};
        assert_int_equal(device_pulse_path(device, &pulse, &answer, &err), 0);
        double all_ns = (double)(answer.busy_ns + answer.idle_ns);
        double duty = (double)answer.busy_ns / all_ns;
        printf("%u Hz: %u launches in %.0f ms, busy %.3f of the time, %.0f to %.0f W\n", rates[i],
               answer.launches, all_ns / 1e6, duty, answer.power_low_w, answer.power_high_w);
        assert_true(rates[i] ? fabs(duty - 0.5) < 0.1 : duty > 0.95);
        for (size_t k = 0; k < answer.place_count; k++)
            assert_int_equal(answer.places[k].wrong, 0);
        device_pulse_answer_fini(&answer);
    }
}

static int all_tests(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_paths), cmocka_unit_test(coverage),
                                       cmocka_unit_test(pulses)};
    struct err err = {0};
    if (driver_load(&driver, &err)) {
        printf("%s\n", err.text);
        return 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    armed_path = argc > 1 ? argv[1] : NULL;
    mutants = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : MUTANTS;
    return real_gpu_run(&device, all_tests);
}
