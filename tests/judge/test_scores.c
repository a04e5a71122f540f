/* Figures against the fleet: which GPUs are accused or watched; none is accused by chance. */
#include "../check.h"

#include "made.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/str.h"

enum { COUNT = 256, SUSPECT = 37 };
static const char suspect[] = "GPU-037";

/* Makes the suspect the average GPU in the metric, times a factor. */
static void set_to_usual(struct gpu_result *gpus, const char *metric, double factor)
{
    struct inventory plain = made_judged(gpus, COUNT);
    double usual;
    assert_true(measures_value(&plain.models[0].memory, metric, &usual));
    inventory_fini(&plain);
    made_clock(&gpus[SUSPECT], 1980 / measures_get(&gpus[SUSPECT].measures, "clock.sm")->value);
    made_set(&gpus[SUSPECT], metric, usual * factor);
}

/* One deviation each: is the GPU accused, watched or left alone? */
static void deviations(void **state)
{
    (void)state;
    enum listed { LEFT, WATCHED, ACCUSED };
    static const struct {
        const char *metric;
        double factor;
        enum listed listed;
    } cases[] = {
        {"main.latency", 1.2, ACCUSED},
        {"main.latency", 0.8, LEFT}, /* faster is not degraded */
        {"main.latency", 1.0, LEFT},
        {"main.bandwidth.read", 0.92, ACCUSED},
        {"main.bandwidth.read", 0.975, WATCHED}, /* five standard deviations are not sure enough */
        {"main.bandwidth.read", 0.99, LEFT},
        {"main.bandwidth.read", 1.1, LEFT},
        {"l1_data.size", 0.75, ACCUSED},
        {"l1_data.size", 1.25, LEFT},
        {"l1_data.line", 0.5, ACCUSED}, /* any change counts */
        {"l1_data.line", 2, ACCUSED},
        {"sm.l1_worst", 1.05, ACCUSED}, /* one slow SM; all others agree to the digit */
        {"sm.l1_worst", 1.02, ACCUSED},
        {"sm.l1_worst", 1.005, LEFT},
        {"clock.sm", 0.6, ACCUSED},
        {"clock.memory", 1.2, LEFT},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct gpu_result *gpus = made_fleet(COUNT, 1);
        set_to_usual(gpus, cases[i].metric, cases[i].factor);
        struct inventory inventory = made_judged(gpus, COUNT);
        bool accused = made_finding(made_outlier(&inventory, suspect), cases[i].metric);
        bool watched = made_finding(made_watched(&inventory, suspect), cases[i].metric);
        if (accused != (cases[i].listed == ACCUSED) || watched != (cases[i].listed == WATCHED))
            fail_msg("%s x %g: %s", cases[i].metric, cases[i].factor,
                     accused   ? "accused"
                     : watched ? "watched"
                               : "left");
        assert_int_equal(inventory.total_outliers, accused);
        assert_int_equal(inventory.gpus[SUSPECT].status, accused ? GPU_OUTLIER : GPU_OK);
        inventory_fini(&inventory);
        made_free(gpus, COUNT);
    }
}

/* The same GPUs at their own clocks, 8 % apart: a loss of 5 % in a figure that follows the clock is
 * found at every one of them, and no GPU is accused for its clock. */
static void equal_clock(void **state)
{
    (void)state;
    for (size_t i = 0; i < 40; i++) {
        struct gpu_result *gpus = made_fleet(COUNT, 100 + i);
        made_scale(&gpus[SUSPECT], "l2.bandwidth.read", 0.95);
        made_scale(&gpus[SUSPECT], "l2.bandwidth.write", 0.95);
        made_scale(&gpus[SUSPECT + 1], "main.latency", 1.05);
        made_scale(&gpus[SUSPECT + 1], "main.bandwidth.read", 0.95);
        struct inventory inventory = made_judged(gpus, COUNT);
        assert_non_null(made_finding(made_outlier(&inventory, suspect), "l2.bandwidth.read"));
        assert_non_null(made_finding(made_outlier(&inventory, "GPU-038"), "main.latency"));
        assert_int_equal(inventory.total_outliers, 2);
        const struct inventory_evidence *finding =
            made_finding(made_outlier(&inventory, suspect), "l2.bandwidth.read");
        double clock = measures_get(&gpus[SUSPECT].measures, "clock.sm")->value / 1980;
        assert_true(fabs(finding->expected / (5900 * clock) - 1) < 0.01); /* at its own clock */
        inventory_fini(&inventory);
        made_free(gpus, COUNT);
    }
}

/* By chance a figure can seem to fall faster than the clock. At a sixth of the clock a sixth of the
 * figure is expected all the same, not 0. */
