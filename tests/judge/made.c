/* Fleets made by hand for the tests of the judge. */
#include "../check.h"

#include "made.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/str.h"
#include "base/yaml.h"

/* How a figure follows the SM clock: y = value * (1 + follows * (ratio - 1)). */
static const struct {
    const char *metric;
    double value, follows;
    const char *unit;
} figures[] = {
    {"l1_data.size", 221952, 0, "B"},
    {"l1_data.line", 128, 0, "B"},
    {"l1_data.latency", 33, 0, "cycles"},
    {"main.latency", 632, 0.61, "cycles"},
    {"main.bandwidth.read", 4350, 0, "GB/s"},
    {"main.bandwidth.write", 4250, 0, "GB/s"},
    {"l2.latency", 212, 0, "cycles"},
    {"l2.bandwidth.read", 5900, 1, "GB/s"},
    {"l2.bandwidth.write", 4700, 1, "GB/s"},
    {"host.bandwidth.h2d", 55, 0, "GB/s"},
    {"host.bandwidth.d2h", 55, 0, "GB/s"},
    {"clock.sm", 1980, 1, "MHz"},
    {"clock.memory", 3201, 0, "MHz"},
    {"sm.l1_latency", 33, 0, "cycles"},
    {"sm.l1_worst", 1.002, 0, ""},
    {"sm.l1_worst_sm", 17, 0, "id"},
};

static bool scatters(const char *metric)
{
    static const char *const fixed[] = {"l1_data.line", "clock.sm", "clock.memory", "sm.l1_worst",
                                        "sm.l1_worst_sm"};
    for (size_t i = 0; i < COUNT_OF(fixed); i++)
        if (strcmp(metric, fixed[i]) == 0)
            return false;
    return true;
}

static void set_facts(struct gpu_result *gpu)
{
    facts_set_int(&gpu->hardware, "sms", 132);
    facts_set_int(&gpu->hardware, "memory_bytes", INT64_C(150754820096));
    facts_set_int(&gpu->hardware, "memory_bus_bits", 6144);
    facts_set_int(&gpu->hardware, "l2_bytes", 62914560);
    facts_set_int(&gpu->hardware, "pcie_gen_max", 5);
    facts_set_int(&gpu->hardware, "pcie_width_max", 16);
    facts_set_text(&gpu->board, "serial", gpu->uuid);
    facts_set_text(&gpu->board, "vbios", "96.00");
    facts_set_text(&gpu->board, "driver", "580.00");
    facts_set_text(&gpu->board, "inforom", "G520.0200.00.05");
    facts_set_bool(&gpu->config, "persistence", true);
    facts_set_text(&gpu->config, "compute_mode", "default");
    facts_set_int(&gpu->config, "memory_free_bytes", INT64_C(150000000000));
    facts_set_bool(&gpu->config, "ecc", true);
    facts_set_bool(&gpu->config, "ecc_pending", true);
    facts_set_bool(&gpu->config, "mig", false);
    facts_set_int(&gpu->config, "power_limit_w", 700);
    facts_set_int(&gpu->config, "pcie_gen", 5);
    facts_set_int(&gpu->config, "pcie_width", 16);
    facts_set_text(&gpu->health, "throttle", "none");
    facts_set_int(&gpu->health, "temperature_c", 50);
    facts_set_int(&gpu->health, "processes", 0);
    facts_set_bool(&gpu->health, "remap_pending", false);
    facts_set_int(&gpu->health, "nvlinks_active", 18);
    facts_set_int(&gpu->health, "nvlinks_down", 0);
}

static void make_gpu(struct gpu_result *gpu, size_t i, double clocks, double scatter,
                     struct rng *rng)
{
    double ratio = 1 - clocks / 2 + clocks * rng_uniform(rng);
    *gpu = (struct gpu_result){.index = (int32_t)(i % MADE_PER_NODE), .rank = (int32_t)i};
    gpu->uuid = str_format("GPU-%03zu", i);
    gpu->node = str_format("n%02zu", i / MADE_PER_NODE);
    gpu->pci = str_format("0000:%02zx:00.0", i % MADE_PER_NODE);
    gpu->name = str_copy("Alpha 100");
    gpu->model_key = str_copy("10de:1:1:Alpha 100");
    set_facts(gpu);
    for (size_t k = 0; k < COUNT_OF(figures); k++) {
        double value = figures[k].value * (1 + figures[k].follows * (ratio - 1));
        if (scatters(figures[k].metric))
            value *= 1 + scatter * rng_normal(rng);
        struct measure *m =
            measures_add(&gpu->measures, figures[k].metric, value, figures[k].unit, "m");
        m->spread = 0.2 * scatter * value * (0.5 + rng_uniform(rng));
        m->confidence = 0.99;
        m->n = 5;
    }
    static const char *const shared[] = {"texture"};
    measures_add_words(&gpu->measures, "l1_data.shared_with", shared, 1, "m");
    measures_add_missing(&gpu->measures, "texture.size", MEASURE_UNSUPPORTED, "none here");
}

