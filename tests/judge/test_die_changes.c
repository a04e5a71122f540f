/* A GPU whose die is not that of the baseline is watched, and a die under another UUID is found. */
#include "made.h"

#include "../check.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/str.h"
#include "inventory/fingerprint.h"

enum { COUNT = 16, SMS = 132 };

static void set_die(struct gpu_result *gpu, uint64_t die, uint64_t run)
{
    struct rng places, chance;
    char text[FINGERPRINT_TEXT_MAX];
    double latencies[SMS];
    struct fingerprint fingerprint;
    rng_init(&places, die, "die");
    rng_init(&chance, run, "run");
    for (size_t i = 0; i < SMS; i++)
        latencies[i] = 280 + 5 * (double)(rng_next(&places) % 5) + 0.2 * rng_normal(&chance);
    fingerprint_make(latencies, SMS, 0.2, &fingerprint);
    fingerprint_print(&fingerprint, text);
    assert_int_equal(facts_set_text(&gpu->board, FINGERPRINT_FACT, text), 0);
}

static struct inventory judged(const struct gpu_result *gpus, const struct inventory *baseline)
{
    const struct judge_basis basis = {.config = made_config(), .baseline = baseline};
    struct inventory inventory = {0};
    struct err err = {0};
    assert_int_equal(made_judge(gpus, COUNT, true, &basis, &inventory, &err), 0);
    return inventory;
}

static bool has_text(const struct inventory *inventory, const char *text)
{
    for (size_t i = 0; i < inventory->node_finding_count; i++)
        if (strstr(inventory->node_findings[i].finding, text))
            return true;
    return false;
}

static void swapped(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(COUNT, 3);
    for (size_t i = 0; i < COUNT; i++)
        set_die(&gpus[i], i, i);
    struct inventory then = judged(gpus, NULL);
    for (size_t i = 0; i < COUNT; i++)
        set_die(&gpus[i], i == 5 ? 99 : i, 100 + i);
    struct inventory now = judged(gpus, &then);
    assert_int_equal(now.total_outliers, 0);
    assert_int_equal(now.watch_count, 1);
    const struct inventory_outlier *watched = made_watched(&now, gpus[5].uuid);
    assert_non_null(watched);
    assert_non_null(strstr(made_finding(watched, "board.fingerprint")->cause,
                           "this UUID is not the die it was"));
    inventory_fini(&now);
    inventory_fini(&then);
    made_free(gpus, COUNT);
}

static void other_uuid(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(COUNT, 3);
    for (size_t i = 0; i < COUNT; i++)
        set_die(&gpus[i], i, i);
    struct inventory then = judged(gpus, NULL);
    free(gpus[5].uuid);
    gpus[5].uuid = str_copy("GPU-flashed");
    set_die(&gpus[5], 5, 200);
    struct inventory now = judged(gpus, &then);
    assert_true(has_text(&now, "its fingerprint is that of GPU-005"));
    inventory_fini(&now);
    set_die(&gpus[6], 5, 201); /* two dies of one layout: it is not certain which one it is */
    now = judged(gpus, &then);
    assert_false(has_text(&now, "its fingerprint is that of"));
    inventory_fini(&now);
    inventory_fini(&then);
    made_free(gpus, COUNT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(swapped),
        cmocka_unit_test(other_uuid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