static void steep_share(void **state)
{
    (void)state;
    const double share = 1.15, usual = 5900;
    struct gpu_result *gpus = made_fleet(COUNT, 12);
    for (size_t i = 0; i < COUNT; i++) {
        double ratio = measures_get(&gpus[i].measures, "clock.sm")->value / 1980;
        made_scale(&gpus[i], "l2.bandwidth.read", (1 + share * (ratio - 1)) / ratio);
    }
    made_set(&gpus[SUSPECT], "clock.sm", 1980 / 6.0);
    made_set(&gpus[SUSPECT], "l2.bandwidth.read", usual / 12);
    struct inventory inventory = made_judged(gpus, COUNT);
    const struct inventory_evidence *finding =
        made_finding(made_outlier(&inventory, suspect), "l2.bandwidth.read");
    assert_non_null(finding);
    assert_true(fabs(finding->expected / (usual / 6) - 1) < 0.05);
    assert_true(fabs(finding->deviation + 0.5) < 0.05);
    inventory_fini(&inventory);
    made_free(gpus, COUNT);
}

/* A GPU is not accused for a figure with a large spread, nor for a noisy one. */
static void own_spread_protects(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(COUNT, 2);
    struct measure *m = NULL;
    made_scale(&gpus[SUSPECT], "main.latency", 1.2);
    for (size_t i = 0; i < gpus[SUSPECT].measures.count; i++)
        if (strcmp(gpus[SUSPECT].measures.items[i].metric, "main.latency") == 0)
            m = &gpus[SUSPECT].measures.items[i];
    m->spread = 80;
    struct inventory inventory = made_judged(gpus, COUNT);
    assert_int_equal(inventory.total_outliers, 0);
    inventory_fini(&inventory);
    m->spread = 0.5;
    measure_set_status(m, MEASURE_NOISY, "two methods disagree");
    inventory = made_judged(gpus, COUNT);
    assert_int_equal(inventory.total_outliers, 0);
    assert_non_null(made_finding(made_watched(&inventory, suspect), "main.latency"));
    inventory_fini(&inventory);
    measure_set_status(m, MEASURE_OK, NULL);
    inventory = made_judged(gpus, COUNT);
    assert_int_equal(inventory.total_outliers, 1);
    inventory_fini(&inventory);
    made_free(gpus, COUNT);
}

/* Two of three rounds were disturbed alike: the median is off by all of it, the spread is half. */
static void two_rounds_disturbed(void **state)
{
    (void)state;
    static const double factors[] = {0.97, 0.9, 0.5};
    for (size_t i = 0; i < COUNT_OF(factors); i++) {
        struct gpu_result *gpus = made_fleet(COUNT, 3);
        set_to_usual(gpus, "main.bandwidth.read", factors[i]);
        for (size_t k = 0; k < gpus[SUSPECT].measures.count; k++) {
            struct measure *m = &gpus[SUSPECT].measures.items[k];
            if (strcmp(m->metric, "main.bandwidth.read") == 0)
                m->spread = (1 / factors[i] - 1) / 2 * m->value;
        }
        struct inventory inventory = made_judged(gpus, COUNT);
        assert_int_equal(inventory.total_outliers, 0);
        assert_null(made_finding(made_watched(&inventory, suspect), "main.bandwidth.read"));
        inventory_fini(&inventory);
        made_free(gpus, COUNT);
    }
}

/* Repetitions that scatter in one figure are a disturbance; in several they are the GPU. */
static void unsteady(void **state)
{
    (void)state;
    static const char *const metrics[] = {"main.bandwidth.read", "host.bandwidth.h2d",
                                          "l2.bandwidth.read"};
    struct gpu_result *gpus = made_fleet(COUNT, 3);
    for (size_t k = 0; k < 3; k++) {
        for (size_t i = 0; i < gpus[SUSPECT].measures.count; i++) {
            struct measure *m = &gpus[SUSPECT].measures.items[i];
            if (strcmp(m->metric, metrics[k]) == 0)
                m->spread = 0.05 * m->value;
        }
        struct inventory inventory = made_judged(gpus, COUNT);
        assert_int_equal(inventory.total_outliers, k == 2);
        if (k == 2) {
            const struct inventory_outlier *outlier = made_outlier(&inventory, suspect);
            assert_int_equal(outlier->verdict, VERDICT_UNSTEADY);
            assert_non_null(made_finding(outlier, "host.bandwidth.h2d.spread"));
        }
        inventory_fini(&inventory);
    }
    made_free(gpus, COUNT);
}

/* Half of the fleet is slow: the judge cannot tell which half is right. It accuses no GPU and
 * reports the slow half. */
