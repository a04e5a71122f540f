/* The screen for wrong results on a real GPU. All hashes are right, those of the host where it
 * knows them. In the armed build of the same kernels, which has the same digests while it changes
 * nothing, bits of operands and of results are made wrong, always or now and then: how many are
 * found, by path. The table is that of docs/COVERAGE.md. Skipped, and counted as such, where there
 * is no GPU.
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
#include "device/cuda/gpu.h"
#include "device/cuda/kernels.h"
#include "device/cuda/screening.h"
#include "device/screen_program.h"
#include "real_gpu.h"

enum { TARGET_MS = 20, MUTANTS = 40, RARE = 20, FATBIN_BYTES_MAX = 64 << 20, LAUNCHES_MAX = 200 };

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
        const struct device_screen_row *row = &device_screen_rows[path];
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
               "without, %u warps, %u words of a lane, %s, %u launches of %.3f ms\n",
               device_screen_names[path], (unsigned long long)answer.digest % 1000000,
               (unsigned long long)answer.code % 1000000, (unsigned long long)count,
               (unsigned long long)wrong, (unsigned long long)missing, row->warps,
               SCREEN_PERIODS * row->steps * row->taken,
               row->by_host ? "as the host" : "host unknown", answer.launches,
               (double)answer.elapsed_ns / 1e6 / answer.launches);
        assert_int_equal(wrong, 0);
        assert_int_equal(missing, 0);
        assert_false(answer.not_as_host);
        digests[path] = answer.digest;
        device_screen_answer_fini(&answer);
    }
}

/* What of a thread is wrong. */
enum fault_kind { FAULT_OPERAND, FAULT_SUM, FAULT_ONCE, FAULT_RESULT, FAULT_KINDS };
static const char *const kinds[] = {"wrong operand", "each sum", "one sum", "wrong result"};

/* A path of the armed build, in place of the release's. */
struct armed {
    struct screening screening;
    struct rng *rng;
    uint32_t *words;                    /* that a warp takes while nothing is wrong */
    CUdeviceptr operand_flip, sum_flip; /* that of results comes with each launch */
    uint32_t launch;
};

static const struct kernel_screen_flip no_flip = {.every = 1};

/* flip: NULL if nothing is wrong. */
static void set_flip(struct armed *armed, enum fault_kind kind,
                     const struct kernel_screen_flip *flip)
{
    static struct kernel_screen_flip result;
    CUstream stream = armed->screening.gpu->streams[0];
    const struct kernel_screen_flip *operand = flip && kind == FAULT_OPERAND ? flip : &no_flip;
    const struct kernel_screen_flip *sum =
        flip && (kind == FAULT_SUM || kind == FAULT_ONCE) ? flip : &no_flip;
    result = flip && kind == FAULT_RESULT ? *flip : no_flip;
    armed->screening.flip = &result;
    OK(cuMemcpyHtoDAsync(armed->operand_flip, operand, sizeof *operand, stream));
    OK(cuMemcpyHtoDAsync(armed->sum_flip, sum, sizeof *sum, stream));
}

static const struct kernel_check_result *launch(struct armed *armed, uint32_t set,
                                                CUdeviceptr trace)
{
    struct cuda_gpu *gpu = armed->screening.gpu;
    const struct screening_launch launch = {.periods = SCREEN_PERIODS,
                                            .number = armed->launch++,
                                            .set = set,
                                            .trace = trace,
                                            .trace_sm = gpu->sm_ids[0]};
    struct err err = {0};
    if (screening_launch(&armed->screening, &launch, &err) ||
        staging_download(gpu, &gpu->results,
                         gpu->base.limits.sm_count * sizeof(struct kernel_check_result), &err) ||
        cuda_wait(gpu, &err))
        fail_msg("%s", err.text);
    return gpu->results.host;
}

/* Whether any of so many launches has a wrong hash; two have the same operands, as in a survey. */
static bool finds(struct armed *armed, uint32_t launches)
{
    uint32_t sms = armed->screening.gpu->base.limits.sm_count;
    for (uint32_t n = 0; n < launches; n++) {
        const struct kernel_check_result *results = launch(armed, n / 2, 0);
        uint64_t expected = screening_most_frequent(&armed->screening, results);
        if (n == 0)
            assert_true(expected == digests[armed->screening.path]);
        for (uint32_t i = 0; i < sms; i++)
            for (uint32_t w = 0; w < armed->screening.warps; w++)
                if (results[i].hashes[w] != expected)
                    return true;
    }
    return false;
}

