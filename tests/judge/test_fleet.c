/* Grouping, consensus and order on fleets made by hand; small, empty and unmeasured ones. */
#include "../check.h"

#include "made.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/str.h"

static double value_of(const struct inventory *inventory, const char *metric)
{
    double value = NAN;
    assert_true(measures_value(&inventory->models[0].memory, metric, &value));
    return value;
}

static void consensus(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(24, 1);
    made_set(&gpus[7], "main.latency", 900);
    struct inventory inventory = made_judged(gpus, 24);
    assert_int_equal(inventory.model_count, 1);
    const struct inventory_model *model = &inventory.models[0];
    assert_string_equal(model->id, "alpha-100");
    assert_string_equal(model->key, "10de:1:1:Alpha 100");
    assert_int_equal(model->count, 24);
    assert_int_equal(facts_int(&model->identity, "sms", 0), 132);
    assert_int_equal(facts_int(&model->config, "power_limit_w", 0), 700);
    assert_string_equal(facts_text(&model->health, "throttle"), "none");
    assert_int_equal(measures_get(&model->memory, "main.latency")->gpus, 23);
    assert_true(fabs(value_of(&inventory, "main.latency") / 632 - 1) < 0.02);
    assert_true(measures_get(&model->memory, "l1_data.size")->confidence == 0.99);
    assert_string_equal(measures_get(&model->memory, "l1_data.shared_with")->words[0], "texture");
    assert_int_equal(measures_get(&model->memory, "texture.size")->status, MEASURE_UNSUPPORTED);
    assert_null(measures_get(&model->memory, "sm.l1_worst_sm")); /* a name has no median */
    inventory_fini(&inventory);
    made_free(gpus, 24);
}

/* A third of the GPUs is far off: neither consensus nor `expected` moves towards them. */
static void outliers_do_not_drag(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(60, 2);
    for (size_t i = 0; i < 60; i++)
        made_set(&gpus[i], "main.bandwidth.read", 4000 + (double)(i % 20));
    for (size_t i = 0; i < 18; i++)
        made_set(&gpus[i * 3], "main.bandwidth.read", 3000);
    struct inventory inventory = made_judged(gpus, 60);
    double healthy[60];
    size_t n = 0;
    for (size_t i = 0; i < 60; i++)
        if (i % 3 || i >= 54)
            healthy[n++] = 4000 + (double)(i % 20);
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += healthy[i];
    assert_int_equal(inventory.outlier_count, 18);
    double value = value_of(&inventory, "main.bandwidth.read");
    assert_true(fabs(value - sum / (double)n) < 3);
    assert_true(fabs(inventory.outliers[0].evidence[0].expected - value) < 1e-6);
    inventory_fini(&inventory);
    made_free(gpus, 60);
}

/* A single GPU's figures keep its own spread; what it failed to give is null, not absent. */
static void one_gpu(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(1, 3);
    measures_add(&gpus[0].measures, "main.latency", 632, "cycles", "m")->spread = 1;
    measures_add_missing(&gpus[0].measures, "l1_data.line", MEASURE_FAILED, "no step found");
    struct inventory inventory = made_judged(gpus, 1);
    assert_true(measures_get(&inventory.models[0].memory, "main.latency")->spread == 1);
    assert_non_null(measures_get(&inventory.models[0].memory, "sm.l1_worst_sm"));
    const struct inventory_gpu *out = &inventory.gpus[0];
    assert_string_equal(out->values[1].metric, "l1_data.line");
    assert_true(isnan(out->values[1].value) && isnan(out->values[1].spread));
    assert_int_equal(out->values[1].status, MEASURE_FAILED);
    assert_true(out->values[3].value == 632 && out->values[3].spread == 1);
    inventory_fini(&inventory);
    made_free(gpus, 1);
}

/* Too few GPUs to compare: none is accused, and no division by zero. A GPU that is much worse is
 * watched. */