struct gpu_result *made_fleet(size_t count, uint64_t seed)
{
    return made_fleet_of(count, seed, 0.08, 0.005);
}

struct gpu_result *made_fleet_of(size_t count, uint64_t seed, double clocks, double scatter)
{
    struct rng rng;
    struct gpu_result *gpus = mem_array(count, sizeof *gpus);
    rng_init(&rng, seed, "made");
    assert_non_null(gpus);
    for (size_t i = 0; i < count; i++)
        make_gpu(&gpus[i], i, clocks, scatter, &rng);
    return gpus;
}

void made_free(struct gpu_result *gpus, size_t count)
{
    for (size_t i = 0; i < count; i++)
        gpu_result_fini(&gpus[i]);
    free(gpus);
}

static struct measure *measure_of(struct gpu_result *gpu, const char *metric)
{
    for (size_t i = 0; i < gpu->measures.count; i++)
        if (strcmp(gpu->measures.items[i].metric, metric) == 0)
            return &gpu->measures.items[i];
    fail_msg("no %s", metric);
    return NULL;
}

void made_set(struct gpu_result *gpu, const char *metric, double value)
{
    measure_of(gpu, metric)->value = value;
}

void made_scale(struct gpu_result *gpu, const char *metric, double factor)
{
    measure_of(gpu, metric)->value *= factor;
}

void made_clock(struct gpu_result *gpu, double factor)
{
    double before = measure_of(gpu, "clock.sm")->value / 1980;
    for (size_t k = 0; k < COUNT_OF(figures); k++) {
        double follows = figures[k].follows;
        made_scale(gpu, figures[k].metric,
                   (1 + follows * (before * factor - 1)) / (1 + follows * (before - 1)));
    }
}

/* Counters, events and sensors. */
static void spoil_health(struct gpu_result *gpus)
{
    for (size_t i = 0; i < MADE_SPOILED; i++) {
        facts_set_int(&gpus[i].health, "temperature_c", (int64_t)(40 + i % 7));
        facts_set_int(&gpus[i].health, "ecc_corrected_volatile", (int64_t)(i == 33 ? 90000 : 0));
        facts_set_text(&gpus[i].health, "fabric_state", i == 36 ? "in_progress" : "completed");
    }
    facts_set_int(&gpus[34].health, "ecc_corrected_new", 15045);
    facts_set_int(&gpus[34].health, "ecc_corrected_per_s", 17700);
    facts_set_text(&gpus[35].health, "xid", "79 (the GPU has fallen off the bus), 45 (x)");
    facts_set_int(&gpus[37].health, "temperature_c", 85);
    facts_set_int(&gpus[38].health, "temperature_margin_c", -1);
    facts_set_int(&gpus[39].health, "pcie_replays", 70000);
}

