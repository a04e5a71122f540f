/* A finding that most GPUs of a node, a slot or a model share is listed once. */
#include "../check.h"

#include "made.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 64, NODE = 5 };

/* own: how many have an entry of their own beside it. */
static void expect_one(const struct inventory *inventory, const char *node, size_t gpus, size_t own,
                       const char *finding)
{
    if (inventory->node_finding_count != 1)
        fail_msg("%zu findings", inventory->node_finding_count);
    const struct inventory_node *found = &inventory->node_findings[0];
    if (node ? !found->node || strcmp(found->node, node) != 0 : found->node != NULL)
        fail_msg("of %s", found->node);
    if (!strstr(found->finding, finding))
        fail_msg("\"%s\"", found->finding);
    assert_true(found->action >= ACTION_ALERT);
    assert_int_equal(found->gpu_count, gpus);
    assert_int_equal(inventory->total_outliers, gpus);
    assert_int_equal(inventory->outlier_count, own);
    for (size_t i = 0; i < gpus; i++) {
        size_t k = 0;
        while (strcmp(inventory->gpus[k].uuid, found->gpus[i]) != 0)
            k++;
        assert_int_equal(inventory->gpus[k].status, GPU_OUTLIER);
    }
}

static void slow_node(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(COUNT, 1);
    for (size_t i = 0; i < MADE_PER_NODE; i++)
        made_scale(&gpus[NODE * MADE_PER_NODE + i], "host.bandwidth.h2d", 0.9);
    struct inventory inventory = made_judged(gpus, COUNT);
    expect_one(&inventory, "n05", 4, 0, "4 of 4 GPUs: host.bandwidth.h2d");
    assert_int_equal(inventory.node_findings[0].verdict, VERDICT_DEGRADED);
    inventory_fini(&inventory);
    made_free(gpus, COUNT);
}

/* The loss of each GPU could be chance, but not that of all four of one node. */
static void node_together(void **state)
{
    (void)state;
    size_t found = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct gpu_result *gpus = made_fleet(COUNT, seed);
        for (size_t i = 0; i < MADE_PER_NODE; i++)
            made_scale(&gpus[NODE * MADE_PER_NODE + i], "host.bandwidth.h2d", 0.955);
        struct inventory inventory = made_judged(gpus, COUNT);
        found += inventory.node_finding_count == 1 &&
                 strcmp(inventory.node_findings[0].node, "n05") == 0;
        assert_true(inventory.total_outliers <= 4);
        inventory_fini(&inventory);
        made_free(gpus, COUNT);
    }
    assert_true(found >= 15);
}

/* One very bad GPU is no bad node. */
static void one_of_a_node(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(COUNT, 2);
    made_scale(&gpus[NODE * MADE_PER_NODE], "host.bandwidth.h2d", 0.5);
    made_scale(&gpus[NODE * MADE_PER_NODE + 1], "host.bandwidth.h2d", 0.5);
    struct inventory inventory = made_judged(gpus, COUNT);
    assert_int_equal(inventory.node_finding_count, 0);
    assert_int_equal(inventory.outlier_count, 2);
    inventory_fini(&inventory);
    made_free(gpus, COUNT);
}

/* Nor if the losses of the others are as large as chance makes them on some node of many. */
static void one_and_chance(void **state)
{
    (void)state;
    static const double factors[] = {0.7, 0.97, 0.978, 0.986};
    struct gpu_result *gpus = made_fleet_of(COUNT, 3, 0, 0.01);
    struct gpu_result *node = &gpus[NODE * MADE_PER_NODE];
    struct inventory plain = made_judged(gpus, COUNT);
    double usual;
    assert_true(measures_value(&plain.models[0].memory, "main.bandwidth.read", &usual));
    inventory_fini(&plain);
    for (size_t i = 0; i < COUNT_OF(factors); i++)
        made_set(&node[i], "main.bandwidth.read", factors[i] * usual);
    struct inventory inventory = made_judged(gpus, COUNT);
    assert_int_equal(inventory.node_finding_count, 0);
    assert_int_equal(inventory.outlier_count, 1);
    inventory_fini(&inventory);
    made_free(gpus, COUNT);
}

/* Three GPUs of a node with three different faults are no bad node: the GPU that is only a little
 * worse is not accused because of the others. */
static void unlike_neighbours(void **state)
{
    (void)state;
    static const double factors[] = {0.94, 0.85, 0.975};
    struct gpu_result *gpus = made_fleet(COUNT, 7);
    struct gpu_result *node = &gpus[NODE * MADE_PER_NODE];
    struct inventory plain = made_judged(gpus, COUNT);
    double usual;
    assert_true(measures_value(&plain.models[0].memory, "main.bandwidth.read", &usual));
    inventory_fini(&plain);
    for (size_t i = 0; i < COUNT_OF(factors); i++)
        made_set(&node[i], "main.bandwidth.read", factors[i] * usual);
    made_scale(&node[0], "clock.memory", 0.94);
    struct inventory inventory = made_judged(gpus, COUNT);
    assert_int_equal(inventory.node_finding_count, 0);
    assert_int_equal(inventory.total_outliers, 2);
    assert_null(made_outlier(&inventory, node[2].uuid));
    assert_non_null(made_finding(made_watched(&inventory, node[2].uuid), "main.bandwidth.read"));
    inventory_fini(&inventory);
    made_free(gpus, COUNT);
}

