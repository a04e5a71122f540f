/* Where the CUDA backend lays a job's arrays: chains visit what they should, steps begin where the
 * interface says. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "device/cuda/kernels.h"
#include "device/cuda/layout.h"

static void bins_agree_with_the_interface(void **state)
{
    (void)state;
    assert_int_equal(KERNEL_BIN_COUNT, DEVICE_BIN_COUNT);
    assert_int_equal(KERNEL_STEPS_MAX, DEVICE_STEPS_MAX);
    assert_true(sizeof(struct kernel_job) <= KERNEL_JOB_BYTES);
    for (uint64_t cycles = 0; cycles <= UINT32_MAX; cycles += cycles / 100 + 1)
        assert_int_equal(kernel_bin_of((uint32_t)cycles), device_bin_of((uint32_t)cycles));
    assert_int_equal(kernel_bin_of(UINT32_MAX), DEVICE_BIN_COUNT - 1);
}

static struct device_job job_of(const struct device_step *steps, uint32_t count)
{
    struct device_job job = {.agents = {{.sm = DEVICE_SM_ANY}, {.sm = DEVICE_SM_SAME}},
                             .agent_count = 2,
                             .step_count = count};
    memcpy(job.steps, steps, count * sizeof *steps);
    return job;
}

static void chains_only_where_needed(void **state)
{
    (void)state;
    const struct {
        enum device_step_kind kind;
        enum device_order order;
        uint32_t chains;
    } rows[] = {
        {DEVICE_WARM, DEVICE_SEQUENTIAL, 0},    {DEVICE_CHASE, DEVICE_SEQUENTIAL, 0},
        {DEVICE_FILL, DEVICE_SEQUENTIAL, 0},    {DEVICE_FILL, DEVICE_RANDOM, 0},
        {DEVICE_AVERAGE, DEVICE_SEQUENTIAL, 1}, {DEVICE_WARM, DEVICE_RANDOM, 0},
        {DEVICE_CHASE, DEVICE_RANDOM, 0},       {DEVICE_AVERAGE, DEVICE_RANDOM, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct device_step step = {
            .kind = rows[i].kind,
            .array = {.size_bytes = 4096, .stride_bytes = 64, .order = rows[i].order}};
        const struct device_job job = job_of(&step, 1);
        struct layout layout;
        assert_int_equal(layout_init(&layout, &job, NULL), 0);
        assert_int_equal(layout.chain_count, rows[i].chains);
        assert_int_equal(layout.end_bytes[MEMORY_GLOBAL], 4096);
    }
}

/* Follows an image from a step's first load; true when it visits `count` different elements and
 * comes back. */
static bool is_cycle(const uint32_t *words, uint64_t first, uint64_t count)
{
    uint64_t at = first;
    for (uint64_t i = 1; i < count; i++) {
        at = words[at / 4];
        if (at == first)
            return false;
    }
    return words[at / 4] == first;
}

static void images_hold_whole_cycles(void **state)
{
    (void)state;
    enum { BYTES = 64 * 1024 };
    uint32_t *words = malloc(BYTES);
    assert_non_null(words);
    for (uint32_t stride = 4; stride <= 1024; stride *= 4) {
        for (int order = DEVICE_SEQUENTIAL; order <= DEVICE_RANDOM; order++) {
            const struct device_step step = {.kind = DEVICE_AVERAGE,
                                             .start = 3,
                                             .array = {.path = DEVICE_CONSTANT,
                                                       .offset_bytes = stride,
                                                       .size_bytes = 16384,
                                                       .stride_bytes = stride,
                                                       .order = (enum device_order)order,
                                                       .seed = stride}};
            const struct device_job job = job_of(&step, 1);
            struct layout layout;
            memset(words, 0, BYTES);
            assert_int_equal(layout_init(&layout, &job, NULL), 0);
            layout_image(&layout, MEMORY_CONSTANT, words);
            assert_int_equal(layout_element_bytes(&layout, &job, 0, layout.steps[0].first),
                             4 * stride);
            assert_true(is_cycle(words,
                                 layout_element_bytes(&layout, &job, 0, layout.steps[0].first),
                                 16384 / stride));
        }
    }
    free(words);
}

static void steps_go_on_where_the_last_ended(void **state)
{
    (void)state;
    const struct device_array sequential = {.size_bytes = 1000, .stride_bytes = 8};
    const struct device_array other = {.size_bytes = 2000, .stride_bytes = 8};
    const struct device_step steps[] = {
        {.kind = DEVICE_WARM, .array = sequential, .start = 5, .loads = 7},
        {.kind = DEVICE_CHASE, .array = sequential, .start = 5, .loads = 125},
        {.kind = DEVICE_WARM, .array = sequential, .agent = 1, .start = 2},
        {.kind = DEVICE_CHASE, .array = sequential, .loads = 1},
        {.kind = DEVICE_CHASE, .array = other, .start = 9},
        {.kind = DEVICE_CHASE, .array = sequential, .start = 4},
    };
    const uint64_t firsts[] = {5, 12, 2, 12, 9, 4};
    const struct device_job job = job_of(steps, 6);
    struct layout layout;
    assert_int_equal(layout_init(&layout, &job, NULL), 0);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(layout.steps[i].first, firsts[i]);
}

