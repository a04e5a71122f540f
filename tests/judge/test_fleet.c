/* The judge on fleets made by hand: grouping, consensus, outliers, small and empty fleets. */
#include "../check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/str.h"
#include "judge/judge.h"

enum { GPUS_MAX = 64 };

static struct judge_metric rules[] = {{(char *)"l1_data.size", -1, 0.03},
                                      {(char *)"l1_data.line", 0, 0},
                                      {(char *)"main.latency", +1, 0.04}};
static const struct judge_config config = {
    .false_alarms = 0.01, .metrics = rules, .metric_count = COUNT_OF(rules)};

/* GPU i on node i/4, model "Alpha", healthy with a little scatter. */
static void make_gpu(struct gpu_result *gpu, size_t i)
{
    *gpu = (struct gpu_result){.index = (int32_t)(i % 4), .rank = (int32_t)i};
    gpu->uuid = str_format("GPU-%03zu", i);
    gpu->node = str_format("n%02zu", i / 4);
    gpu->pci = str_format("0000:%02zx:00.0", i % 4);
    gpu->name = str_copy("Alpha 100");
    gpu->model_key = str_copy("10de:1:1:Alpha 100");
    facts_set_int(&gpu->hardware, "sms", 16);
    facts_set_bool(&gpu->config, "ecc", true);
    measures_add(&gpu->measures, "l1_data.size", 65536, "B", "m")->confidence = 0.9;
    measures_add(&gpu->measures, "l1_data.line", 128, "B", "m");
    measures_add(&gpu->measures, "main.latency", 500 + (double)(i % 3), "cycles", "m")->spread = 1;
    static const char *const shared[] = {"texture"};
    measures_add_words(&gpu->measures, "l1_data.shared_with", shared, 1, "m");
    measures_add_missing(&gpu->measures, "texture.size", MEASURE_UNSUPPORTED, "none here");
}

static void make_fleet(struct gpu_result *gpus, size_t count)
{
    for (size_t i = 0; i < count; i++)
        make_gpu(&gpus[i], i);
}

static void free_fleet(struct gpu_result *gpus, size_t count)
{
    for (size_t i = 0; i < count; i++)
        gpu_result_fini(&gpus[i]);
}

static void set_value(struct gpu_result *gpu, const char *metric, double value)
{
    measures_add(&gpu->measures, metric, value, "x", "m");
}

static struct inventory judged(const struct gpu_result *gpus, size_t count)
{
    struct inventory inventory = {0};
    struct err err = {0};
    assert_int_equal(judge_fleet(gpus, count, &config, &inventory, &err), 0);
    return inventory;
}

static void consensus(void **state)
{
    (void)state;
    struct gpu_result gpus[12];
    make_fleet(gpus, 12);
    set_value(&gpus[7], "main.latency", 900);
    struct inventory inventory = judged(gpus, 12);
    assert_int_equal(inventory.model_count, 1);
    const struct inventory_model *model = &inventory.models[0];
    assert_string_equal(model->id, "alpha-100");
    assert_int_equal(model->count, 12);
    assert_int_equal(facts_int(&model->identity, "sms", 0), 16);
    double value;
    assert_true(measures_value(&model->memory, "main.latency", &value) && value == 501);
    assert_int_equal(measures_get(&model->memory, "main.latency")->n, 11);
    assert_true(measures_get(&model->memory, "l1_data.size")->confidence == 0.9);
    assert_string_equal(measures_get(&model->memory, "l1_data.shared_with")->words[0], "texture");
    assert_int_equal(measures_get(&model->memory, "texture.size")->status, MEASURE_UNSUPPORTED);
    inventory_fini(&inventory);
    free_fleet(gpus, 12);
}

