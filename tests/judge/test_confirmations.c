/* What confirms a finding: a second measurement, its cause, other figures. */
#include "made.h"

#include "../check.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"

enum { COUNT = 16 };

/* Judges; if again is not NULL, GPU-005 is measured again with the values of `again`. */
static struct inventory judged(const struct gpu_result *gpus, const struct gpu_result *again)
{
    struct inventory inventory = {0};
    struct judge *judge;
    struct err err = {0};
    const struct judge_basis basis = {.config = made_config()};
    judge = judge_create(&basis, COUNT);
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(judge_add(judge, &gpus[i], &err), 0);
    judge_compare(judge);
    if (again)
        judge_add_again(judge, again);
    judge_finish(judge, &inventory);
    judge_destroy(judge);
    return inventory;
}

static const char *confirmed(const struct inventory *inventory, bool accused, const char *metric)
{
    const struct inventory_outlier *entry =
        accused ? made_outlier(inventory, "GPU-005") : made_watched(inventory, "GPU-005");
    const struct inventory_evidence *finding = entry ? made_finding(entry, metric) : NULL;
    return finding ? finding->confirmed : "no finding";
}

/* The inventory keeps the second values, so that judging it again gives the same. */
static void assert_same_again(const struct inventory *inventory)
{
    struct inventory next = {0};
    struct judge *judge;
    struct err err = {0};
    struct strbuf first = {0}, second = {0};
    const struct judge_basis basis = {.config = made_config()};
    judge = judge_create(&basis, COUNT);
    assert_int_equal(judge_add_inventory(judge, inventory, &err), 0);
    judge_finish(judge, &next);
    inventory_print(inventory, &first);
    inventory_print(&next, &second);
    assert_string_equal(first.data, second.data);
    judge_destroy(judge);
    strbuf_fini(&first);
    strbuf_fini(&second);
    inventory_fini(&next);
}

/* One figure that is bad in the first measurement; in the second it is `share` of that loss. */
static void second_measurement(void **state)
{
    (void)state;
    static const struct {
        double share;
        bool accused;
        const char *confirmed;
    } rows[] = {{1, true, "2 of 2"},    {0.6, true, "2 of 2"}, {1.5, true, "2 of 2"},
                {0.3, false, "1 of 2"}, {0, false, "1 of 2"},  {-1, false, "1 of 2"}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct gpu_result *gpus = made_fleet(COUNT, 7), *again = made_fleet(COUNT, 7);
        made_scale(&gpus[5], "l2.bandwidth.read", 0.8);
        made_scale(&again[5], "l2.bandwidth.read", 1 - 0.2 * rows[i].share);
        struct inventory inventory = judged(gpus, &again[5]);
        assert_string_equal(confirmed(&inventory, rows[i].accused, "l2.bandwidth.read"),
                            rows[i].confirmed);
        assert_int_equal(inventory.total_outliers, rows[i].accused);
        assert_same_again(&inventory);
        inventory_fini(&inventory);
        made_free(gpus, COUNT);
        made_free(again, COUNT);
    }
}

/* Figures of one memory confirm each other; figures of different parts do not. */
static void other_figures(void **state)
{
    (void)state;
    static const struct {
        const char *second;
        const char *confirmed; /* of main.bandwidth.read; "no": it is watched */
    } rows[] = {{NULL, "by its repetitions"},
                {"main.bandwidth.write", "by 2 figures"},
                {"l2.bandwidth.read", "by 2 figures"},
                {"host.bandwidth.h2d", "by its repetitions"}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct gpu_result *gpus = made_fleet(COUNT, 7);
        made_scale(&gpus[5], "main.bandwidth.read", 0.8);
        if (rows[i].second)
            made_scale(&gpus[5], rows[i].second, 0.8);
        struct inventory inventory = judged(gpus, NULL);
        bool accused = strcmp(rows[i].confirmed, "no") != 0;
        assert_string_equal(confirmed(&inventory, accused, "main.bandwidth.read"),
                            rows[i].confirmed);
        assert_int_equal(inventory.total_outliers, accused);
        assert_same_again(&inventory);
        inventory_fini(&inventory);
        made_free(gpus, COUNT);
    }
}

/* A rate of the units is measured once: it has no repetitions that could agree. */
static void measured_once(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(COUNT, 7);
    for (size_t i = 0; i < COUNT; i++)
        measures_add(&gpus[i].measures, "compute.rate.fp32", i == 5 ? 190 : 238.5, "", "m")
            ->spread = 0;
    struct inventory inventory = judged(gpus, NULL);
    assert_string_equal(confirmed(&inventory, false, "compute.rate.fp32"), "no");
    assert_int_equal(inventory.total_outliers, 0);
    inventory_fini(&inventory);
    made_free(gpus, COUNT);
}