static void node_settings(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(COUNT, 3);
    for (size_t i = 0; i < MADE_PER_NODE; i++)
        facts_set_text(&gpus[NODE * MADE_PER_NODE + i].board, "driver", "570.00");
    struct inventory inventory = made_judged(gpus, COUNT);
    expect_one(&inventory, "n05", 4, 0,
               "board.driver: driver 570.00, 60 of 64 of its model: 580.00");
    assert_int_equal(inventory.node_findings[0].verdict, VERDICT_MISCONFIGURED);
    inventory_fini(&inventory);
    /* Each GPU its own driver: that is not one thing to say of the node. */
    static const char *const drivers[] = {"1", "2", "3", "4"};
    for (size_t i = 0; i < MADE_PER_NODE; i++)
        facts_set_text(&gpus[NODE * MADE_PER_NODE + i].board, "driver", drivers[i]);
    inventory = made_judged(gpus, COUNT);
    assert_int_equal(inventory.node_finding_count, 0);
    assert_int_equal(inventory.outlier_count, 4);
    inventory_fini(&inventory);
    made_free(gpus, COUNT);
}

static void slot(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(COUNT, 4);
    for (size_t i = 2; i < COUNT - 2 * MADE_PER_NODE; i += MADE_PER_NODE) {
        facts_set_int(&gpus[i].config, "pcie_width", 8);
        made_scale(&gpus[i], "host.bandwidth.h2d", 0.5);
    }
    struct inventory inventory = made_judged(gpus, COUNT);
    assert_int_equal(inventory.node_finding_count, 2); /* the width, and what it costs */
    assert_int_equal(inventory.outlier_count, 14);     /* the width is wrong without peers */
    assert_int_equal(inventory.outliers[0].evidence_count, 1);
    assert_non_null(made_finding(&inventory.outliers[0], "config.pcie_width"));
    assert_int_equal(inventory.total_outliers, 14);
    assert_null(inventory.node_findings[0].node);
    assert_non_null(strstr(inventory.node_findings[0].finding,
                           "slot 0000:02:00.0, on 14 of 16 nodes of alpha-100: config.pcie_width: "
                           "PCIe link runs x8 of x16"));
    inventory_fini(&inventory);
    made_free(gpus, COUNT);
}

/* All faulty alike: one finding of the model, and each an outlier by a rule that needs no peers. */
static void whole_model(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(COUNT, 5);
    for (size_t i = 0; i < COUNT; i++)
        facts_set_int(&gpus[i].config, "pcie_gen", 3);
    struct inventory inventory = made_judged(gpus, COUNT);
    expect_one(&inventory, NULL, COUNT, COUNT,
               "64 of 64 GPUs of alpha-100: config.pcie_gen: PCIe link runs generation 3 of");
    assert_true(inventory.models[0].memory.count > 0); /* the topology is still there */
    inventory_fini(&inventory);
    made_free(gpus, COUNT);
}

/* A node, or a model, of which every GPU is failing has no healthy GPU, and says so of each. */
static void all_failing(void **state)
{
    (void)state;
    static const size_t counts[] = {2, 4, 6, COUNT};
    for (size_t c = 0; c < COUNT_OF(counts); c++) {
        struct gpu_result *gpus = made_fleet(counts[c], 9);
        for (size_t i = 0; i < counts[c]; i++)
            facts_set_bool(&gpus[i].health, "remap_pending", true);
        struct inventory inventory = made_judged(gpus, counts[c]);
        assert_int_equal(inventory.outlier_count, counts[c]);
        for (size_t i = 0; i < counts[c]; i++) {
            assert_int_equal(inventory.outliers[i].verdict, VERDICT_FAILING);
            assert_non_null(made_finding(&inventory.outliers[i], "health.remap_pending"));
        }
        inventory_fini(&inventory);
        made_free(gpus, counts[c]);
    }
}

/* Its own finding beside that of its node. */
static void both(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(COUNT, 6);
    for (size_t i = 0; i < MADE_PER_NODE; i++)
        made_scale(&gpus[NODE * MADE_PER_NODE + i], "host.bandwidth.h2d", 0.9);
    facts_set_bool(&gpus[NODE * MADE_PER_NODE].health, "remap_pending", true);
    struct inventory inventory = made_judged(gpus, COUNT);
    assert_int_equal(inventory.node_finding_count, 1);
    assert_int_equal(inventory.outlier_count, 1);
    assert_int_equal(inventory.outliers[0].evidence_count, 1);
    assert_int_equal(inventory.total_outliers, 4);
    inventory_fini(&inventory);
    made_free(gpus, COUNT);
}