/* One deviation each: is the GPU accused, watched or left alone? */
static void deviations(void **state)
{
    (void)state;
    static const struct {
        const char *metric;
        double value;
        size_t outliers, watch;
    } cases[] = {
        {"main.latency", 600, 1, 0},   /* 20 % slower */
        {"main.latency", 400, 0, 0},   /* faster is not degraded */
        {"main.latency", 515, 0, 0},   /* below the floor of relevance */
        {"l1_data.size", 49152, 1, 0}, /* a quarter missing */
        {"l1_data.size", 81920, 0, 0}, /* more is not degraded */
        {"l1_data.line", 64, 1, 0},    /* any change counts */
        {"l1_data.line", 256, 1, 0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct gpu_result gpus[16];
        make_fleet(gpus, 16);
        set_value(&gpus[5], cases[i].metric, cases[i].value);
        struct inventory inventory = judged(gpus, 16);
        assert_int_equal(inventory.outliers_length, cases[i].outliers);
        assert_int_equal(inventory.watch_count, cases[i].watch);
        if (cases[i].outliers) {
            assert_string_equal(inventory.outliers[0].uuid, "GPU-005");
            assert_string_equal(inventory.outliers[0].findings[0].metric, cases[i].metric);
            assert_int_equal(inventory.gpus[5].status, GPU_OUTLIER);
        }
        inventory_fini(&inventory);
        free_fleet(gpus, 16);
    }
}

/* What scatters by itself accuses nobody, but what is above the floor of relevance is watched. */
static void own_spread_protects(void **state)
{
    (void)state;
    struct gpu_result gpus[16];
    make_fleet(gpus, 16);
    measures_add(&gpus[5].measures, "main.latency", 600, "cycles", "m")->spread = 80;
    struct inventory inventory = judged(gpus, 16);
    assert_int_equal(inventory.outliers_length, 0);
    assert_int_equal(inventory.watch_count, 1);
    assert_int_equal(inventory.gpus[5].status, GPU_OK);
    inventory_fini(&inventory);
    free_fleet(gpus, 16);
}

/* A single GPU's figures keep its own spread; what it failed to give is null, not absent. */
static void one_gpu(void **state)
{
    (void)state;
    struct gpu_result gpu;
    make_fleet(&gpu, 1);
    measures_add_missing(&gpu.measures, "l1_data.line", MEASURE_FAILED, "no step found");
    struct inventory inventory = judged(&gpu, 1);
    assert_true(measures_get(&inventory.models[0].memory, "main.latency")->spread == 1);
    const struct inventory_gpu *out = &inventory.gpus[0];
    assert_int_equal(out->value_count, 3);
    assert_string_equal(out->values[1].metric, "l1_data.line");
    assert_true(isnan(out->values[1].value) && isnan(out->values[1].spread));
    assert_true(out->values[2].value == 500 && out->values[2].spread == 1);
    inventory_fini(&inventory);
    free_fleet(&gpu, 1);
}

static void small_fleets(void **state)
{
    (void)state;
    for (size_t count = 0; count < 5; count++) {
        struct gpu_result gpus[5] = {0};
        make_fleet(gpus, count);
        if (count)
            set_value(&gpus[0], "main.latency", 900);
        struct inventory inventory = judged(gpus, count);
        assert_int_equal(inventory.gpu_count, count);
        assert_int_equal(inventory.model_count, count ? 1 : 0);
        assert_int_equal(inventory.outliers_length, 0);
        inventory_fini(&inventory);
        free_fleet(gpus, count);
    }
}

static void unmeasured(void **state)
{
    (void)state;
    struct gpu_result gpus[8];
    make_fleet(gpus, 8);
    gpus[2].status = GPU_CRASHED;
    gpus[2].reason = str_copy("signal 11");
    set_value(&gpus[2], "main.latency", 9000); /* what it had measured must not count */
    free(gpus[3].name);
    free(gpus[3].model_key);
    gpus[3].name = gpus[3].model_key = NULL;
    gpus[3].status = GPU_LOST;
    struct inventory inventory = judged(gpus, 8);
    assert_int_equal(inventory.measured, 6);
    assert_int_equal(inventory.unmeasured_count, 2);
    assert_int_equal(inventory.outliers_length, 0);
    assert_string_equal(inventory.unmeasured[0].reason, "signal 11");
    assert_null(inventory.gpus[3].model);
    double value;
    assert_true(measures_value(&inventory.models[0].memory, "main.latency", &value));
    assert_true(value < 600);
    assert_int_equal(inventory.models[0].count, 6);
    inventory_fini(&inventory);
    free_fleet(gpus, 8);
    for (size_t i = 0; i < 3; i++) {
        make_gpu(&gpus[i], i);
        gpus[i].status = GPU_TIMED_OUT;
    }
    inventory = judged(gpus, 3);
    assert_int_equal(inventory.measured, 0);
    assert_int_equal(inventory.models[0].count, 0);
    inventory_fini(&inventory);
    free_fleet(gpus, 3);
}

static void settings(void **state)
{
    (void)state;
    struct gpu_result gpus[8];
    make_fleet(gpus, 8);
    facts_set_bool(&gpus[4].config, "ecc", false);
    for (size_t i = 0; i < 8; i++) {
        facts_set_int(&gpus[i].health, "ecc_uncorrected_dram", i == 5 ? 2 : 0);
        if (i == 6)
            facts_set_unknown(&gpus[i].health, "remap_pending", "not supported");
        else
            facts_set_bool(&gpus[i].health, "remap_pending", false);
    }
    struct inventory inventory = judged(gpus, 8);
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(inventory.gpus[i].config.count, i == 4);
        assert_int_equal(inventory.gpus[i].health.count, i == 5);
    }
    assert_int_equal(facts_int(&inventory.gpus[5].health, "ecc_uncorrected_dram", 0), 2);
    inventory_fini(&inventory);
    free_fleet(gpus, 8);
}

