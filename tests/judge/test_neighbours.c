/* Several models in one fleet, which must not be mixed, and nodes of eight GPUs. */
#include "../check.h"

#include "made.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"

static void set_model(struct gpu_result *gpu, const char *name, const char *key)
{
    free(gpu->name);
    free(gpu->model_key);
    gpu->name = str_copy(name);
    gpu->model_key = str_copy(key);
}

/* A model of the same name on another board is slower by a third: no fault. A slow GPU is compared
 * with its own model. */
static void twins(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(32, 11);
    for (size_t i = 0; i < 16; i++) {
        set_model(&gpus[i], "Alpha 100", "10de:1:2:Alpha 100");
        made_scale(&gpus[i], "main.bandwidth.read", 0.67);
        made_scale(&gpus[i], "main.bandwidth.write", 0.67);
        facts_set_int(&gpus[i].config, "power_limit_w", 350);
    }
    made_scale(&gpus[5], "main.bandwidth.read", 0.85);
    struct inventory inventory = made_judged(gpus, 32);
    assert_int_equal(inventory.model_count, 2);
    assert_int_equal(inventory.total_outliers, 1);
    assert_string_equal(inventory.outliers[0].uuid, "GPU-005");
    assert_string_equal(inventory.outliers[0].model, "alpha-100-2");
    assert_int_equal(inventory.node_finding_count, 0);
    inventory_fini(&inventory);
    made_free(gpus, 32);
}

/* Instances of partitioned GPUs are a model of their own; a whole GPU in MIG mode is a setting. */
static void partitioned(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(32, 12);
    for (size_t i = 0; i < 8; i++) {
        set_model(&gpus[i], "Alpha 100 MIG 1g.18gb", "10de:1:1:Alpha 100 MIG 1g.18gb");
        made_scale(&gpus[i], "main.bandwidth.read", 0.125);
        made_scale(&gpus[i], "l2.bandwidth.read", 0.125);
        facts_set_int(&gpus[i].hardware, "sms", 16);
        facts_set_int(&gpus[i].hardware, "memory_bytes", INT64_C(18844352512));
        facts_set_int(&gpus[i].config, "memory_free_bytes", INT64_C(18700000000));
        facts_set_bool(&gpus[i].config, "mig", true);
    }
    struct inventory inventory = made_judged(gpus, 32);
    assert_int_equal(inventory.model_count, 2);
    assert_int_equal(inventory.total_outliers, 0);
    assert_int_equal(inventory.node_finding_count, 0);
    inventory_fini(&inventory);
    facts_set_bool(&gpus[20].config, "mig", true);
    inventory = made_judged(gpus, 32);
    assert_int_equal(inventory.total_outliers, 1);
    assert_string_equal(inventory.outliers[0].evidence[0].cause,
                        "MIG on, 23 of 24 of its model: off");
    assert_int_equal(inventory.outliers[0].verdict, VERDICT_MISCONFIGURED);
    inventory_fini(&inventory);
    made_free(gpus, 32);
}

static void put_on_nodes_of_eight(struct gpu_result *gpus, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(gpus[i].node);
        free(gpus[i].pci);
        gpus[i].node = str_format("n%02zu", i / 8);
        gpus[i].pci = str_format("0000:%02zx:00.0", i % 8);
        gpus[i].index = (int32_t)(i % 8);
    }
}

/* All eight GPUs of a node are 6 % slow: one finding of the node that lists them. With only
 * one other node, the judge cannot tell which node is right, and the model is divided. */
static void node_of_eight(void **state)
{
    (void)state;
    for (size_t nodes = 2; nodes <= 8; nodes += 6) {
        size_t count = 8 * nodes;
        struct gpu_result *gpus = made_fleet(count, 13);
        put_on_nodes_of_eight(gpus, count);
        for (size_t i = 8; i < 16; i++)
            made_scale(&gpus[i], "main.bandwidth.read", 0.94);
        struct inventory inventory = made_judged(gpus, count);
        assert_int_equal(inventory.node_finding_count, 1);
        const struct inventory_node *node = &inventory.node_findings[0];
        assert_int_equal(node->gpu_count, 8);
        assert_int_equal(node->action >= ACTION_ALERT, nodes == 8);
        assert_int_equal(inventory.total_outliers, nodes == 8 ? 8 : 0);
        assert_non_null(strstr(node->finding, nodes == 8 ? "8 of 8 GPUs: main.bandwidth.read"
                                                         : "all on n01: the model is divided"));
        if (nodes == 8)
            assert_string_equal(node->node, "n01");
        inventory_fini(&inventory);
        made_free(gpus, count);
    }
}

/* The fourth slot of every node is 6 % slow. */
static void slot_of_eight(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(64, 14);
    put_on_nodes_of_eight(gpus, 64);
    for (size_t i = 3; i < 64; i += 8) {
        made_scale(&gpus[i], "host.bandwidth.h2d", 0.94);
        made_scale(&gpus[i], "host.bandwidth.d2h", 0.94);
    }
    struct inventory inventory = made_judged(gpus, 64);
    assert_int_equal(inventory.node_finding_count, 2); /* one for each direction */
    assert_non_null(strstr(inventory.node_findings[1].finding,
                           "slot 0000:03:00.0, on 8 of 8 nodes of alpha-100: host.bandwidth.h2d"));
    assert_int_equal(inventory.node_findings[1].gpu_count, 8);
    assert_int_equal(inventory.total_outliers, 8);
    inventory_fini(&inventory);
    made_free(gpus, 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(twins),
        cmocka_unit_test(partitioned),
        cmocka_unit_test(node_of_eight),
        cmocka_unit_test(slot_of_eight),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
