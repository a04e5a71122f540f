/* The rows of the catalogue make sense together. */
#include "../check.h"

#include <string.h>

#include "base/mem.h"
#include "catalogue/facts.h"
#include "catalogue/metrics.h"

static void every_health_fact_has_a_row(void **state)
{
    (void)state;
    for (size_t i = 0; i < HEALTH_FACTS; i++) {
        const struct health_row *row = &catalogue_health[i];
        if (!row->key || !row->words)
            fail_msg("health fact %zu has no row, or no words", i);
        print_message("%s\n", row->key);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(row->key, catalogue_health[k].key);
        assert_int_equal(row->nvml.shape != NVML_SHAPE_NONE, row->nvml.symbol != NULL);
        if (row->nvml.symbol)
            assert_memory_equal(row->nvml.symbol, "nvmlDevice", 10);
        /* A flag has no number that a finding could name. */
        if (row->rule && row->is_flag)
            assert_non_null(row->finding);
        if (row->growth.rule)
            assert_true(row->growth.least > 0);
        if (row->growth.rule == GROWTH_COMPARED)
            assert_true(row->growth.very_many > row->growth.least);
        if (row->growth.rule == GROWTH_BY_RULE)
            assert_int_equal(row->rule, RULE_FAULT);
        assert_true(row->sim.min <= row->sim.healthy);
    }
}

static void settings_are_found(void **state)
{
    (void)state;
    static const struct {
        enum inventory_facts set;
        const char *key;
        struct fact_manner manner;
    } cases[] = {
        {INVENTORY_CONFIG, "a setting without a row", {COMPARED_DIFFERENT, VERDICT_MISCONFIGURED}},
        {INVENTORY_CONFIG, "pcie_width", {COMPARED_LOWER, VERDICT_DEGRADED}},
        {INVENTORY_CONFIG, "ecc_pending", {COMPARED_NOT, 0}},
        {INVENTORY_CONFIG, "power_limit_w", {COMPARED_DIFFERENT, VERDICT_MISCONFIGURED, true}},
        {INVENTORY_BOARD, "serial", {COMPARED_NOT, 0}},
        {INVENTORY_BOARD, "vbios", {COMPARED_DIFFERENT, VERDICT_MISCONFIGURED, true}},
        {INVENTORY_HARDWARE, "sms", {COMPARED_DIFFERENT, VERDICT_MISMATCHED}},
        {INVENTORY_HEALTH, "nvlinks_active", {COMPARED_LOWER, VERDICT_FAILING}},
        {INVENTORY_HEALTH, "temperature_c", {COMPARED_NOT, 0}},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct fact_manner manner = catalogue_manner(cases[i].set, cases[i].key);
        print_message("%s\n", cases[i].key);
        assert_int_equal(manner.compared, cases[i].manner.compared);
        assert_int_equal(manner.by_board, cases[i].manner.by_board);
        if (manner.compared != COMPARED_NOT)
            assert_int_equal(manner.verdict, cases[i].manner.verdict);
    }
    for (size_t i = 0; i < catalogue_setting_count; i++)
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(catalogue_settings[i].key, catalogue_settings[k].key);
    assert_string_equal(catalogue_words("ecc"), "ECC");
    assert_null(catalogue_words("persistence"));
    assert_non_null(catalogue_moment_unit("power_draw_w"));
    assert_null(catalogue_moment_unit("remap_pending"));
}

static void metrics_are_sound(void **state)
{
    (void)state;
    for (size_t i = 0; i < metric_row_count; i++) {
        const struct metric_row *row = &metric_rows[i];
        print_message("%s\n", row->key);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(row->key, metric_rows[k].key);
        assert_true(row->accuse == 0 || row->accuse >= row->floor);
        assert_true(row->floor >= 0 && row->floor < 1);
        if (row->worse == JUDGE_NONE)
            assert_true(row->floor == 0 && row->peak_share == 0);
        assert_true(!row->is_name || row->worse == JUDGE_NONE);
    }
}

static void names_are_no_quantities(void **state)
{
    (void)state;
    assert_true(metric_is_name("compute.digest.wgmma_fp8", NULL));
    assert_true(metric_is_name("compute.wrong_at.int", ""));
    assert_true(metric_is_name("main.whole.first_error", "B"));
    assert_true(metric_is_name("sm.of_an_older_program", "id"));
    assert_false(metric_is_name("compute.wrong_on.int", ""));
    assert_false(metric_is_name("sm.of_an_older_program", NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_health_fact_has_a_row),
        cmocka_unit_test(settings_are_found),
        cmocka_unit_test(metrics_are_sound),
        cmocka_unit_test(names_are_no_quantities),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