/* GPUs of unknown model have no peers: each is listed by itself, with all its facts. */
static void without_model(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(MADE_PER_NODE, 8);
    for (size_t i = 0; i < MADE_PER_NODE; i++) {
        free(gpus[i].name);
        free(gpus[i].model_key);
        gpus[i].name = gpus[i].model_key = NULL;
        facts_set_bool(&gpus[i].health, "remap_pending", true);
    }
    struct inventory inventory = made_judged(gpus, MADE_PER_NODE);
    assert_int_equal(inventory.node_finding_count, 0);
    assert_int_equal(inventory.outlier_count, MADE_PER_NODE);
    assert_null(inventory.outliers[0].model);
    assert_true(facts_get(&inventory.gpus[0].health, "remap_pending")->flag);
    assert_int_equal(facts_int(&inventory.gpus[0].config, "power_limit_w", 0), 700);
    inventory_fini(&inventory);
    made_free(gpus, MADE_PER_NODE);
}

/* Two GPUs of a node that lose as much in one figure, for different reasons: two faults. */
static void two_faults(void **state)
{
    (void)state;
    static const struct {
        const char *own; /* a figure in which only the first one loses too */
        double factor;
        size_t places;
    } rows[] = {
        {"main.latency", 1.1, 0},       /* a slow memory, and one with less of it */
        {"main.latency", 1.0, 2},       /* the same in both: reads and writes */
        {"host.bandwidth.h2d", 0.6, 2}, /* has nothing to do with it */
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct gpu_result *gpus = made_fleet(COUNT, 1);
        for (size_t k = 0; k < 2; k++) {
            made_scale(&gpus[NODE * MADE_PER_NODE + k], "main.bandwidth.read", 0.87);
            made_scale(&gpus[NODE * MADE_PER_NODE + k], "main.bandwidth.write", 0.87);
        }
        made_scale(&gpus[NODE * MADE_PER_NODE], rows[i].own, rows[i].factor);
        for (size_t k = 2; k < MADE_PER_NODE; k++) /* two GPUs are all that the node has */
            gpus[NODE * MADE_PER_NODE + k].status = GPU_LOST;
        struct inventory inventory = made_judged(gpus, COUNT);
        if (inventory.node_finding_count != rows[i].places)
            fail_msg("row %zu: %zu places, %s", i, inventory.node_finding_count,
                     inventory.node_findings[0].finding);
        assert_int_equal(inventory.total_outliers, 2);
        inventory_fini(&inventory);
        made_free(gpus, COUNT);
    }
}

/* A whole node with one fault, and one GPU of it with another in the same memory. */
static void one_more_fault(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(COUNT, 1);
    for (size_t k = 0; k < MADE_PER_NODE; k++)
        made_scale(&gpus[NODE * MADE_PER_NODE + k], "main.bandwidth.read", 0.87);
    made_scale(&gpus[NODE * MADE_PER_NODE], "main.latency", 1.1);
    struct inventory inventory = made_judged(gpus, COUNT);
    assert_int_equal(inventory.node_finding_count, 1);
    assert_int_equal(inventory.node_findings[0].gpu_count, 3);
    assert_non_null(made_outlier(&inventory, "GPU-020"));
    assert_int_equal(inventory.total_outliers, 4);
    inventory_fini(&inventory);
    made_free(gpus, COUNT);
}

/* SM clocks that are lowered as much, one by heat and one by the power cap. */
static void two_throttles(void **state)
{
    (void)state;
    for (int same = 0; same < 2; same++) {
        struct gpu_result *gpus = made_fleet(COUNT, 1);
        for (size_t k = 0; k < MADE_PER_NODE; k++) {
            struct gpu_result *gpu = &gpus[NODE * MADE_PER_NODE + k];
            made_clock(gpu, 0.7);
            facts_set_text(&gpu->health, "throttle", same || k < 2 ? "sw_thermal" : "power_cap");
        }
        struct inventory inventory = made_judged(gpus, COUNT);
        if ((inventory.node_finding_count > 0) != same)
            fail_msg("%zu places", inventory.node_finding_count);
        assert_int_equal(inventory.total_outliers, MADE_PER_NODE);
        inventory_fini(&inventory);
        made_free(gpus, COUNT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_faults),     cmocka_unit_test(one_more_fault),
        cmocka_unit_test(two_throttles),  cmocka_unit_test(slow_node),
        cmocka_unit_test(node_together),  cmocka_unit_test(one_of_a_node),
        cmocka_unit_test(one_and_chance), cmocka_unit_test(unlike_neighbours),
        cmocka_unit_test(node_settings),  cmocka_unit_test(slot),
        cmocka_unit_test(whole_model),    cmocka_unit_test(both),
        cmocka_unit_test(without_model),  cmocka_unit_test(all_failing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