static void small_fleets(void **state)
{
    (void)state;
    for (size_t count = 0; count < 5; count++) {
        struct gpu_result *gpus = made_fleet(count, 4);
        if (count)
            made_set(&gpus[0], "main.latency", 900);
        struct inventory inventory = made_judged(gpus, count);
        assert_int_equal(inventory.gpu_count, count);
        assert_int_equal(inventory.model_count, count ? 1 : 0);
        assert_int_equal(inventory.outlier_count, 0);
        assert_int_equal(inventory.node_finding_count,
                         count ? 1 : 0); /* an entry says that they are too few */
        assert_int_equal(inventory.watch_count, count > 1 ? 1 : 0);
        const struct inventory_evidence *finding =
            made_finding(made_watched(&inventory, "GPU-000"), "main.latency");
        assert_true(count < 2 ||
                    strstr(finding->cause, count == 2 ? "than the other one of its model"
                                                      : "of its model; too few to tell"));
        inventory_fini(&inventory);
        made_free(gpus, count);
    }
}

/* The best and the worst of 8 healthy H200s are not watched for their work under load. */
static void two_under_load(void **state)
{
    (void)state;
    static const struct {
        double flops;
        size_t watched;
    } rows[] = {{574, 0}, {500, 1}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct gpu_result *gpus = made_fleet(2, 4);
        measures_add(&gpus[0].measures, "load.flops", 636, "TFLOP/s", "m");
        measures_add(&gpus[1].measures, "load.flops", rows[i].flops, "TFLOP/s", "m");
        struct inventory inventory = made_judged(gpus, 2);
        assert_int_equal(inventory.watch_count, rows[i].watched);
        inventory_fini(&inventory);
        made_free(gpus, 2);
    }
}

static void eight_gpus(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct gpu_result *gpus = made_fleet(8, seed);
        struct inventory inventory = made_judged(gpus, 8);
        assert_int_equal(inventory.outlier_count, 0);
        inventory_fini(&inventory);
        made_scale(&gpus[3], "main.bandwidth.read", 0.8);
        inventory = made_judged(gpus, 8);
        assert_int_equal(inventory.outlier_count, 1);
        assert_string_equal(inventory.outliers[0].uuid, "GPU-003");
        inventory_fini(&inventory);
        made_free(gpus, 8);
    }
}

static void unmeasured(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(8, 5);
    gpus[2].status = GPU_CRASHED;
    gpus[2].reason = str_copy("signal 11");
    made_set(&gpus[2], "main.latency", 9000); /* what it had measured must not count */
    facts_set_bool(&gpus[2].health, "remap_pending", true);
    free(gpus[3].name);
    free(gpus[3].model_key);
    gpus[3].name = gpus[3].model_key = NULL;
    gpus[3].status = GPU_LOST;
    struct inventory inventory = made_judged(gpus, 8);
    assert_int_equal(inventory.total_measured, 6);
    assert_int_equal(inventory.total_unmeasured, 2);
    assert_int_equal(inventory.outlier_count, 0);
    assert_int_equal(inventory.total_outliers, 0);
    assert_string_equal(inventory.unmeasured[0].reason, "signal 11");
    assert_null(inventory.gpus[3].model);
    assert_true(value_of(&inventory, "main.latency") < 700);
    assert_int_equal(inventory.models[0].count, 6);
    inventory_fini(&inventory);
    for (size_t i = 0; i < 8; i++)
        gpus[i].status = GPU_TIMED_OUT;
    inventory = made_judged(gpus, 8);
    assert_int_equal(inventory.total_measured, 0);
    assert_int_equal(inventory.models[0].count, 0);
    assert_int_equal(inventory.models[0].memory.count, 0);
    inventory_fini(&inventory);
    made_free(gpus, 8);
}

/* Busy GPUs are measured and marked, but not compared with and not accused. */
static void busy(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(16, 6);
    for (size_t i = 0; i < 3; i++) {
        facts_set_int(&gpus[i].health, "processes", 1);
        made_scale(&gpus[i], "main.bandwidth.read", 0.5);
    }
    gpus[3].status = GPU_BUSY; /* measured all the same, as the survey was asked to */
    made_scale(&gpus[3], "main.bandwidth.read", 0.5);
    struct inventory inventory = made_judged(gpus, 16);
    assert_int_equal(inventory.total_outliers, 0);
    assert_int_equal(inventory.total_measured, 16);
    for (size_t i = 0; i < 16; i++)
        assert_int_equal(inventory.gpus[i].status, i < 4 ? GPU_BUSY : GPU_OK);
    assert_int_equal(measures_get(&inventory.models[0].memory, "main.bandwidth.read")->gpus, 12);
    inventory_fini(&inventory);
    made_free(gpus, 16);
}

/* Without a healthy GPU the consensus is made from outliers; without outliers from busy GPUs, and
 * then every figure is noisy. */
