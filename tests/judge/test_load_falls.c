/* What the sustained load shows of a GPU: falls, their reasons, and the curve that is kept. */
#include "made.h"

#include "../check.h"

#include <math.h>
#include <string.h>

#include "inventory/curves.h"

enum { COUNT = 12, POWER = 0x4, HEAT = 0x20, SLOWDOWN = 0x8 };

static const struct load_curve CURVE = {{{1, 1970, 700, 50, 60}, {10, 1600, 700, 85, 0}}, 2};

static struct measure *add(struct gpu_result *gpu, const char *metric, double value)
{
    struct measure *m = measures_add(&gpu->measures, metric, value, "", "test");
    assert_non_null(m);
    return m;
}

/* Every GPU is at its power cap and keeps 98 % of the clock of its first second. */
static void load(struct gpu_result *gpu, double first, double kept, double throttle)
{
    add(gpu, "load.flops", 600 * kept / 0.98);
    add(gpu, "load.clock.first", first);
    struct measure *steady = add(gpu, "load.clock.steady", first * kept);
    add(gpu, "load.clock.kept", kept);
    add(gpu, "load.throttle", throttle);
    facts_set_text(&steady->notes, "gpus_of_node", "together");
    facts_set_real(&steady->notes, "begun_after_s", 2.5);
    load_curve_put(&CURVE, &steady->notes);
}

static struct gpu_result *loaded(size_t count, size_t bad, double kept, double throttle)
{
    struct gpu_result *gpus = made_fleet(count, 3);
    for (size_t i = 0; i < count; i++)
        load(&gpus[i], 1970 + (double)(i % 3), i == bad ? kept : 0.98 + (double)(i % 2) / 1000,
             i == bad ? throttle : POWER);
    return gpus;
}

static const struct inventory_gpu *gpu_of(const struct inventory *inventory, const char *uuid)
{
    for (size_t i = 0; i < inventory->gpu_count; i++)
        if (strcmp(inventory->gpus[i].uuid, uuid) == 0)
            return &inventory->gpus[i];
    fail_msg("%s is not there", uuid);
    return NULL;
}

static const char *cause_of(const struct inventory_outlier *entry, const char *metric)
{
    assert_non_null(entry);
    const struct inventory_evidence *finding = made_finding(entry, metric);
    assert_non_null(finding);
    return finding->cause;
}

/* A GPU that falls is accused if that is seen again, with the reason that its peers do not have. */
static void a_fall_is_named(void **state)
{
    (void)state;
    struct gpu_result *gpus = loaded(COUNT, 5, 0.85, POWER | HEAT);
    const struct judge_basis basis = {.config = made_config()};
    struct inventory inventory = {0};
    struct err err = {0};
    assert_int_equal(made_judge(gpus, COUNT, true, &basis, &inventory, &err), 0);
    assert_int_equal(inventory.total_outliers, 1);
    const struct inventory_outlier *accused = made_outlier(&inventory, gpus[5].uuid);
    const char *cause = cause_of(accused, "load.clock.kept");
    assert_int_equal(accused->verdict, VERDICT_DEGRADED);
    if (!strstr(cause, "under load the SM clock fell from 1972 to 1676 MHz: sw_thermal") ||
        strstr(cause, "power_cap"))
        fail_msg("%s", cause);
    inventory_fini(&inventory);
    made_free(gpus, COUNT);
}

/* The power cap that all have is the reason of one whose clock falls further. */
static void a_usual_reason_is_named(void **state)
{
    (void)state;
    struct gpu_result *gpus = loaded(COUNT, 5, 0.85, POWER);
    const struct judge_basis basis = {.config = made_config()};
    struct inventory inventory = {0};
    struct err err = {0};
    assert_int_equal(made_judge(gpus, COUNT, true, &basis, &inventory, &err), 0);
    const struct inventory_outlier *accused = made_outlier(&inventory, gpus[5].uuid);
    static const char *const metrics[] = {"load.clock.kept", "load.flops"};
    for (size_t i = 0; i < COUNT_OF(metrics); i++)
        if (!strstr(cause_of(accused, metrics[i]), "fell from 1972 to 1676 MHz: power_cap"))
            fail_msg("%s: %s", metrics[i], cause_of(accused, metrics[i]));
    inventory_fini(&inventory);
    made_free(gpus, COUNT);
}