static void half_faulty(void **state)
{
    (void)state;
    static const struct {
        size_t count;
        double factor;
        bool divided;
    } rows[] = {{256, 0.7, true}, {256, 0.95, true}, {8, 0.85, true},
                {6, 0.85, true},  {256, 1, false},   {16, 0.985, false}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct gpu_result *gpus = made_fleet(rows[i].count, 4);
        for (size_t k = 0; k < rows[i].count; k += 2)
            made_scale(&gpus[k], "main.bandwidth.read", rows[i].factor);
        struct inventory inventory = made_judged(gpus, rows[i].count);
        const struct inventory_node *node = inventory.node_findings;
        if (inventory.node_finding_count != rows[i].divided || inventory.total_outliers)
            fail_msg("row %zu: %zu reported, %u accused: %s", i, inventory.node_finding_count,
                     inventory.total_outliers, node ? node->finding : "");
        if (rows[i].divided && node->gpu_count != rows[i].count / 2)
            fail_msg("row %zu: %s", i, node->finding);
        assert_true(!rows[i].divided ||
                    (strstr(node->finding, "GPUs of alpha-100: main.bandwidth.read about") &&
                     strstr(node->finding, "the model is divided") && node->action < ACTION_ALERT));
        for (size_t k = 0; k < (node ? node->gpu_count : 0); k++)
            assert_string_equal(node->gpus[k], gpus[2 * k].uuid);
        inventory_fini(&inventory);
        made_free(gpus, rows[i].count);
    }
}

/* Small healthy models are not divided. Models that scatter are divided only by chance. */
static void no_groups(void **state)
{
    (void)state;
    enum { SEEDS = 300 };
    static const char metric[] = "main.bandwidth.read";
    size_t scattered = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        size_t count = 6 + seed % 12;
        struct gpu_result *gpus = made_fleet(count, seed);
        struct inventory inventory = made_judged(gpus, count);
        struct rng rng;
        rng_init(&rng, seed, "camps");
        if (inventory.node_finding_count)
            fail_msg("seed %u: %s", (unsigned)seed, inventory.node_findings[0].finding);
        inventory_fini(&inventory);
        for (size_t i = 0; i < count; i++)
            made_scale(&gpus[i], metric, 1 + 0.05 * rng_normal(&rng));
        inventory = made_judged(gpus, count);
        for (size_t i = 0; i < inventory.node_finding_count; i++)
            scattered += strstr(inventory.node_findings[i].finding, "divided") != NULL;
        inventory_fini(&inventory);
        made_free(gpus, count);
    }
    if (scattered > SEEDS / 100)
        fail_msg("%zu of %d models that only scatter are divided", scattered, SEEDS);
}

/* The figures scatter without forming groups: reported as scattered. */
static void scattered(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(COUNT, 4);
    for (size_t i = 0; i < COUNT; i++)
        made_scale(&gpus[i], "main.bandwidth.read", 0.7 + 0.3 * (double)(i * 7 % COUNT) / COUNT);
    struct inventory inventory = made_judged(gpus, COUNT);
    assert_int_equal(inventory.node_finding_count, 1);
    assert_non_null(strstr(inventory.node_findings[0].finding,
                           "256 GPUs of alpha-100: main.bandwidth.read scatters by"));
    assert_false(inventory.node_findings[0].action >= ACTION_ALERT);
    inventory_fini(&inventory);
    made_free(gpus, COUNT);
}

/* 2 % less, with the clocks and the scatter of the real H200 cards: accused, also among few. */
static void two_percent(void **state)
{
    (void)state;
    static const size_t counts[] = {12, 64, 256};
    for (uint64_t seed = 0; seed < 30; seed++) {
        size_t count = counts[seed % COUNT_OF(counts)];
        struct gpu_result *gpus = made_fleet_of(count, 2000 + seed, 0.001, 0.001);
        made_scale(&gpus[3], "main.bandwidth.read", 0.98);
        made_scale(&gpus[3], "main.bandwidth.write", 0.98);
        made_scale(&gpus[8], "sm.l1_worst", 1.02);
        struct inventory inventory = made_judged(gpus, count);
        assert_int_equal(inventory.outlier_count, 2);
        assert_non_null(made_finding(made_outlier(&inventory, "GPU-003"), "main.bandwidth.read"));
        assert_non_null(made_finding(made_outlier(&inventory, "GPU-008"), "sm.l1_worst"));
        inventory_fini(&inventory);
        made_free(gpus, count);
    }
}

/* Whole numbers of cycles are equal on most GPUs. One step is no finding, three are. */
static void whole_numbers(void **state)
{
    (void)state;
    static const size_t counts[] = {6, 12, 256};
    for (size_t i = 0; i < COUNT_OF(counts); i++)
        for (int steps = 1; steps < 4; steps += 2) {
            struct gpu_result *gpus = made_fleet(counts[i], 5);
            for (size_t k = 0; k < counts[i]; k++)
                made_set(&gpus[k], "l1_data.latency", k == 3 ? 32 + steps : 32);
            struct inventory inventory = made_judged(gpus, counts[i]);
            const struct inventory_outlier *named = made_outlier(&inventory, "GPU-003");
            if (!named)
                named = made_watched(&inventory, "GPU-003");
            assert_true((steps == 1) == !made_finding(named, "l1_data.latency"));
            inventory_fini(&inventory);
            made_free(gpus, counts[i]);
        }
}

