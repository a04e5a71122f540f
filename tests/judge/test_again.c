/* The file is enough to judge again: an inventory that is read back and judged again gives the same
 * file, byte for byte. */
#include "../check.h"

#include "made.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "inventory/results.h"

static char *print(const struct inventory *inventory)
{
    struct strbuf text = {0};
    inventory_print(inventory, &text);
    assert_false(text.failed);
    return text.data;
}

static struct inventory read_back(const char *text)
{
    struct inventory inventory;
    struct err err = {0};
    if (inventory_read_text(text, strlen(text), "again", &inventory, &err))
        fail_msg("%d:%d: %s", err.line, err.column, err.text);
    return inventory;
}

static struct inventory judge_again(const struct inventory *judged, size_t parts)
{
    struct inventory again = {0};
    struct judge *judge;
    struct err err = {0};
    const struct judge_basis basis = {.config = made_config()};
    size_t count = 0;
    for (size_t i = 0; i < parts; i++)
        count += judged[i].gpu_count;
    judge = judge_create(&basis, count);
    for (size_t i = 0; i < parts; i++)
        assert_int_equal(judge_add_inventory(judge, &judged[i], &err), 0);
    judge_finish(judge, &again);
    judge_destroy(judge);
    again.version = str_copy("x");
    again.generated = str_copy("x");
    again.backend = str_copy("x");
    return again;
}

/* Some entry of `nodes` holds these words. */
static bool nodes_have(const struct inventory *inventory, const char *words)
{
    for (size_t i = 0; i < inventory->node_finding_count; i++)
        if (strstr(inventory->node_findings[i].finding, words))
            return true;
    return false;
}

/* Judged, written, read and judged again: the same file. */
static struct inventory judge_twice(const struct gpu_result *gpus, size_t count)
{
    struct inventory first = made_judged(gpus, count);
    first.version = str_copy("x");
    first.generated = str_copy("x");
    first.backend = str_copy("x");
    char *once = print(&first);
    struct inventory judged = read_back(once);
    struct inventory again = judge_again(&judged, 1);
    char *twice = print(&again);
    assert_string_equal(once, twice);
    free(once);
    free(twice);
    inventory_fini(&again);
    inventory_fini(&judged);
    return first;
}

static void judged_again(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(MADE_SPOILED, 3);
    made_spoil(gpus);
    struct inventory first = judge_twice(gpus, 64);
    assert_true(first.total_outliers >= 9);
    assert_true(nodes_have(&first, "VBIOS of alpha-100: "));
    assert_true(nodes_have(&first, "GPUs of alpha-100: l2.bandwidth.write about"));
    assert_non_null(made_finding(made_watched(&first, "GPU-029"), "main.bandwidth.read"));
    inventory_fini(&first);
    made_free(gpus, 64);
}

/* No healthy GPU; GPUs of unknown model. */
static void unusual_fleets(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(8, 5);
    for (size_t i = 0; i < 8; i++)
        gpus[i].status = GPU_BUSY;
    struct inventory inventory = judge_twice(gpus, 8);
    inventory_fini(&inventory);
    for (size_t i = 0; i < 8; i++) {
        gpus[i].status = GPU_OK;
        free(gpus[i].name);
        free(gpus[i].model_key);
        gpus[i].name = gpus[i].model_key = NULL;
        facts_set_bool(&gpus[i].health, "remap_pending", i % 2);
    }
    inventory = judge_twice(gpus, 8);
    assert_int_equal(inventory.total_outliers, 4);
    inventory_fini(&inventory);
    made_free(gpus, 8);
}

/* GPUs without UUID in a slot, a node and a divided model that are reported. */
static void without_uuid(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(64, 7);
    for (size_t i = 0; i < 64; i++) {
        facts_set_text(&gpus[i].board, "vbios", i % 2 ? "95.00" : "96.00");
        if (i % 4)
            continue;
        free(gpus[i].uuid);
        gpus[i].uuid = NULL;
    }
    for (size_t i = 20; i < 24; i++) {
        made_scale(&gpus[i], "host.bandwidth.h2d", 0.5);
        made_scale(&gpus[i], "host.bandwidth.d2h", 0.5);
        facts_set_bool(&gpus[i].health, "remap_pending", true);
    }
    struct inventory inventory = judge_twice(gpus, 64);
    assert_int_equal(inventory.total_outliers, 4);
    assert_true(nodes_have(&inventory, "VBIOS of alpha-100: "));
    size_t alone = 0;
    for (size_t i = 0; i < inventory.outlier_count; i++)
        alone += !inventory.outliers[i].uuid &&
                 made_finding(&inventory.outliers[i], "host.bandwidth.h2d");
    assert_int_equal(alone, 1);
    for (size_t i = 0; i < inventory.node_finding_count; i++)
        for (size_t k = 0; k < inventory.node_findings[i].gpu_count; k++)
            assert_non_null(inventory.node_findings[i].gpus[k]);
    inventory_fini(&inventory);
    made_free(gpus, 64);
}