static const struct device_screen_row *row_of(const struct armed *armed)
{
    return &device_screen_rows[armed->screening.path];
}

static size_t word_count(const struct armed *armed)
{
    const struct device_screen_row *row = row_of(armed);
    return (size_t)SCREEN_PERIODS * row->steps * row->taken * CHECK_LANES;
}

static void take_words(struct armed *armed)
{
    CUstream stream = armed->screening.gpu->streams[0];
    size_t count = word_count(armed);
    CUdeviceptr trace;
    armed->words = mem_array(count, sizeof *armed->words);
    OK(cuMemAlloc(&trace, 4 * count));
    OK(cuMemsetD32Async(trace, 0, count, stream));
    launch(armed, 0, trace);
    OK(cuMemcpyDtoHAsync(armed->words, trace, 4 * count, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuMemFree(trace));
}

/* Two faults of five are of one bit; the others are of two neighbours, of a byte, or of any bits.
 */
static uint32_t drawn_bits(struct rng *rng)
{
    switch (rng_below(rng, 5)) {
    case 0:
    case 1:
        return UINT32_C(1) << rng_below(rng, 32);
    case 2:
        return UINT32_C(3) << rng_below(rng, 31);
    case 3:
        return UINT32_C(255) << 8 * rng_below(rng, 4);
    default:
        return 1 + (uint32_t)rng_below(rng, UINT32_MAX);
    }
}

/* A fault of one thread. The word is the same in every step. */
static struct kernel_screen_flip drawn(const struct armed *armed, uint32_t words, uint32_t every)
{
    const struct cuda_gpu *gpu = armed->screening.gpu;
    struct rng *rng = armed->rng;
    return (struct kernel_screen_flip){
        .sm = gpu->sm_ids[rng_below(rng, gpu->base.limits.sm_count)],
        .thread = (uint32_t)rng_below(rng, (uint64_t)armed->screening.warps * CHECK_LANES),
        .word = (uint32_t)rng_below(rng, words),
        .every = every,
        .bits = drawn_bits(rng),
        .force = (uint32_t)rng_below(rng, 3),
        .chance = UINT32_MAX};
}

/* The bits of an operand word that the unit takes: the last 13 of a TF32 number are none. */
static uint32_t bits_taken(enum device_screen_path path)
{
    return path == DEVICE_SCREEN_MMA_TF32 || path == DEVICE_SCREEN_WGMMA_TF32 ? 0xffffe000
                                                                              : UINT32_MAX;
}

/* Operands of wgmma are 16 rows, of which each warp writes two. */
static struct kernel_screen_flip drawn_operand(const struct armed *armed)
{
    uint32_t operands = row_of(armed)->operands;
    struct kernel_screen_flip flip = drawn(armed, operands ? operands : 2, SCREEN_OPERANDS);
    if (!operands)
        flip.word = flip.word * 8 + flip.thread / CHECK_LANES;
    while (!(flip.bits & bits_taken(armed->screening.path)))
        flip.bits = drawn_bits(armed->rng);
    return flip;
}

static bool is_mma(const struct armed *armed)
{
    return strncmp(device_screen_names[armed->screening.path], "mma", 3) == 0;
}

static bool has(const struct armed *armed, enum fault_kind kind)
{
    bool wgmma = strncmp(device_screen_names[armed->screening.path], "wgmma", 5) == 0;
    if (kind == FAULT_OPERAND)
        return row_of(armed)->operands || wgmma;
    return kind == FAULT_RESULT || is_mma(armed);
}

/* A bit of a sum, which the fault changes after each product. */
static struct kernel_screen_flip drawn_sum(const struct armed *armed)
{
    struct kernel_screen_flip flip = drawn(armed, SCREEN_MMA_WORDS, SCREEN_MMA_WORDS);
    flip.force = KERNEL_SCREEN_TOGGLES;
    return flip;
}

/* The same after one product of a step. */
static struct kernel_screen_flip drawn_once(const struct armed *armed)
{
    uint32_t all = SCREEN_MMA_SUMS * SCREEN_MMA_PRODUCTS * SCREEN_MMA_WORDS;
    struct kernel_screen_flip flip = drawn(armed, all, all);
    flip.force = KERNEL_SCREEN_TOGGLES;
    return flip;
}

/* Whether a fault changes any word: a bit that is 0 in all of them can be stuck at 0. */
static bool changes_words(const struct armed *armed, const struct kernel_screen_flip *flip)
{
    uint32_t taken = row_of(armed)->taken;
    size_t numbers = (size_t)SCREEN_PERIODS * row_of(armed)->steps * taken;
    for (size_t n = flip->word; n < numbers; n += flip->every) {
        uint32_t word = armed->words[n * CHECK_LANES + flip->thread % CHECK_LANES];
        if (flip->force == KERNEL_SCREEN_TOGGLES ||
            (flip->force == KERNEL_SCREEN_SETS ? ~word : word) & flip->bits)
            return true;
    }
    return false;
}

static void print_missed(const struct armed *armed, enum fault_kind kind,
                         const struct kernel_screen_flip *flip)
{
    static const char *const forces[] = {"toggled", "always 1", "always 0"};
    printf("not found: %s, %s %u of %u, bits %08x %s, lane %u\n",
           device_screen_names[armed->screening.path], kinds[kind], flip->word, flip->every,
           flip->bits, forces[flip->force], flip->thread % CHECK_LANES);
}

static struct kernel_screen_flip drawn_fault(const struct armed *armed, enum fault_kind kind)
{
    uint32_t taken = row_of(armed)->taken;
    if (kind == FAULT_OPERAND)
        return drawn_operand(armed);
    if (kind == FAULT_SUM)
        return drawn_sum(armed);
    if (kind == FAULT_ONCE)
        return drawn_once(armed);
    struct kernel_screen_flip flip = drawn(armed, taken, taken);
    while (!changes_words(armed, &flip))
        flip = drawn(armed, taken, taken);
    return flip;
}

/* Faults that are there all the time, found by one launch or, if not, by two more: `standard` has
 * more of each. */
static unsigned found_always(struct armed *armed, enum fault_kind kind)
{
    unsigned found = 0;
    if (!has(armed, kind))
        return 0;
    for (unsigned i = 0; i < mutants; i++) {
        struct kernel_screen_flip flip = drawn_fault(armed, kind);
        set_flip(armed, kind, &flip);
        if (finds(armed, 3))
            found++;
        else
            print_missed(armed, kind, &flip);
    }
    return found;
}

/* Every word of one thread may be wrong with a probability: the chance that n visits find it is
 * 1 - (1 - p)^n. */
static void print_rare(struct armed *armed, double p)
{
    const struct device_screen_row *row = row_of(armed);
    double visits = (double)SCREEN_PERIODS * row->steps * row->taken;
    uint32_t launches = (uint32_t)fmin(fmax(0.7 / p / visits + 0.5, 1), LAUNCHES_MAX);
    double chance = 1 - exp(visits * launches * log1p(-p)), expected = RARE * chance;
    unsigned found = 0;
    for (unsigned i = 0; i < RARE; i++) {
        struct kernel_screen_flip flip = drawn(armed, 1, 1);
        flip.force = KERNEL_SCREEN_TOGGLES;
        flip.chance = (uint32_t)(p * UINT32_MAX);
        set_flip(armed, FAULT_RESULT, &flip);
        found += finds(armed, launches);
    }
    printf(" %.0f: %u of %u, %.1f |", visits * launches, found, RARE, expected);
    assert_true(fabs(found - expected) < 4 * sqrt(expected * (1 - chance)) + 1);
}

/* The second look shows the fault: its lane, its bits; with the operands of that launch. */
static void second_look_shows(struct armed *armed)
{
    enum { SET = 1 };
    struct cuda_gpu *gpu = armed->screening.gpu;
    uint32_t taken = row_of(armed)->taken;
    struct kernel_screen_flip flip = drawn(armed, taken, taken);
    struct device_screen_answer answer = {
        .place_count = (size_t)gpu->base.limits.sm_count * DEVICE_SUB_CORES, .digest = 1};
    struct err err = {0};
    flip.force = KERNEL_SCREEN_TOGGLES;
    set_flip(armed, FAULT_RESULT, &flip);
    answer.places = mem_array(answer.place_count, sizeof *answer.places);
    launch(armed, SET, 0);
    const struct cuda_hashes hashes = {
        gpu->results.host, armed->screening.warps, SET,
        screening_most_frequent(&armed->screening, gpu->results.host)};
    assert_int_equal(cuda_add_hashes(gpu, &hashes, answer.places, NULL, &err), 0);
    screening_look_again(&armed->screening, &answer);
    assert_true(answer.again.launches > 0 && answer.again.set == SET);
    assert_int_equal(answer.again.wrong, answer.again.launches);
    assert_int_equal(answer.again.differ, SCREEN_PERIODS * row_of(armed)->steps);
    for (size_t i = 0; i < answer.result_count; i++) {
        assert_int_equal(answer.results[i].lane, flip.thread % CHECK_LANES);
        assert_int_equal(answer.results[i].number % taken, flip.word);
        assert_int_equal(answer.results[i].expected ^ answer.results[i].found, flip.bits);
    }
    device_screen_answer_fini(&answer);
}

static void cover_path(struct armed *armed, enum device_screen_path path)
{
    unsigned found[FAULT_KINDS], all[FAULT_KINDS];
    struct err err = {0};
    if (screening_begin(&armed->screening, cuda_of(device), path, &err))
        fail_msg("%s: %s", device_screen_names[path], err.text);
    /* The control: the armed build changes nothing by itself. */
    set_flip(armed, FAULT_RESULT, NULL);
    assert_false(finds(armed, 4));
    take_words(armed);
    for (int kind = 0; kind < FAULT_KINDS; kind++) {
        found[kind] = found_always(armed, (enum fault_kind)kind);
        all[kind] = has(armed, (enum fault_kind)kind) ? mutants : 0;
    }
    printf("| `%s` |", device_screen_names[path]);
    for (int kind = 0; kind < FAULT_KINDS; kind++)
        printf(" %u of %u |", found[kind], all[kind]);
    assert_int_equal(found[FAULT_RESULT], all[FAULT_RESULT]);
    assert_int_equal(found[FAULT_SUM], all[FAULT_SUM]);
    assert_true(10 * found[FAULT_ONCE] >= 7 * all[FAULT_ONCE]);
    assert_true(found[FAULT_OPERAND] + 1 + mutants / 50 >= all[FAULT_OPERAND]);
    for (double p = 1e-4; p > 5e-7; p /= 10)
        print_rare(armed, p);
    printf("\n");
    second_look_shows(armed);
    set_flip(armed, FAULT_RESULT, NULL);
    assert_false(finds(armed, 4));
    free(armed->words);
    screening_end(&armed->screening);
}

static void coverage(void **state)
{
    (void)state;
    struct cuda_gpu *gpu = cuda_of(device);
    struct rng rng;
    struct armed armed = {.rng = &rng, .launch = 1};
    size_t bytes = 0;
    if (!armed_path || !mutants) {
        printf("no armed build was given\n");
        skip();
    }
    FILE *file = fopen(armed_path, "rb");
    void *fatbin = mem_array(1, FATBIN_BYTES_MAX);
    assert_non_null(file);
    assert_true(fread(fatbin, 1, FATBIN_BYTES_MAX, file) > 0);
    fclose(file);
    rng_init(&rng, 1, "mutants");
    CUmodule release = gpu->modules[CUDA_KERNELS_SCREEN];
    OK(cuModuleLoadData(&gpu->modules[CUDA_KERNELS_SCREEN], fatbin));
    OK(cuModuleGetGlobal(&armed.operand_flip, &bytes, gpu->modules[CUDA_KERNELS_SCREEN],
                         "screen_operand_flip"));
    OK(cuModuleGetGlobal(&armed.sum_flip, &bytes, gpu->modules[CUDA_KERNELS_SCREEN],
                         "screen_sum_flip"));
    printf("| path | wrong operand | each sum | one sum | wrong result | p = 1e-4 | 1e-5 | 1e-6 |\n"
           "| --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for (int path = 0; path < DEVICE_SCREEN_COUNT; path++)
        if (digests[path])
            cover_path(&armed, (enum device_screen_path)path);
    free(fatbin);
    driver.cuModuleUnload(gpu->modules[CUDA_KERNELS_SCREEN]);
    gpu->modules[CUDA_KERNELS_SCREEN] = release;
}

/* By the stamps of the GPU itself, SMs work for half of the time; nothing is wrong. */
static void pulses(void **state)
{
    (void)state;
    if (!mutants)
        skip();
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