/* Slowdown by hardware needs no peers and no second measurement. */
static void hardware_accuses(void **state)
{
    (void)state;
    struct gpu_result *gpus = loaded(1, 0, 0.97, POWER | SLOWDOWN);
    struct inventory inventory = made_judged(gpus, 1);
    assert_int_equal(inventory.total_outliers, 1);
    const char *cause = cause_of(made_outlier(&inventory, gpus[0].uuid), "load.throttle");
    if (!strstr(cause, "hw_slowdown"))
        fail_msg("%s", cause);
    inventory_fini(&inventory);
    made_free(gpus, 1);
}

/* Without peers: 10 % are watched, if a reason is given; less, or without a reason, is not. */
static void alone_it_is_watched(void **state)
{
    (void)state;
    static const struct {
        double kept, throttle;
        bool watched;
    } rows[] = {{0.89, HEAT, true}, {0.91, HEAT, false}, {0.89, 0, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct gpu_result *gpus = loaded(1, 0, rows[i].kept, rows[i].throttle);
        struct inventory inventory = made_judged(gpus, 1);
        assert_int_equal(inventory.total_outliers, 0);
        const struct inventory_outlier *watched = made_watched(&inventory, gpus[0].uuid);
        if (rows[i].watched)
            assert_non_null(strstr(cause_of(watched, "load.clock.steady"), "sw_thermal"));
        else
            assert_null(watched);
        inventory_fini(&inventory);
        made_free(gpus, 1);
    }
}

static void healthy_loads_are_quiet(void **state)
{
    (void)state;
    struct gpu_result *gpus = loaded(COUNT, COUNT, 0, 0);
    struct inventory inventory = made_judged(gpus, COUNT);
    assert_int_equal(inventory.outlier_count + inventory.watch_count, 0);
    inventory_fini(&inventory);
    made_free(gpus, COUNT);
}

/* The inventory says of every GPU how its load began, and keeps the curves of bad ones only. */
static void curves_of_bad_gpus_are_kept(void **state)
{
    (void)state;
    struct gpu_result *gpus = loaded(COUNT, 5, 0.97, POWER | SLOWDOWN);
    struct inventory inventory = made_judged(gpus, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        const struct facts *kept = &gpu_of(&inventory, gpus[i].uuid)->load;
        assert_string_equal(facts_text(kept, "gpus_of_node"), "together");
        assert_true(facts_get(kept, "begun_after_s")->real == 2.5);
        struct load_curve curve = {0};
        assert_true(load_curve_read(kept, &curve) == (i == 5));
        if (i == 5)
            assert_memory_equal(curve.points, CURVE.points, 2 * sizeof *curve.points);
        else
            assert_null(facts_get(kept, "curve_s"));
    }
    inventory_fini(&inventory);
    made_free(gpus, COUNT);
}

static void curves_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        double values[3];
        size_t count;
    } bad[] = {{"curve_s", {0}, 0},      {"curve_s", {1}, 1},        {"curve_s", {2, 1}, 2},
               {"curve_s", {NAN, 1}, 2}, {"curve_c", {4, 4, 4}, 3},  {"curve_w", {-2, 3}, 2},
               {"curve_c", {4}, 1},      {"curve_mhz", {1, 2, 3}, 3}};
    struct load_curve curve;
    struct facts notes = {0};
    load_curve_put(&CURVE, &notes);
    assert_true(load_curve_read(&notes, &curve));
    assert_int_equal(curve.count, 2);
    assert_true(curve.points[1][LOAD_CURVE_MHZ] == 1600 && curve.points[1][LOAD_CURVE_C] == 85);
    assert_true(isnan(facts_get(&notes, "curve_memory_c")->numbers[1]));
    assert_true(curve.points[1][LOAD_CURVE_MEMORY_C] == 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        load_curve_put(&CURVE, &notes);
        facts_set_numbers(&notes, bad[i].key, bad[i].values, bad[i].count);
        if (load_curve_read(&notes, &curve))
            fail_msg("read: %s", bad[i].key);
        facts_remove(&notes, bad[i].key);
        assert_false(load_curve_read(&notes, &curve));
    }
    facts_fini(&notes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fall_is_named),         cmocka_unit_test(a_usual_reason_is_named),
        cmocka_unit_test(hardware_accuses),        cmocka_unit_test(alone_it_is_watched),
        cmocka_unit_test(healthy_loads_are_quiet), cmocka_unit_test(curves_of_bad_gpus_are_kept),
        cmocka_unit_test(curves_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