/* A slow link is slow in both directions; what else the host copies slows one of them more. */
static void both_directions(void **state)
{
    (void)state;
    static const struct {
        double back;
        bool accused;
    } rows[] = {{0.8, true}, {0.88, true}, {0.93, false}, {1, false}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct gpu_result *gpus = made_fleet(COUNT, 7);
        made_scale(&gpus[5], "host.bandwidth.h2d", 0.8);
        made_scale(&gpus[5], "host.bandwidth.d2h", rows[i].back);
        struct inventory inventory = judged(gpus, NULL);
        assert_int_equal(inventory.total_outliers, rows[i].accused);
        if (rows[i].accused)
            assert_string_equal(confirmed(&inventory, true, "host.bandwidth.h2d"), "by 2 figures");
        else
            assert_non_null(
                made_finding(made_watched(&inventory, "GPU-005"), "host.bandwidth.h2d"));
        inventory_fini(&inventory);
        made_free(gpus, COUNT);
    }
}

/* The second measurement failed: other figures do not take its place, since what disturbed the GPU
 * may have disturbed all of them. */
static void failed_second_measurement(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(COUNT, 7);
    struct inventory inventory = {0};
    struct judge *judge;
    struct err err = {0};
    const struct judge_basis basis = {.config = made_config()};
    made_scale(&gpus[5], "main.bandwidth.read", 0.8);
    made_scale(&gpus[5], "main.bandwidth.write", 0.8);
    judge = judge_create(&basis, COUNT);
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(judge_add(judge, &gpus[i], &err), 0);
    judge_compare(judge);
    judge_end_again(judge);
    judge_finish(judge, &inventory);
    assert_string_equal(confirmed(&inventory, false, "main.bandwidth.read"), "no");
    assert_int_equal(inventory.total_outliers, 0);
    assert_same_again(&inventory);
    judge_destroy(judge);
    inventory_fini(&inventory);
    made_free(gpus, COUNT);
}

static void known_cause(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(COUNT, 7);
    made_scale(&gpus[5], "main.bandwidth.read", 0.7);
    made_scale(&gpus[5], "clock.memory", 0.7);
    struct inventory inventory = judged(gpus, NULL);
    assert_string_equal(confirmed(&inventory, true, "main.bandwidth.read"), "by its cause");
    inventory_fini(&inventory);
    made_free(gpus, COUNT);
}

/* The clock of GPU-005 is lower than most, but not unusual, and a throttle reason is reported. If
 * that reason is gone in the second measurement, the low clock is its usual one. */
static void throttle_reason(void **state)
{
    (void)state;
    static const struct {
        const char *second;
        bool accused;
    } rows[] = {{"power_cap", true}, {"none", false}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct gpu_result *gpus = made_fleet(COUNT, 7), *again = made_fleet(COUNT, 7);
        for (size_t g = 0; g < COUNT; g++) {
            made_scale(&gpus[g], "clock.sm", g % 4 == 1 ? 0.96 : g % 4 == 2 ? 1.04 : 1);
            facts_set_text(&gpus[g].health, "throttle", g == 5 ? "power_cap" : "none");
        }
        made_scale(&again[5], "clock.sm", 0.96);
        facts_set_text(&again[5].health, "throttle", rows[i].second);
        struct inventory inventory = judged(gpus, &again[5]);
        assert_string_equal(confirmed(&inventory, rows[i].accused, "clock.sm"),
                            rows[i].accused ? "2 of 2" : "1 of 2");
        assert_int_equal(inventory.total_outliers, rows[i].accused);
        assert_same_again(&inventory);
        inventory_fini(&inventory);
        made_free(gpus, COUNT);
        made_free(again, COUNT);
    }
}

/* Sizes are decided by many loads, and facts are read: nothing has to confirm them. */
static void nothing_to_confirm(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(COUNT, 7);
    made_scale(&gpus[5], "l1_data.size", 0.7);
    struct inventory inventory = judged(gpus, NULL);
    assert_null(confirmed(&inventory, true, "l1_data.size"));
    inventory_fini(&inventory);
    made_free(gpus, COUNT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(second_measurement),
        cmocka_unit_test(other_figures),
        cmocka_unit_test(measured_once),
        cmocka_unit_test(both_directions),
        cmocka_unit_test(failed_second_measurement),
        cmocka_unit_test(known_cause),
        cmocka_unit_test(nothing_to_confirm),
        cmocka_unit_test(throttle_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
