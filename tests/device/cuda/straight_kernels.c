/* Straight code on a real GPU: longer code takes longer, and each instruction at least as long as
 * one that a cache has. Skipped, and counted as such, where there is no GPU.
 *
 * usage: straight_kernels [FILE]: writes raw cycles of all lengths, and of pairs of SMs. */
#include "../../check.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "device/straight.h"
#include "real_gpu.h"

enum { REPEATS = 4, LAUNCHES = 5 };

static struct device *device;
static FILE *raw;

static struct device_straight_answer ran(const struct device_straight *straight)
{
    struct device_straight_answer answer;
    struct err err = {0};
    if (device_run_straight(device, straight, &answer, &err))
        fail_msg("SM %u, %u instructions: %s", straight->jobs[0].sm, straight->jobs[0].length,
                 err.text);
    return answer;
}

static uint64_t alone(uint32_t sm, uint32_t copy, uint32_t length, uint32_t repeats)
{
    const struct device_straight straight = {
        .jobs = {{.sm = sm, .copy = copy, .length = length, .repeats = repeats}}, .job_count = 1};
    return ran(&straight).cycles[0];
}

static void curve(uint32_t sm, uint32_t copy, uint32_t repeats)
{
    uint32_t length;
    for (size_t i = 0; (length = device_straight_length(i)); i++)
        for (uint32_t k = 0; k < LAUNCHES; k++) {
            uint64_t cycles = alone(sm, copy, length, repeats);
            assert_true(cycles >= length * (uint64_t)repeats);
            if (raw)
                fprintf(raw, "curve %u %u %u %u %llu\n", sm, copy, repeats, length,
                        (unsigned long long)cycles);
        }
}

static void curves(void **state)
{
    (void)state;
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    alone(0, 0, 1024, 1);
    clock_gettime(CLOCK_MONOTONIC, &b);
    printf("first: %.0f ms\n",
           1e3 * (double)(b.tv_sec - a.tv_sec) + 1e-6 * (double)(b.tv_nsec - a.tv_nsec));
    curve(0, 0, REPEATS);
    clock_gettime(CLOCK_MONOTONIC, &a);
    printf("curve: %.0f ms\n",
           1e3 * (double)(a.tv_sec - b.tv_sec) + 1e-6 * (double)(a.tv_nsec - b.tv_nsec));
    if (!raw)
        return;
    curve(0, 0, 16);
    curve(1, 0, REPEATS);
    curve(77, 0, REPEATS);
}

static void pairs(void **state)
{
    (void)state;
    static const uint32_t lengths[] = {1280, 1536, 5120, 6144, 6912};
    static const uint32_t sms[] = {0, 37};
    for (size_t s = 0; s < 2 && raw; s++)
        for (size_t l = 0; l < COUNT_OF(lengths); l++)
            for (uint32_t other = 0; other < device->limits.sm_count; other++) {
                uint64_t own = alone(other, 0, lengths[l], 8);
                fprintf(raw, "own %u %u %llu\n", other, lengths[l], (unsigned long long)own);
                for (uint32_t copy = 0; copy < 2 && other != sms[s]; copy++) {
                    const struct device_straight straight = {
                        .jobs = {{.sm = sms[s], .length = lengths[l], .repeats = 8},
                                 {.sm = other, .copy = copy, .length = lengths[l], .repeats = 8}},
                        .job_count = 2};
                    struct device_straight_answer answer = ran(&straight);
                    fprintf(raw, "pair %u %u %u %u %llu %llu\n", sms[s], other, copy, lengths[l],
                            (unsigned long long)answer.cycles[0],
                            (unsigned long long)answer.cycles[1]);
                }
            }
}

static struct device_walk_answer walked(const struct device_walk *walk)
{
    struct device_walk_answer answer;
    struct err err = {0};
    if (device_run_walk(device, walk, &answer, &err))
        fail_msg("SM %u, %u blocks: %s", walk->sm, walk->blocks, err.text);
    if (raw)
        fprintf(raw, "walk %u %u %u %u %u %u %llu %llu\n", walk->sm, walk->stride, walk->blocks,
                walk->constant_bytes, walk->constant_stride, walk->repeats,
                (unsigned long long)answer.code_cycles, (unsigned long long)answer.constant_cycles);
    return answer;
}

/* Jumping code takes longer than its instructions; with constants, which take as long as they must.
 */
static void walks(void **state)
{
    (void)state;
    static const uint32_t strides[] = {13, 5, 29}, sms[] = {0, 1, 77};
    static const uint32_t constants[][2] = {{65536, 256}, {49152, 256}, {32768, 256},
                                            {65536, 768}, {65536, 128}, {65536, 64},
                                            {65536, 512}, {65280, 1280}};
    struct timespec a, b;
    for (size_t s = 0; s < (raw ? COUNT_OF(strides) : 1); s++) {
        struct device_walk walk = {.stride = strides[s], .blocks = 64, .repeats = REPEATS};
        clock_gettime(CLOCK_MONOTONIC, &a);
        walked(&walk);
        clock_gettime(CLOCK_MONOTONIC, &b);
        printf("first: %.0f ms\n",
               1e3 * (double)(b.tv_sec - a.tv_sec) + 1e-6 * (double)(b.tv_nsec - a.tv_nsec));
        for (size_t m = 0; m < COUNT_OF(sms); m++)
            for (uint32_t blocks = strides[s]; blocks <= DEVICE_WALK_BLOCKS_MAX;
                 blocks += blocks < 320 ? 1 : 8)
                for (uint32_t k = 0; k < (raw ? 3 : 1); k++) {
                    walk.sm = sms[m];
                    walk.blocks = blocks;
                    assert_true(walked(&walk).code_cycles >= 8 * (uint64_t)blocks * REPEATS);
                }
        for (size_t c = 0; c < (s ? 1 : COUNT_OF(constants)); c++)
            for (uint32_t blocks = 64; blocks <= DEVICE_WALK_BLOCKS_MAX; blocks += 8)
                for (uint32_t k = 0; k < (raw ? 3 : 1); k++) {
                    walk.sm = 0;
                    walk.blocks = blocks;
                    walk.constant_bytes = constants[c][0];
                    walk.constant_stride = constants[c][1];
                    uint64_t loads = walk.constant_bytes / walk.constant_stride;
                    assert_true(walked(&walk).constant_cycles >= 20 * loads * REPEATS);
                }
        walk.constant_bytes = walk.constant_stride = 0;
    }
}

static int all_tests(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(curves), cmocka_unit_test(pairs),
                                       cmocka_unit_test(walks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    raw = argc > 1 ? fopen(argv[1], "w") : NULL;
    int failed = real_gpu_run(&device, all_tests);
    if (raw)
        fclose(raw);
    return failed;
}
