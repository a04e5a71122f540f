/* GPUs of one model whose SMs are placed otherwise on the die: they read less of L2, and nothing is
 * wrong with them. */
#include "../check.h"

#include "made.h"

#include <stdio.h>
#include <string.h>

static const char READ[] = "l2.bandwidth.read";

enum { USUAL = 16, FEW_SMS = 12 };

/* Every `every`th GPU has a group of 12 SMs and reads 1.8 % less; 0: none. */
static struct gpu_result *make_fleet(size_t count, size_t every, double scatter, uint64_t seed)
{
    struct gpu_result *gpus = made_fleet_of(count, seed, 0, scatter);
    for (size_t i = 0; i < count; i++) {
        bool other = every && i % every == 0;
        measures_add(&gpus[i].measures, "sm.group_sms", other ? FEW_SMS : USUAL, "", "m");
        if (other)
            made_scale(&gpus[i], READ, 0.982);
    }
    return gpus;
}

static const struct inventory_evidence *told(const struct inventory *inventory, const char *uuid)
{
    const struct inventory_outlier *found = made_outlier(inventory, uuid);
    return made_finding(found ? found : made_watched(inventory, uuid), READ);
}

static void nobody_is_told(void **state)
{
    (void)state;
    static const size_t counts[] = {8, 11, 64, 400}, every[] = {2, 5, 8, 400};
    for (size_t c = 0; c < COUNT_OF(counts); c++)
        for (size_t e = 0; e < COUNT_OF(every); e++) {
            struct gpu_result *gpus = make_fleet(counts[c], every[e], 0.001, 40 + 4 * c + e);
            struct inventory inventory = made_judged(gpus, counts[c]);
            assert_int_equal(inventory.outlier_count, 0);
            assert_int_equal(inventory.watch_count, 0);
            inventory_fini(&inventory);
            made_free(gpus, counts[c]);
        }
}

/* The others are not hidden behind them, nor one of them that loses more. */
static void losses_are_seen(void **state)
{
    (void)state;
    for (size_t lost = 1; lost <= 10; lost += 9) { /* a usual GPU, and one with a group of 12 */
        struct gpu_result *gpus = make_fleet(40, 5, 0.001, 7);
        made_scale(&gpus[lost], READ, 0.97);
        struct inventory inventory = made_judged(gpus, 40);
        char uuid[16];
        snprintf(uuid, sizeof uuid, "GPU-%03zu", lost);
        const struct inventory_evidence *found = told(&inventory, uuid);
        assert_non_null(found);
        assert_true(found->deviation > -0.034 && found->deviation < -0.026);
        assert_int_equal(inventory.outlier_count + inventory.watch_count, 1);
        inventory_fini(&inventory);
        made_free(gpus, 40);
    }
}

/* One GPU alone has a group of 12: it may be built so, within a few per cent, but not more. */
static void the_only_one(void **state)
{
    (void)state;
    static const struct {
        double factor;
        bool told;
    } cases[] = {{0.982, false}, {1, false}, {0.97, false}, {0.94, true}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct gpu_result *gpus = make_fleet(24, 0, 0.001, 11);
        made_set(&gpus[3], "sm.group_sms", FEW_SMS);
        made_scale(&gpus[3], READ, cases[i].factor);
        struct inventory inventory = made_judged(gpus, 24);
        assert_int_equal(told(&inventory, "GPU-003") != NULL, cases[i].told);
        assert_int_equal(inventory.outlier_count, 0);
        inventory_fini(&inventory);
        made_free(gpus, 24);
    }
}

/* All of one place lose more than any placement costs: that is a loss. */
static void a_whole_place(void **state)
{
    (void)state;
    struct gpu_result *gpus = make_fleet(40, 5, 0.001, 7);
    for (size_t i = 0; i < 40; i += 5)
        made_scale(&gpus[i], READ, 0.95);
    struct inventory inventory = made_judged(gpus, 40);
    assert_int_equal(inventory.outlier_count + inventory.watch_count, 8);
    assert_true(told(&inventory, "GPU-005")->deviation < -0.06);
    inventory_fini(&inventory);
    made_free(gpus, 40);
}

/* Each kind has its own usual place: GPUs of the other board all have a group of 12. */
static void two_boards(void **state)
{
    (void)state;
    struct gpu_result *gpus = make_fleet(40, 2, 0.001, 7);
    for (size_t i = 0; i < 40; i++)
        facts_set_text(&gpus[i].board, "part", i % 2 ? "692-001" : "692-000");
    made_scale(&gpus[10], READ, 0.97);
    struct inventory inventory = made_judged(gpus, 40);
    assert_non_null(told(&inventory, "GPU-010"));
    assert_int_equal(inventory.outlier_count + inventory.watch_count, 1);
    inventory_fini(&inventory);
    made_free(gpus, 40);
}

/* So many places that none is usual: all are compared with all. */
static void all_different(void **state)
{
    (void)state;
    struct gpu_result *gpus = make_fleet(24, 0, 0.001, 7);
    for (size_t i = 0; i < 24; i++)
        made_set(&gpus[i], "sm.group_sms", 10.0 + (double)i);
    made_scale(&gpus[3], READ, 0.96);
    struct inventory inventory = made_judged(gpus, 24);
    assert_non_null(told(&inventory, "GPU-003"));
    assert_int_equal(inventory.outlier_count + inventory.watch_count, 1);
    inventory_fini(&inventory);
    made_free(gpus, 24);
}

static void told_once_per_model(void **state)
{
    (void)state;
    struct gpu_result *gpus = make_fleet(40, 5, 0.0002, 7);
    struct inventory inventory = made_judged(gpus, 40);
    assert_int_equal(inventory.node_finding_count, 1);
    assert_non_null(
        strstr(inventory.node_findings[0].finding,
               "8 of 40 GPUs of alpha-100 have a group of 12 SMs: l2.bandwidth.read is 1.8 % less "
               "than with 16 in the smallest"));
    inventory_fini(&inventory);
    made_free(gpus, 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_is_told),     cmocka_unit_test(losses_are_seen),
        cmocka_unit_test(the_only_one),       cmocka_unit_test(a_whole_place),
        cmocka_unit_test(two_boards),         cmocka_unit_test(all_different),
        cmocka_unit_test(told_once_per_model)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