static struct gpu_result result_of(const struct inventory *inventory, size_t gpu)
{
    struct inventory_lookup *lookup = NULL;
    struct gpu_result result = {0};
    lookup = inventory_lookup_create(inventory);
    inventory_result(lookup, &inventory->gpus[gpu], &result);
    inventory_lookup_destroy(lookup);
    return result;
}

static void forget(struct facts *facts, const char *key)
{
    struct facts kept = {0};
    for (size_t i = 0; i < facts->count; i++)
        if (strcmp(facts->items[i].key, key) != 0)
            facts_set(&kept, &facts->items[i]);
    facts_fini(facts);
    *facts = kept;
}

/* A fact that a GPU does not know is not taken from its model when the file is read. */
static void unknown_fact(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(8, 6);
    forget(&gpus[2].config, "power_limit_w");
    forget(&gpus[2].hardware, "sms");
    forget(&gpus[2].health, "remap_pending");
    for (size_t i = 0; i < 8; i++) /* no majority: the model's identity has the most frequent */
        facts_set_int(&gpus[i].hardware, "cores", (int64_t)(i < 4 ? 100 : 100 + i));
    forget(&gpus[2].hardware, "cores");
    facts_fini(&gpus[3].config); /* and a GPU that crashed with some figures */
    facts_fini(&gpus[3].health);
    gpus[3].status = GPU_CRASHED;
    struct inventory inventory = judge_twice(gpus, 8);
    struct gpu_result silent = result_of(&inventory, 2), crashed = result_of(&inventory, 3);
    struct gpu_result usual = result_of(&inventory, 4);
    assert_int_equal(facts_int(&usual.config, "power_limit_w", -1), 700);
    assert_int_equal(facts_int(&silent.config, "power_limit_w", -1), -1);
    assert_int_equal(facts_int(&silent.hardware, "sms", -1), -1);
    assert_int_equal(facts_int(&silent.hardware, "cores", -1), -1);
    assert_int_equal(facts_get(&silent.health, "remap_pending")->kind, FACT_UNKNOWN);
    assert_int_equal(facts_int(&silent.health, "nvlinks_active", -1), 18);
    assert_true(crashed.measures.count > 0);
    assert_int_equal(crashed.config.count + crashed.health.count, 0);
    gpu_result_fini(&silent);
    gpu_result_fini(&crashed);
    gpu_result_fini(&usual);
    inventory_fini(&inventory);
    made_free(gpus, 8);
}

/* Two partitions in two files: together they give what one survey of both would have given. */
static void parts(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(MADE_SPOILED, 4);
    made_spoil(gpus);
    struct inventory whole = made_judged(gpus, 64), judged[2];
    for (size_t i = 0; i < 2; i++) {
        struct inventory part = made_judged(gpus + 32 * i, 32);
        part.version = str_copy("x");
        part.generated = str_copy("x");
        part.backend = str_copy("x");
        char *text = print(&part);
        judged[i] = read_back(text);
        free(text);
        inventory_fini(&part);
    }
    struct inventory together = judge_again(judged, 2);
    assert_int_equal(together.total_outliers, whole.total_outliers);
    assert_int_equal(together.outlier_count, whole.outlier_count);
    assert_int_equal(together.node_finding_count, whole.node_finding_count);
    assert_int_equal(together.watch_count, whole.watch_count);
    assert_int_equal(together.total_unmeasured, whole.total_unmeasured);
    for (size_t i = 0; i < whole.outlier_count; i++) {
        const struct inventory_outlier *a = &whole.outliers[i], *b = &together.outliers[i];
        assert_string_equal(a->uuid, b->uuid);
        assert_int_equal(a->verdict, b->verdict);
        assert_int_equal(a->evidence_count, b->evidence_count);
        for (size_t f = 0; f < a->evidence_count; f++) {
            assert_string_equal(a->evidence[f].cause, b->evidence[f].cause);
            assert_true(a->evidence[f].expected == b->evidence[f].expected ||
                        (a->evidence[f].expected != a->evidence[f].expected &&
                         b->evidence[f].expected != b->evidence[f].expected));
        }
    }
    inventory_fini(&together);
    inventory_fini(&judged[0]);
    inventory_fini(&judged[1]);
    inventory_fini(&whole);
    made_free(gpus, 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(judged_again), cmocka_unit_test(unusual_fleets),
        cmocka_unit_test(without_uuid), cmocka_unit_test(unknown_fact), cmocka_unit_test(parts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
