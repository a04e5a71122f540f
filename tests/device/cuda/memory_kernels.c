/* The kernels of the memory test on a real GPU: what they wrote reads back right, and bits that are
 * changed in between are found, all of them and nothing else. Skipped, and counted as such, where
 * there is no GPU. */
#include "../../check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/kernels.h"
#include "real_gpu.h"

enum { BYTES = 64 << 20, BLOCKS = 64, THREADS = 1024 };

static struct real_module gpu;

#define OK(call) real_gpu_ok(&gpu.driver, gpu.driver.call, #call)

static void launch(const char *name)
{
    struct kernel_region region = {.base = gpu.memory,
                                   .offset = UINT64_C(40) << 30,
                                   .count = BYTES / 16,
                                   .seed = UINT64_C(0x123456789abcdef),
                                   .result = gpu.result};
    void *parameters[] = {&region};
    CUfunction function;
    OK(cuModuleGetFunction(&function, gpu.module, name));
    OK(cuLaunchKernel(function, BLOCKS, 1, 1, THREADS, 1, 1, 0, gpu.stream, parameters, NULL));
}

static struct kernel_region_result check(const char *name)
{
    struct kernel_region_result found = {.wrong_offset = UINT64_MAX};
    OK(cuMemcpyHtoDAsync(gpu.result, &found, sizeof found, gpu.stream));
    launch(name);
    OK(cuMemcpyDtoHAsync(&found, gpu.result, sizeof found, gpu.stream));
    OK(cuStreamSynchronize(gpu.stream));
    return found;
}

static void flip(uint64_t offset, uint64_t bits)
{
    uint64_t word;
    OK(cuMemcpyDtoHAsync(&word, gpu.memory + offset, sizeof word, gpu.stream));
    OK(cuStreamSynchronize(gpu.stream));
    word ^= bits;
    OK(cuMemcpyHtoDAsync(gpu.memory + offset, &word, sizeof word, gpu.stream));
    OK(cuStreamSynchronize(gpu.stream));
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

static struct kernel_march_log log_of_march;

static void march(const char *name, struct kernel_march march)
{
    CUfunction function;
    march.base = gpu.memory;
    march.count = BYTES / 16;
    march.log = gpu.result;
    void *parameters[] = {&march};
    memset(&log_of_march, 0, sizeof log_of_march);
    log_of_march.first = UINT64_MAX;
    OK(cuMemcpyHtoDAsync(gpu.result, &log_of_march, sizeof log_of_march, gpu.stream));
    OK(cuModuleGetFunction(&function, gpu.module, name));
    OK(cuLaunchKernel(function, BLOCKS, 1, 1, THREADS, 1, 1, 0, gpu.stream, parameters, NULL));
    OK(cuMemcpyDtoHAsync(&log_of_march, gpu.result, sizeof log_of_march, gpu.stream));
    OK(cuStreamSynchronize(gpu.stream));
}

/* Each element finds what was changed before it, says what it expected, and leaves the inverse. */
static void marches_find_changes(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool inverted;
    } elements[] = {{"march_up", false},
                    {"march_up", true},
                    {"march_down", false},
                    {"march_down", true},
                    {"march_read", false}};
    for (uint32_t drawn = 0; drawn < 2; drawn++) {
        struct kernel_march asked = {
            .seed = 99, .drawn = drawn, .stripes = UINT64_C(0x3333333333333333)};
        asked.inverted = UINT64_MAX;
        march("march_write", asked);
        for (uint32_t i = 0; i < COUNT_OF(elements); i++) {
            asked.inverted = elements[i].inverted ? UINT64_MAX : 0;
            asked.read = i;
            flip(8 * 77777, 1);
            flip(BYTES - 8, UINT64_C(1) << 63);
            march(elements[i].name, asked);
            assert_int_equal(log_of_march.wrong, 2);
            assert_int_equal(log_of_march.first, 8 * 77777);
            for (size_t k = 0; k < 2; k++) {
                const struct kernel_wrong_word *word = &log_of_march.words[k];
                assert_true(word->offset == 8 * 77777 || word->offset == BYTES - 8);
                assert_true(word->expected == kernel_march_word(&asked, word->offset));
                assert_true((word->expected ^ word->found) ==
                            (word->offset == BYTES - 8 ? UINT64_C(1) << 63 : 1));
                assert_int_equal(word->read, i);
            }
        }
        flip(8 * 77777, 1); /* as it was: the last element does not write */
        flip(BYTES - 8, UINT64_C(1) << 63);
        march("march_read", asked);
        assert_int_equal(log_of_march.wrong, 0);
        asked.inverted = UINT64_MAX;
        march("march_read", asked);
        assert_int_equal(log_of_march.wrong, BYTES / 8);
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
    void *parameters[] = {&gpu.memory, &region_bytes, &loads, &round, &first, &gpu.result};
    CUfunction function;
    launch("memory_write_address");
    OK(cuModuleGetFunction(&function, gpu.module, "memory_chase"));
    for (int i = 0; i < 2; i++)
        OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, gpu.stream, parameters, NULL));
    OK(cuMemcpyDtoHAsync(&found, gpu.result, sizeof found, gpu.stream));
    OK(cuStreamSynchronize(gpu.stream));
    double cycles = (double)found.cycles[0] / loads;
    print_message("a load in L2 takes %.0f cycles\n", cycles);
    assert_true(cycles > 100);
}

static int all_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changed_bits_are_found),
        cmocka_unit_test(marches_find_changes),
        cmocka_unit_test(halves_are_exchanged),
        cmocka_unit_test(loads_depend_on_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return real_module_run(&gpu, CUDA_KERNELS_MEMORY, BYTES, sizeof(struct kernel_march_log),
                           all_tests);
}