/* Small fleets do not show well how far healthy GPUs scatter: nobody is accused for that. */
static void small_fleets(void **state)
{
    (void)state;
    enum { GPUS = 3000 };
    static const double scatters[] = {0.001, 0.002, 0.005, 0.01};
    for (size_t k = 0; k < COUNT_OF(scatters); k++)
        for (size_t count = 5; count <= 12; count++)
            for (uint64_t seed = 0; seed < GPUS / count / 8; seed++) {
                struct gpu_result *gpus = made_fleet_of(count, 3000 + seed, 0.001, scatters[k]);
                struct inventory inventory = made_judged(gpus, count);
                assert_int_equal(inventory.total_outliers, 0);
                assert_int_equal(inventory.node_finding_count, 0);
                inventory_fini(&inventory);
                made_free(gpus, count);
            }
}

/* As soon as five GPUs were measured: also if fewer than five of them are good. */
static void bad_among_few(void **state)
{
    (void)state;
    for (size_t count = 5; count <= 7; count++)
        for (uint64_t seed = 0; seed < 10; seed++) {
            struct gpu_result *gpus = made_fleet_of(count, 4000 + seed, 0.001, 0.001);
            made_scale(&gpus[0], "main.bandwidth.read", 0.9);
            made_scale(&gpus[0], "main.bandwidth.write", 0.9);
            made_scale(&gpus[count - 1], "l2.bandwidth.read", 0.9);
            made_scale(&gpus[count - 1], "l2.bandwidth.write", 0.9);
            struct inventory inventory = made_judged(gpus, count);
            assert_int_equal(inventory.total_outliers, 2);
            assert_non_null(made_outlier(&inventory, gpus[0].uuid));
            assert_non_null(made_outlier(&inventory, gpus[count - 1].uuid));
            inventory_fini(&inventory);
            made_free(gpus, count);
        }
}

/* Degrees of freedom 0: normal. */
static double draw(struct rng *rng, int dof)
{
    double squares = 0, value = rng_normal(rng);
    for (int i = 0; i < dof; i++)
        squares += pow(rng_normal(rng), 2);
    return dof ? value / sqrt(squares / dof) : value;
}

/* Healthy fleets with heavier and heavier tails between GPUs: the false accusations promised are
 * 0.01 per survey. */
static void no_false_alarms(void **state)
{
    (void)state;
    enum { FLEETS = 20, SIZE = 512 };
    static const int dofs[] = {0, 10, 6};
    static const char *const metrics[] = {
        "main.latency",       "main.bandwidth.read", "l2.latency",   "l2.bandwidth.read",
        "host.bandwidth.h2d", "l1_data.latency",     "sm.l1_latency"};
    for (size_t d = 0; d < COUNT_OF(dofs); d++) {
        size_t accused = 0, watched = 0;
        for (uint64_t seed = 0; seed < FLEETS; seed++) {
            struct rng rng;
            struct gpu_result *gpus = made_fleet(SIZE, 1000 + seed);
            rng_init(&rng, seed, "tails");
            for (size_t i = 0; i < SIZE && dofs[d]; i++)
                for (size_t k = 0; k < COUNT_OF(metrics); k++)
                    made_scale(&gpus[i], metrics[k], 1 + 0.005 * draw(&rng, dofs[d]));
            struct inventory inventory = made_judged(gpus, SIZE);
            accused += inventory.total_outliers;
            watched += inventory.watch_count;
            inventory_fini(&inventory);
            made_free(gpus, SIZE);
        }
        print_message("tails of %d degrees: %zu accused, %zu watched of %d\n", dofs[d], accused,
                      watched, FLEETS * SIZE);
        assert_int_equal(accused, 0);
        if (!dofs[d])
            assert_true(watched < FLEETS * SIZE / 200);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deviations),
        cmocka_unit_test(equal_clock),
        cmocka_unit_test(steep_share),
        cmocka_unit_test(own_spread_protects),
        cmocka_unit_test(two_rounds_disturbed),
        cmocka_unit_test(unsteady),
        cmocka_unit_test(half_faulty),
        cmocka_unit_test(scattered),
        cmocka_unit_test(no_groups),
        cmocka_unit_test(two_percent),
        cmocka_unit_test(whole_numbers),
        cmocka_unit_test(small_fleets),
        cmocka_unit_test(bad_among_few),
        cmocka_unit_test(no_false_alarms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