/* A permutation is one, whatever the count, and can be undone. */
static void permutations(void **state)
{
    (void)state;
    static const uint32_t counts[] = {1, 2, 3, 5, 64, 65, 1000, 4097};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        uint32_t visits[4097] = {0}, ascending = 0, last = 0;
        for (uint32_t i = 0; i < counts[c]; i++) {
            uint32_t element = kernel_permute(i, counts[c], 77);
            assert_in_range(element, 0, counts[c] - 1);
            assert_int_equal(visits[element]++, 0);
            assert_int_equal(kernel_unpermute(element, counts[c], 77), i);
            ascending += element == last + 1;
            last = element;
        }
        if (counts[c] >= 1000)
            assert_in_range(ascending, 0, 8);
    }
    uint32_t differing = 0;
    for (uint32_t i = 0; i < 1000; i++)
        differing += kernel_permute(i, 1000, 1) != kernel_permute(i, 1000, 2);
    assert_in_range(differing, 950, 1000);
    assert_in_range(kernel_permute(UINT32_MAX - 1, UINT32_MAX, 3), 0, UINT32_MAX - 1);
}

static void random_steps_go_on_in_their_order(void **state)
{
    (void)state;
    enum { ELEMENTS = 1000, PART = 300 };
    const struct device_array array = {.path = DEVICE_SHARED,
                                       .size_bytes = ELEMENTS * 4,
                                       .stride_bytes = 4,
                                       .order = DEVICE_RANDOM,
                                       .seed = 7};
    const struct device_step steps[] = {
        {.kind = DEVICE_WARM, .array = array, .start = 12, .loads = PART},
        {.kind = DEVICE_AVERAGE, .array = array, .loads = PART},
    };
    const struct device_job job = job_of(steps, 2);
    uint32_t words[ELEMENTS] = {0};
    struct layout layout;
    assert_int_equal(layout_init(&layout, &job, NULL), 0);
    layout_image(&layout, MEMORY_SHARED, words);
    assert_int_equal(layout.steps[0].first, 12);
    uint64_t at = 4 * 12;
    for (uint32_t i = 0; i < PART; i++) {
        assert_int_equal(at / 4,
                         kernel_permute((uint32_t)((layout.steps[0].position + i) % ELEMENTS),
                                        ELEMENTS, layout_key(&array)));
        at = words[at / 4];
    }
    assert_int_equal(at / 4, layout.steps[1].first);
}

/* Chains over each other stand in different words of a sector, or are refused. */
static void chains_over_each_other(void **state)
{
    (void)state;
    const struct {
        enum device_path a, b;
        uint64_t stride_a, stride_b, offset_b;
        int rc;
        uint32_t chains;
    } rows[] = {
        {DEVICE_GLOBAL_CA, DEVICE_TEXTURE, 32, 64, 0, 0, 2},
        {DEVICE_GLOBAL_CA, DEVICE_TEXTURE, 8, 8, 0, -ENOTSUP, 0},
        {DEVICE_GLOBAL_CA, DEVICE_TEXTURE, 8, 8, 4096, 0, 2},
        {DEVICE_GLOBAL_CA, DEVICE_READ_ONLY, 8, 8, 0, 0, 1},
        {DEVICE_CONSTANT, DEVICE_CONSTANT, 8, 16, 0, 0, 2},
        {DEVICE_CONSTANT, DEVICE_SHARED, 4, 4, 0, 0, 2},
        {DEVICE_GLOBAL_CA, DEVICE_GLOBAL_CG, 12, 8, 0, -ENOTSUP, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct device_step steps[] = {{.kind = DEVICE_AVERAGE}, {.kind = DEVICE_AVERAGE}};
        steps[0].array = (struct device_array){
            .path = rows[i].a, .size_bytes = 4096, .stride_bytes = rows[i].stride_a};
        steps[1].array = (struct device_array){.path = rows[i].b,
                                               .offset_bytes = rows[i].offset_b,
                                               .size_bytes = 4096,
                                               .stride_bytes = rows[i].stride_b};
        const struct device_job job = job_of(steps, 2);
        struct layout layout;
        assert_int_equal(layout_init(&layout, &job, NULL), rows[i].rc);
        if (rows[i].rc)
            continue;
        assert_int_equal(layout.chain_count, rows[i].chains);
        bool apart = rows[i].chains == 1 || layout_memory(rows[i].a) != layout_memory(rows[i].b) ||
                     rows[i].offset_b >= 4096 ||
                     layout.chains[0].slot_bytes != layout.chains[1].slot_bytes;
        assert_true(apart);
    }
}

static void layouts_are_compared_by_content(void **state)
{
    (void)state;
    struct device_step steps[] = {
        {.kind = DEVICE_AVERAGE, .array = {.size_bytes = 4096, .stride_bytes = 64}}};
    struct device_job job = job_of(steps, 1), longer = job, elsewhere = job;
    longer.steps[0].array.size_bytes = 8192;
    elsewhere.steps[0].array.path = DEVICE_CONSTANT;
    struct layout a, b, c, d;
    assert_int_equal(layout_init(&a, &job, NULL), 0);
    assert_int_equal(layout_init(&b, &job, NULL), 0);
    assert_int_equal(layout_init(&c, &longer, NULL), 0);
    assert_int_equal(layout_init(&d, &elsewhere, NULL), 0);
    assert_true(layout_same(&a, &b, MEMORY_GLOBAL));
    assert_false(layout_same(&a, &c, MEMORY_GLOBAL));
    assert_false(layout_same(&a, &d, MEMORY_GLOBAL));
    assert_false(layout_same(&d, &a, MEMORY_GLOBAL));
    assert_true(layout_same(&a, &c, MEMORY_SHARED));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bins_agree_with_the_interface),
        cmocka_unit_test(chains_only_where_needed),
        cmocka_unit_test(images_hold_whole_cycles),
        cmocka_unit_test(steps_go_on_where_the_last_ended),
        cmocka_unit_test(permutations),
        cmocka_unit_test(random_steps_go_on_in_their_order),
        cmocka_unit_test(chains_over_each_other),
        cmocka_unit_test(layouts_are_compared_by_content),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