/* Same name, other board: another model, another id. Hostile names give harmless ids. */
static void model_ids(void **state)
{
    (void)state;
    static const char *const names[] = {"Alpha 100", "Alpha 100", "<script>\n\"", "", "\xff\xfe"};
    static const char *const ids[] = {"unknown", "script", "alpha-100", "alpha-100-2", "x"};
    struct gpu_result gpus[5];
    make_fleet(gpus, 5);
    for (size_t i = 0; i < 5; i++) {
        free(gpus[i].name);
        free(gpus[i].model_key);
        gpus[i].name = str_copy(names[i]);
        gpus[i].model_key = str_format("%zu:%s", i, names[i]);
    }
    struct inventory inventory = judged(gpus, 5);
    assert_int_equal(inventory.model_count, 5);
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(inventory.models[i].id, ids[i]);
    inventory_fini(&inventory);
    free_fleet(gpus, 5);
}

static char *printed(const struct gpu_result *gpus, size_t count)
{
    struct strbuf text = {0};
    struct inventory inventory = judged(gpus, count);
    inventory_print(&inventory, &text);
    assert_false(text.failed);
    inventory_fini(&inventory);
    return text.data;
}

static void order_does_not_matter(void **state)
{
    (void)state;
    struct gpu_result gpus[GPUS_MAX];
    struct rng rng;
    rng_init(&rng, 3, "shuffle");
    make_fleet(gpus, GPUS_MAX);
    set_value(&gpus[9], "main.latency", 700);
    set_value(&gpus[33], "l1_data.size", 32768);
    gpus[40].status = GPU_FAILED;
    char *expected = printed(gpus, GPUS_MAX);
    for (int round = 0; round < 5; round++) {
        for (size_t i = GPUS_MAX - 1; i > 0; i--) {
            size_t j = (size_t)rng_below(&rng, i + 1);
            struct gpu_result swap = gpus[i];
            gpus[i] = gpus[j];
            gpus[j] = swap;
        }
        char *text = printed(gpus, GPUS_MAX);
        assert_string_equal(text, expected);
        free(text);
    }
    free(expected);
    free_fleet(gpus, GPUS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(consensus),
                                       cmocka_unit_test(one_gpu),
                                       cmocka_unit_test(deviations),
                                       cmocka_unit_test(own_spread_protects),
                                       cmocka_unit_test(small_fleets),
                                       cmocka_unit_test(unmeasured),
                                       cmocka_unit_test(settings),
                                       cmocka_unit_test(model_ids),
                                       cmocka_unit_test(order_does_not_matter)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