static void none_healthy(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(3, 6);
    for (size_t i = 0; i < 3; i++) {
        gpus[i].status = GPU_BUSY;
        made_set(&gpus[i], "main.bandwidth.read", 2000);
    }
    made_set(&gpus[1], "main.bandwidth.read", 4000);
    gpus[1].status = GPU_OK;
    facts_set_bool(&gpus[1].health, "remap_pending", true);
    struct inventory inventory = made_judged(gpus, 3);
    const struct measure *m = measures_get(&inventory.models[0].memory, "main.bandwidth.read");
    assert_true(m->value == 4000 && m->gpus == 1 && m->status == MEASURE_OK);
    inventory_fini(&inventory);
    gpus[1].status = GPU_BUSY;
    inventory = made_judged(gpus, 3);
    const struct measures *memory = &inventory.models[0].memory;
    m = measures_get(memory, "main.bandwidth.read");
    assert_true(m->value == 2000 && m->gpus == 3);
    for (size_t i = 0; i < memory->count; i++)
        assert_int_not_equal(memory->items[i].status, MEASURE_OK);
    assert_string_equal(m->reason, "measured beside other processes only");
    inventory_fini(&inventory);
    made_free(gpus, 3);
}

/* A value of one GPU that is not a finite number does not affect the others. */
static void no_number(void **state)
{
    (void)state;
    static const double broken[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < COUNT_OF(broken); i++) {
        struct gpu_result *gpus = made_fleet(5, 6);
        for (size_t k = 0; k < 5; k++)
            made_set(&gpus[k], "main.bandwidth.read", 4000 + (double)k);
        made_set(&gpus[2], "main.bandwidth.read", broken[i]);
        for (size_t k = 0; k < 5; k++)
            facts_set_real(&gpus[k].measures.items[0].notes, "ns", k == 2 ? broken[i] : 16.5);
        struct inventory inventory = made_judged(gpus, 5);
        const struct measure *m = measures_get(&inventory.models[0].memory, "main.bandwidth.read");
        assert_true(m->value == 4002 && m->spread == 1.25 && m->gpus == 4);
        assert_int_equal(m->status, MEASURE_OK);
        assert_true(facts_get(&inventory.models[0].memory.items[0].notes, "ns")->real == 16.5);
        for (size_t k = 0; k < inventory.gpus[2].value_count; k++) {
            const struct inventory_value *value = &inventory.gpus[2].values[k];
            bool is_it = strcmp(value->metric, "main.bandwidth.read") == 0;
            assert_int_equal(value->status, is_it ? MEASURE_FAILED : MEASURE_OK);
        }
        inventory_fini(&inventory);
        inventory = made_judged(&gpus[2], 1);
        m = measures_get(&inventory.models[0].memory, "main.bandwidth.read");
        assert_int_equal(m->status, MEASURE_FAILED);
        assert_string_equal(m->reason, "not a finite number");
        inventory_fini(&inventory);
        made_free(gpus, 5);
    }
}

/* Same name, other board: another model, another id. Hostile names give harmless ids. */
static void model_ids(void **state)
{
    (void)state;
    static const char *const names[] = {"Alpha 100", "Alpha 100", "Alpha 100-2", "<script>\n\"",
                                        "",          "\xff\xfe",  "Alpha-100"};
    static const char *const ids[] = {"unknown",       "script",      "alpha-100", "alpha-100-2",
                                      "alpha-100-2-2", "alpha-100-3", "x"};
    enum { COUNT = COUNT_OF(names) };
    struct gpu_result *gpus = made_fleet(COUNT, 7);
    for (size_t i = 0; i < COUNT; i++) {
        free(gpus[i].name);
        free(gpus[i].model_key);
        gpus[i].name = str_copy(names[i]);
        gpus[i].model_key = str_format("%zu:%s", i, names[i]);
    }
    struct inventory inventory = made_judged(gpus, COUNT);
    assert_int_equal(inventory.model_count, COUNT);
    for (size_t i = 0; i < COUNT; i++)
        assert_string_equal(inventory.models[i].id, ids[i]);
    assert_int_equal(inventory.total_outliers, 0); /* all different models: no peers at all */
    inventory_fini(&inventory);
    made_free(gpus, COUNT);
}

/* A GPU lists only facts that differ from the majority; a fact that only it does not know is null.
 */
