/* Memory that runs out at any moment: -ENOMEM, nothing lost and nothing half done. The linker sends
 * all allocations here. */
#include "../check.h"

#include "made.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "judge/consensus.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);

static size_t left = SIZE_MAX; /* allocations that succeed; the one behind them fails */

static bool fails(void)
{
    return left != SIZE_MAX && left-- == 0;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *block, size_t size)
{
    return fails() ? NULL : __real_realloc(block, size);
}

/* True when the allowance was not used up. */
static bool was_enough(void)
{
    bool enough = left != SIZE_MAX;
    left = SIZE_MAX;
    return enough;
}

/* Figures of which each meets another fate: the same kind, another kind, another status, new. */
static void fill(struct measures *now, struct measures *earlier)
{
    static const char *const words[] = {"texture"};
    measures_add(earlier, "l1_data.size", 65536, "B", "m");
    measures_add(now, "l1_data.size", 65536, "B", "m");
    measures_add(earlier, "l2.size", 1048576, "B", "m")->bound = MEASURE_AT_LEAST;
    measures_add(now, "l2.size", 1048576, "B", "m");
    measures_add_words(earlier, "l1_data.shared_with", words, 1, "m");
    measure_set_status(measures_add(now, "main.latency", 600, "cycles", "m"), MEASURE_NOISY, "no");
    measures_add(earlier, "main.latency", 600, "cycles", "m");
    measures_add(now, "host.latency", 600, "cycles", "m");
}

static void completing(void **state)
{
    (void)state;
    struct measures now = {0}, earlier = {0};
    int rc = -ENOMEM;
    fill(&now, &earlier);
    for (size_t allowed = 0; rc; allowed++) {
        left = allowed;
        rc = consensus_complete(&now, &earlier);
        bool enough = was_enough();
        assert_int_equal(rc, enough ? 0 : -ENOMEM);
        assert_int_equal(now.count, enough ? 5 : 4);
        for (size_t i = 0; i < now.count; i++)
            assert_non_null(now.items[i].metric);
    }
    assert_int_equal(measures_get(&now, "l2.size")->bound, MEASURE_EXACT);
    assert_int_equal(measures_get(&now, "main.latency")->status, MEASURE_NOISY);
    measures_fini(&now);
    measures_fini(&earlier);
}

/* A fleet in which every stage finds something, with itself as the baseline. */
static void judging(void **state)
{
    (void)state;
    enum { COUNT = 8 };
    struct gpu_result *gpus = made_fleet(COUNT, 1);
    struct inventory before = made_judged(gpus, COUNT);
    const struct judge_basis basis = {.config = made_config(), .baseline = &before};
    made_clock(&gpus[1], 0.7);
    facts_set_text(&gpus[1].health, "throttle", "hw_thermal");
    made_scale(&gpus[2], "main.bandwidth.read", 0.5);
    made_set(&gpus[2], "clock.memory", 1600);
    facts_set_bool(&gpus[3].health, "remap_pending", true);
    facts_set_text(&gpus[3].board, "driver", "1");
    free(gpus[4].node);
    gpus[4].node = str_copy("n99");
    gpus[5].status = GPU_LOST;
    int rc = -ENOMEM;
    size_t allowed = 0;
    for (; rc; allowed++) {
        struct inventory inventory = {0};
        struct err err = {0};
        left = allowed;
        rc = judge_fleet(gpus, COUNT, &basis, &inventory, &err);
        assert_int_equal(rc, was_enough() ? 0 : -ENOMEM);
        inventory_fini(&inventory);
    }
    assert_true(allowed > 100);
    inventory_fini(&before);
    made_free(gpus, COUNT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(completing), cmocka_unit_test(judging)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