void made_spoil(struct gpu_result *gpus)
{
    made_scale(&gpus[9], "main.latency", 1.3);
    made_scale(&gpus[10], "main.bandwidth.read", 0.9);
    made_set(&gpus[10], "clock.memory", 2881);
    made_scale(&gpus[11], "sm.l1_worst", 1.2);
    made_set(&gpus[11], "sm.l1_worst_sm", 42);
    facts_set_text(&gpus[12].board, "driver", "1");
    facts_set_int(&gpus[13].hardware, "sms", 130);
    facts_set_text(&gpus[14].health, "throttle", "sw_thermal");
    made_clock(&gpus[14], 0.8);
    facts_set_unknown(&gpus[15].health, "remap_pending", "not supported");
    facts_set_int(&gpus[16].health, "processes", 2);
    gpus[17].status = GPU_CRASHED;
    gpus[17].reason = str_copy("signal 11");
    measures_fini(&gpus[17].measures);
    for (size_t i = 20; i < 24; i++)
        made_scale(&gpus[i], "host.bandwidth.h2d", 0.9);
    spoil_health(gpus);
    measures_add_missing(&gpus[25].measures, "main.latency", MEASURE_FAILED, "no");
    for (size_t i = 0; i < gpus[26].measures.count; i++)
        if (strcmp(gpus[26].measures.items[i].metric, "l2.latency") == 0)
            measure_set_status(&gpus[26].measures.items[i], MEASURE_NOISY, "two methods");
    measures_add(&gpus[27].measures, "l1_data.size", 65536, "B", "m")->bound = MEASURE_AT_LEAST;
    for (size_t i = 28; i < 31; i++) {
        free(gpus[i].name);
        free(gpus[i].model_key);
        gpus[i].name = str_copy("Beta");
        gpus[i].model_key = str_copy("beta");
    }
    made_scale(&gpus[29], "main.bandwidth.read", 0.7); /* among three */
    for (size_t i = 0; i < MADE_SPOILED; i += 2) {     /* divided models */
        facts_set_text(&gpus[i].board, "vbios", "95.00");
        made_scale(&gpus[i], "l2.bandwidth.write", 0.9);
    }
}

/* Whatever is sure is in `outliers`, and what is not in `watch`, however small it is: the tests are
 * about evidence. test_policy.c is about actions. */
static const char policy_text[] = "{tell: 0 %, alert: 0 %}\n";

const struct judge_config *made_config(void)
{
    static struct judge_config config;
    struct yaml_doc *doc = NULL, *policy = NULL;
    struct err err = {0};
    if (config.metric_count)
        return &config;
    if (yaml_read_file(SURVEY_CONFIG, &yaml_limits_config, &doc, &err) ||
        yaml_read_text(policy_text, sizeof policy_text - 1, "policy", &yaml_limits_config, &policy,
                       &err) ||
        judge_config_read(yaml_get(yaml_root(doc), "judge"), yaml_root(policy), &config, &err))
        fail_msg("%s:%d: %s", err.file, err.line, err.text);
    yaml_destroy(doc);
    yaml_destroy(policy);
    return &config;
}

int made_judge(const struct gpu_result *gpus, size_t count, bool again,
               const struct judge_basis *basis, struct inventory *inventory, struct err *err)
{
    struct judge *judge = judge_create(basis, count);
    int rc = 0;
    for (size_t i = 0; i < count && !rc; i++)
        rc = judge_add(judge, &gpus[i], err);
    if (!rc)
        judge_compare(judge);
    for (size_t i = 0; i < count && !rc && again; i++)
        judge_add_again(judge, &gpus[i]);
    if (!rc)
        judge_finish(judge, inventory);
    judge_destroy(judge);
    return rc;
}

struct inventory made_judged(const struct gpu_result *gpus, size_t count)
{
    struct inventory inventory = {0};
    struct err err = {0};
    const struct judge_basis basis = {.config = made_config()};
    assert_int_equal(made_judge(gpus, count, true, &basis, &inventory, &err), 0);
    return inventory;
}

char *made_printed(const struct gpu_result *gpus, size_t count)
{
    struct strbuf text = {0};
    struct inventory inventory = made_judged(gpus, count);
    inventory_print(&inventory, &text);
    assert_false(text.failed);
    inventory_fini(&inventory);
    return text.data;
}

static const struct inventory_outlier *find(const struct inventory_outlier *list, size_t count,
                                            const char *uuid)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i].uuid, uuid) == 0)
            return &list[i];
    return NULL;
}

const struct inventory_outlier *made_outlier(const struct inventory *inventory, const char *uuid)
{
    return find(inventory->outliers, inventory->outlier_count, uuid);
}

const struct inventory_outlier *made_watched(const struct inventory *inventory, const char *uuid)
{
    return find(inventory->watch, inventory->watch_count, uuid);
}

const struct inventory_evidence *made_finding(const struct inventory_outlier *outlier,
                                              const char *metric)
{
    for (size_t i = 0; outlier && i < outlier->evidence_count; i++)
        if (strcmp(outlier->evidence[i].metric, metric) == 0)
            return &outlier->evidence[i];
    return NULL;
}