static void differences(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(8, 8);
    facts_set_bool(&gpus[4].config, "ecc", false);
    facts_set_bool(&gpus[4].config, "ecc_pending", false);
    facts_set_int(&gpus[3].hardware, "sms", 130);
    for (size_t i = 0; i < 8; i++)
        facts_set_int(&gpus[i].health, "temperature_c", (int64_t)(40 + i)); /* no majority */
    facts_set_unknown(&gpus[6].health, "remap_pending", "not supported");
    struct inventory inventory = made_judged(gpus, 8);
    for (size_t i = 0; i < 8; i++) {
        const struct inventory_gpu *gpu = &inventory.gpus[i];
        assert_int_equal(gpu->config.count, i == 4 ? 2 : 0);
        assert_int_equal(gpu->hardware.count, i == 3);
        assert_int_equal(gpu->health.count, i == 6 ? 2 : 1);
        assert_int_equal(facts_int(&gpu->health, "temperature_c", 0), 40 + (int64_t)i);
    }
    assert_int_equal(facts_get(&inventory.gpus[6].health, "remap_pending")->kind, FACT_UNKNOWN);
    assert_null(facts_get(&inventory.models[0].health, "temperature_c"));
    inventory_fini(&inventory);
    made_free(gpus, 8);
}

static void shuffle(struct gpu_result *gpus, size_t count, struct rng *rng)
{
    for (size_t i = count - 1; i > 0; i--) {
        size_t j = (size_t)rng_below(rng, i + 1);
        struct gpu_result swap = gpus[i];
        gpus[i] = gpus[j];
        gpus[j] = swap;
    }
}

/* All kinds of faults in one fleet, added in another order: not a byte changes. */
static void order_does_not_matter(void **state)
{
    (void)state;
    enum { COUNT = 64 };
    struct gpu_result *gpus = made_fleet(COUNT, 9);
    struct rng rng;
    rng_init(&rng, 3, "shuffle");
    made_scale(&gpus[9], "main.latency", 1.3);
    made_scale(&gpus[33], "l1_data.size", 0.5);
    made_scale(&gpus[34], "sm.l1_worst", 1.2);
    facts_set_text(&gpus[10].board, "driver", "1");
    facts_set_text(&gpus[11].board, "driver", "2");
    facts_set_int(&gpus[12].health, "new_fact", 5);
    measures_add(&gpus[13].measures, "extra.figure", 5, "B", "m");
    measures_add(&gpus[14].measures, "further.figure", 5, "B", "m");
    facts_set_text(&gpus[50].health, "throttle", "sw_thermal");
    made_clock(&gpus[50], 0.8);
    for (size_t i = 20; i < 24; i++)
        made_scale(&gpus[i], "host.bandwidth.h2d", 0.9);
    for (size_t i = 24; i < 28; i++)
        facts_set_bool(&gpus[i].config, "mig", true);
    gpus[40].status = GPU_FAILED;
    for (size_t i = 41; i < 44; i++) {
        free(gpus[i].name);
        free(gpus[i].model_key);
        gpus[i].name = str_copy("Beta");
        gpus[i].model_key = str_copy("beta");
    }
    made_scale(&gpus[42], "main.bandwidth.read", 0.7); /* among three */
    for (size_t i = 0; i < COUNT; i += 2) {            /* divided models */
        facts_set_text(&gpus[i].board, "vbios", "95.00");
        made_scale(&gpus[i], "l2.bandwidth.write", 0.9);
    }
    char *expected = made_printed(gpus, COUNT);
    for (int round = 0; round < 5; round++) {
        shuffle(gpus, COUNT, &rng);
        char *text = made_printed(gpus, COUNT);
        assert_string_equal(text, expected);
        free(text);
    }
    free(expected);
    made_free(gpus, COUNT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(consensus),      cmocka_unit_test(outliers_do_not_drag),
        cmocka_unit_test(one_gpu),        cmocka_unit_test(small_fleets),
        cmocka_unit_test(eight_gpus),     cmocka_unit_test(unmeasured),
        cmocka_unit_test(busy),           cmocka_unit_test(none_healthy),
        cmocka_unit_test(no_number),      cmocka_unit_test(model_ids),
        cmocka_unit_test(differences),    cmocka_unit_test(order_does_not_matter),
        cmocka_unit_test(two_under_load),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
