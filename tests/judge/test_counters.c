/* Errors that are corrected, Xid events, the NVLink fabric and temperatures: during the survey,
 * beside the fleet, and since a baseline. */
#include "../check.h"

#include "made.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "inventory/xid.h"

enum { COUNT = 24, SUSPECT = 13 };
static const char suspect[] = "GPU-013";

enum listed { LEFT, WATCHED, ACCUSED };
static const char *const verdicts[] = {"left", "watched", "accused"};

struct planted {
    const char *key;
    int64_t number;
    const char *text; /* instead of the number */
};

static void plant(struct gpu_result *gpu, const struct planted *facts, size_t count)
{
    for (size_t i = 0; i < count && facts[i].key; i++)
        if (facts[i].text)
            facts_set_text(&gpu->health, facts[i].key, facts[i].text);
        else
            facts_set_int(&gpu->health, facts[i].key, facts[i].number);
}

/* What a healthy GPU reports. */
static struct gpu_result *known_fleet(size_t count, uint64_t seed)
{
    static const struct planted usual[] = {
        {"ecc_corrected_volatile", 0, NULL},
        {"ecc_corrected_dram", 0, NULL},
        {"ecc_corrected_sram", 0, NULL},
        {"ecc_corrected_new", 0, NULL},
        {"ecc_corrected_per_s", 0, NULL},
        {"pcie_replays", 0, NULL},
        {"pcie_replays_new", 0, NULL},
        {"pcie_replays_per_s", 0, NULL},
        {"nvlink_errors", 0, NULL},
        {"nvlink_errors_new", 0, NULL},
        {"nvlink_errors_per_s", 0, NULL},
        {"remapped_rows_corrected", 0, NULL},
        {"xid", 0, "none"},
        {"fabric_state", 0, "completed"},
        {"fabric_clique", 0, "11111111-0000-0000-0000-000000000000/2"},
        {"temperature_memory_c", 60, NULL},
        {"temperature_margin_c", 37, NULL},
    };
    struct gpu_result *gpus = made_fleet(count, seed);
    for (size_t i = 0; i < count; i++)
        plant(&gpus[i], usual, COUNT_OF(usual));
    return gpus;
}

static enum listed listed_as(const struct inventory *inventory, const char *uuid,
                             const char *metric, const struct inventory_evidence **out_finding)
{
    const struct inventory_evidence *accused = made_finding(made_outlier(inventory, uuid), metric);
    const struct inventory_evidence *watched = made_finding(made_watched(inventory, uuid), metric);
    *out_finding = accused ? accused : watched;
    return accused ? ACCUSED : watched ? WATCHED : LEFT;
}

/* The only finding of the fleet's health is this one. */
static void check_only(const struct inventory *inventory, const char *metric, enum listed listed,
                       enum verdict verdict, const char *cause, const char *what)
{
    const struct inventory_evidence *finding;
    enum listed got = listed_as(inventory, suspect, metric, &finding);
    if (got != listed || (finding && cause && strcmp(finding->cause, cause) != 0))
        fail_msg("%s: %s %s, \"%s\"", what, metric, verdicts[got], finding ? finding->cause : "");
    if (got == ACCUSED && made_outlier(inventory, suspect)->verdict != verdict)
        fail_msg("%s: another verdict", what);
    size_t told = 0;
    for (size_t i = 0; i < inventory->watch_count; i++)
        for (size_t f = 0; f < inventory->watch[i].evidence_count; f++)
            told += strncmp(inventory->watch[i].evidence[f].metric, "health.", 7) == 0;
    for (size_t i = 0; i < inventory->outlier_count; i++)
        told += inventory->outliers[i].evidence_count;
    if (told != (listed != LEFT))
        fail_msg("%s: %zu findings", what, told);
}

/* One GPU with something that the other 23 do not have. */
static void one_of_a_fleet(void **state)
{
    (void)state;
    static const struct {
        struct planted facts[3];
        enum listed listed;
        enum verdict verdict;
        const char *metric, *cause;
    } rows[] = {
        /* the storm of NVIDIA/DCGM issue 313, its slower times, and what is no storm */
        {{{"ecc_corrected_new", 15045, NULL}, {"ecc_corrected_per_s", 17700, NULL}},
         ACCUSED,
         VERDICT_DEGRADED,
         "health.ecc_corrected_new",
         "corrected ECC errors during the survey: 15045, 17700 per second"},
        {{{"ecc_corrected_new", 4000, NULL}, {"ecc_corrected_per_s", 4600, NULL}},
         ACCUSED,
         VERDICT_DEGRADED,
         "health.ecc_corrected_new",
         NULL},
        {{{"ecc_corrected_new", 99, NULL}, {"ecc_corrected_per_s", 116, NULL}},
         WATCHED,
         VERDICT_DEGRADED,
         "health.ecc_corrected_new",
         NULL},
        {{{"ecc_corrected_new", 900, NULL}, {"ecc_corrected_per_s", 45, NULL}},
         WATCHED,
         VERDICT_DEGRADED,
         "health.ecc_corrected_new",
         NULL},
        {{{"ecc_corrected_new", 1, NULL}},
         WATCHED,
         VERDICT_DEGRADED,
         "health.ecc_corrected_new",
         "corrected ECC errors during the survey: 1"},
        /* since the driver was loaded */
        {{{"ecc_corrected_volatile", INT64_C(9600000000), NULL}},
         ACCUSED,
         VERDICT_DEGRADED,
         "health.ecc_corrected_volatile",
         "corrected ECC errors since the driver was loaded: 9600000000; three quarters of its "
         "model have at most 0"},
        {{{"ecc_corrected_volatile", 100000, NULL}},
         WATCHED,
         VERDICT_DEGRADED,
         "health.ecc_corrected_volatile",
         NULL},
        {{{"ecc_corrected_volatile", 900, NULL}},
         LEFT,
         VERDICT_DEGRADED,
         "health.ecc_corrected_volatile",
         NULL},
        /* all of them came during the survey: one finding, not two */
        {{{"ecc_corrected_volatile", 15045, NULL},
          {"ecc_corrected_new", 15045, NULL},
          {"ecc_corrected_per_s", 17700, NULL}},
         ACCUSED,
         VERDICT_DEGRADED,
         "health.ecc_corrected_new",
         NULL},
        {{{"pcie_replays_new", 2, NULL}, {"pcie_replays_per_s", 2, NULL}},
         WATCHED,
         VERDICT_DEGRADED,
         "health.pcie_replays_new",
         "PCIe replays during the survey: 2, 2 per second"},
        {{{"pcie_replays_new", 170, NULL}, {"pcie_replays_per_s", 200, NULL}},
         ACCUSED,
         VERDICT_DEGRADED,
         "health.pcie_replays_new",
         NULL},
        {{{"pcie_replays_new", 170, NULL}, {"pcie_replays_per_s", 9, NULL}},
         ACCUSED,
         VERDICT_DEGRADED,
         "health.pcie_replays_new",
         NULL},
        {{{"pcie_replays", 40, NULL}}, LEFT, VERDICT_DEGRADED, "health.pcie_replays", NULL},
        {{{"pcie_replays", 50000, NULL}}, WATCHED, VERDICT_DEGRADED, "health.pcie_replays", NULL},
        {{{"nvlink_errors_new", 3, NULL}},
         WATCHED,
         VERDICT_DEGRADED,
         "health.nvlink_errors_new",
         NULL},
        {{{"nvlink_errors_new", 200, NULL}, {"nvlink_errors_per_s", 230, NULL}},
         ACCUSED,
         VERDICT_DEGRADED,
         "health.nvlink_errors_new",
         "errors on NVLinks during the survey: 200, 230 per second"},
        {{{"xid", 0, "79 (the GPU has fallen off the bus)"}},
         ACCUSED,
         VERDICT_FAILING,
         "health.xid",
         "Xid 79 during the survey: the GPU has fallen off the bus"},
        {{{"xid", 0, "45 (x (y) 94), 13 (z), 48 (old text)"}},
         ACCUSED,
         VERDICT_FAILING,
         "health.xid",
         "Xid 48 during the survey: uncorrectable (double-bit) ECC error; also Xid 45, 13"},
        {{{"xid", 0, "31 (x), 13 (y)"}},
         WATCHED,
         VERDICT_DEGRADED,
         "health.xid",
         "Xid 31 during the survey: memory page fault; usually an application's fault; also Xid "
         "13"},
        {{{"xid", 0, "92 (x)"}}, ACCUSED, VERDICT_DEGRADED, "health.xid", NULL},
        {{{"xid", 0, "777 (x)"}}, WATCHED, VERDICT_DEGRADED, "health.xid", NULL},
        {{{"xid", 0, "nonsense"}}, LEFT, VERDICT_DEGRADED, "health.xid", NULL},
        {{{"fabric_state", 0, "failed"}},
         ACCUSED,
         VERDICT_FAILING,
         "health.fabric_state",
         "the registration with the NVLink fabric failed"},
        {{{"fabric_state", 0, "degraded_bandwidth"}},
         ACCUSED,
         VERDICT_DEGRADED,
         "health.fabric_state",
         "the NVLink fabric gives this GPU less bandwidth"},
        {{{"fabric_state", 0, "route_recovery,route_unhealthy"}},
         ACCUSED,
         VERDICT_FAILING,
         "health.fabric_state",
         "a route of this GPU through the NVLink fabric is unhealthy "
         "(route_recovery,route_unhealthy)"},
        {{{"fabric_state", 0, "route_recovery"}},
         WATCHED,
         VERDICT_DEGRADED,
         "health.fabric_state",
         NULL},
        {{{"fabric_state", 0, "no_partition"}},
         ACCUSED,
         VERDICT_MISCONFIGURED,
         "health.fabric_state",
         NULL},
        {{{"fabric_clique", 0, "11111111-0000-0000-0000-000000000000/3"}},
         ACCUSED,
         VERDICT_MISCONFIGURED,
         "health.fabric_clique",
         "NVLink clique 11111111-0000-0000-0000-000000000000/3, 3 of 4 GPUs of its node are in "
         "11111111-0000-0000-0000-000000000000/2"},
        {{{"fabric_state", 0, "in_progress"}},
         ACCUSED,
         VERDICT_FAILING,
         "health.fabric_state",
         "registration with the NVLink fabric: in_progress; completed on 23 of 24 of its model"},
        {{{"temperature_c", 82, NULL}, {"temperature_margin_c", 5, NULL}},
         WATCHED,
         VERDICT_DEGRADED,
         "health.temperature_c",
         "temperature 82 C, its peers have 50 C after the same work; it slows down from 87 C on"},
        {{{"temperature_memory_c", 95, NULL}},
         WATCHED,
         VERDICT_DEGRADED,
         "health.temperature_memory_c",
         NULL},
        {{{"temperature_c", 62, NULL}}, LEFT, VERDICT_DEGRADED, "health.temperature_c", NULL},
        {{{"temperature_c", 20, NULL}}, LEFT, VERDICT_DEGRADED, "health.temperature_c", NULL},
        {{{"temperature_c", 90, NULL}, {"temperature_margin_c", -3, NULL}},
         ACCUSED,
         VERDICT_DEGRADED,
         "health.temperature_margin_c",
         "temperature 90 C, it slows down from 87 C on"},
        /* the throttle reason is reported, not the heat as well */
        {{{"temperature_c", 90, NULL},
          {"temperature_margin_c", -3, NULL},
          {"throttle", 0, "hw_thermal"}},
         ACCUSED,
         VERDICT_DEGRADED,
         "health.throttle",
         "the hardware slows down for heat"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char what[16];
        snprintf(what, sizeof what, "row %zu", i);
        struct gpu_result *gpus = known_fleet(COUNT, 1);
        plant(&gpus[SUSPECT], rows[i].facts, COUNT_OF(rows[i].facts));
        struct inventory inventory = made_judged(gpus, COUNT);
        check_only(&inventory, rows[i].metric, rows[i].listed, rows[i].verdict, rows[i].cause,
                   what);
        inventory_fini(&inventory);
        made_free(gpus, COUNT);
    }
}

/* Without peers a storm is a storm; a count, a temperature and a fabric say nothing. */
static void alone(void **state)
{
    (void)state;
    static const struct {
        struct planted facts[2];
        size_t accused, watched;
    } rows[] = {
        {{{"ecc_corrected_new", 15045, NULL}, {"ecc_corrected_per_s", 17700, NULL}}, 1, 0},
        {{{"pcie_replays_new", 170, NULL}, {"pcie_replays_per_s", 9, NULL}}, 0, 1},
        {{{"xid", 0, "95 (x)"}}, 1, 0},
        {{{"fabric_state", 0, "failed"}}, 1, 0},
        {{{"fabric_state", 0, "not_started"}}, 0, 0},
        {{{"temperature_c", 84, NULL}}, 0, 0},
        {{{"temperature_margin_c", 0, NULL}}, 1, 0},
        {{{"ecc_corrected_volatile", 900000, NULL}}, 0, 0},
        {{{"ecc_corrected_volatile", INT64_C(9600000000), NULL}}, 0, 1},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct gpu_result *gpus = known_fleet(1, 1);
        plant(&gpus[0], rows[i].facts, COUNT_OF(rows[i].facts));
        struct inventory inventory = made_judged(gpus, 1);
        if (inventory.outlier_count != rows[i].accused || inventory.watch_count != rows[i].watched)
            fail_msg("row %zu: %zu accused, %zu watched", i, inventory.outlier_count,
                     inventory.watch_count);
        inventory_fini(&inventory);
        made_free(gpus, 1);
    }
}

/* Nothing of the health of any GPU is told. */
static void check_quiet(const struct gpu_result *gpus, size_t count, const char *what)
{
    struct inventory inventory = made_judged(gpus, count);
    for (size_t i = 0; i < inventory.watch_count; i++)
        for (size_t f = 0; f < inventory.watch[i].evidence_count; f++)
            if (strncmp(inventory.watch[i].evidence[f].metric, "health.", 7) == 0)
                fail_msg("%s: watched: %s", what, inventory.watch[i].evidence[f].cause);
    if (inventory.total_outliers)
        fail_msg("%s: %u accused", what, inventory.total_outliers);
    inventory_fini(&inventory);
}

/* A few errors here and there since the driver was loaded, and rooms of different warmth. */
static void healthy_fleets(void **state)
{
    (void)state;
    enum { LARGE = 200 };
    struct rng rng;
    rng_init(&rng, 3, "healthy");
    struct gpu_result *gpus = known_fleet(LARGE, 3);
    for (size_t i = 0; i < LARGE; i++) {
        bool has_some = rng_uniform(&rng) < 0.1;
        int64_t few = has_some ? 1 + (int64_t)(400 * rng_uniform(&rng)) : 0;
        facts_set_int(&gpus[i].health, "ecc_corrected_volatile", few);
        facts_set_int(&gpus[i].health, "ecc_corrected_dram", 3 * few);
        facts_set_int(&gpus[i].health, "pcie_replays", (int64_t)(8 * rng_uniform(&rng)));
        facts_set_int(
            &gpus[i].health, "temperature_c",
            (int64_t)(i < LARGE / 2 ? 38 + 4 * rng_normal(&rng) : 50 + 4 * rng_normal(&rng)));
        facts_set_int(&gpus[i].health, "temperature_memory_c",
                      (int64_t)(45 + 4 * rng_normal(&rng)));
    }
    check_quiet(gpus, LARGE, "a few errors");
    /* rooms of all temperatures from 20 to 70 C: 70 C is 25 C above the median */
    for (size_t i = 0; i < LARGE; i++)
        facts_set_int(&gpus[i].health, "temperature_c", 20 + (int64_t)(i % 51));
    check_quiet(gpus, LARGE, "many temperatures");
    /* all links retrain when they leave their idle speed, with some replays each */
    for (size_t i = 0; i < LARGE; i++)
        facts_set_int(&gpus[i].health, "pcie_replays_new", 1 + (int64_t)(4 * rng_uniform(&rng)));
    check_quiet(gpus, LARGE, "replays everywhere");
    /* no site of this model uses the fabric */
    for (size_t i = 0; i < LARGE; i++)
        facts_set_text(&gpus[i].health, "fabric_state", "not_started");
    check_quiet(gpus, LARGE, "no fabric");
    made_free(gpus, LARGE);
}

/* Inventories and records from before these facts, and GPUs without NVLink. */
static void not_known(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(COUNT, 5);
    check_quiet(gpus, COUNT, "old");
    static const char *const keys[] = {"ecc_corrected_new", "ecc_corrected_per_s", "pcie_replays",
                                       "pcie_replays_new",  "nvlink_errors_new",   "xid",
                                       "fabric_state",      "temperature_margin_c"};
    for (size_t i = 0; i < COUNT; i++)
        for (size_t k = 0; k < COUNT_OF(keys); k++)
            facts_set_unknown(&gpus[i].health, keys[k], "not supported");
    check_quiet(gpus, COUNT, "not supported");
    struct gpu_result *mixed = known_fleet(COUNT, 5);
    for (size_t i = 0; i < COUNT; i += 2)
        for (size_t k = 0; k < COUNT_OF(keys); k++)
            facts_set_unknown(&mixed[i].health, keys[k], "not supported");
    check_quiet(mixed, COUNT, "some not supported");
    made_free(gpus, COUNT);
    made_free(mixed, COUNT);
}

static struct inventory judged_since(const struct gpu_result *gpus, const struct inventory *before,
                                     bool drift_only)
{
    struct inventory inventory = {0};
    const struct judge_basis basis = {
        .config = made_config(), .baseline = before, .drift_only = drift_only};
    assert_int_equal(made_judge(gpus, COUNT, true, &basis, &inventory, NULL), 0);
    return inventory;
}

/* A counter of one GPU in two inventories; `others`: the growth of all other GPUs. */
static void since_a_baseline(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        int64_t was, is, others;
        enum listed listed;
        const char *cause;
    } rows[] = {
        {"ecc_corrected_volatile", 0, 100000, 0, WATCHED,
         "corrected ECC errors since the driver was loaded: 100000, was 0 (baseline of d)"},
        {"ecc_corrected_dram", 0, 100000, 0, WATCHED,
         "corrected ECC errors of memory: 100000, was 0 (baseline of d)"},
        {"ecc_corrected_dram", 100000, 100000, 0, LEFT, NULL},
        {"ecc_corrected_dram", 0, 100000, 2000, LEFT, NULL},
        {"ecc_corrected_dram", 0, 900, 0, LEFT, NULL},
        {"ecc_corrected_dram", 50, INT64_C(54731746511), 0, ACCUSED, NULL},
        /* the driver was loaded again */
        {"ecc_corrected_volatile", 5000000, 20, 0, LEFT, NULL},
        {"ecc_corrected_volatile", 5000000, 20000, 0, WATCHED, NULL},
        {"pcie_replays", 3, 70000, 1, WATCHED, "PCIe replays: 70000, was 3 (baseline of d)"},
        {"pcie_replays", 3, 40, 1, LEFT, NULL},
        {"remapped_rows_corrected", 1, 2, 0, WATCHED,
         "rows remapped after corrected errors: 2, was 1 (baseline of d)"},
        {"remapped_rows_uncorrected", 0, 1, 0, WATCHED, NULL},
        {"ecc_uncorrected_dram", 2, 3, 0, WATCHED,
         "uncorrectable ECC errors of memory in its life: 3, was 2 (baseline of d)"},
        {"ecc_corrected_sram", 0, 100000, 0, WATCHED, NULL},
        {"ecc_uncorrected_sram", 0, 1, 0, WATCHED, NULL},
        {"retired_pages_corrected", 0, 1, 0, WATCHED, NULL},
        {"retired_pages_uncorrected", 0, 1, 0, WATCHED, NULL},
        {"nvlink_errors", 0, 100000, 0, WATCHED, NULL},
        {"remap_banks_none", 0, 1, 0, ACCUSED, NULL},
        {"temperature_c", 30, 40, 0, LEFT, NULL},
        {"ecc_uncorrected_volatile", 0, 3, 0, ACCUSED,
         "uncorrectable ECC errors since the driver was loaded: 3, was 0 (baseline of d)"},
        {"remap_banks_low", 0, 1, 0, ACCUSED, NULL},
        {"remap_banks_low", 1, 1, 0, LEFT, NULL},
        {"remap_banks_low", 2, 1, 0, LEFT, NULL},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct gpu_result *gpus = known_fleet(COUNT, 9);
        for (size_t k = 0; k < COUNT; k++)
            facts_set_int(&gpus[k].health, rows[i].key, k == SUSPECT ? rows[i].was : 0);
        struct inventory before = made_judged(gpus, COUNT);
        before.generated = strdup("d");
        for (size_t k = 0; k < COUNT; k++)
            facts_set_int(&gpus[k].health, rows[i].key, k == SUSPECT ? rows[i].is : rows[i].others);
        struct inventory now[] = {judged_since(gpus, &before, true),
                                  judged_since(gpus, &before, false)};
        char metric[64], what[32];
        snprintf(metric, sizeof metric, "health.%s", rows[i].key);
        snprintf(what, sizeof what, "row %zu", i);
        bool failing = strcmp(rows[i].key, "ecc_uncorrected_volatile") == 0;
        check_only(&now[0], metric, rows[i].listed, failing ? VERDICT_FAILING : VERDICT_DEGRADED,
                   rows[i].cause, what);
        const struct inventory_evidence *finding;
        if (listed_as(&now[1], suspect, metric, &finding) < rows[i].listed)
            fail_msg("row %zu: not told with --baseline", i);
        inventory_fini(&now[0]);
        inventory_fini(&now[1]);
        inventory_fini(&before);
        made_free(gpus, COUNT);
    }
}

/* A repair that became necessary. With --baseline the rule reports it. */
static void pending_since_a_baseline(void **state)
{
    (void)state;
    struct gpu_result *gpus = known_fleet(COUNT, 9);
    struct inventory before = made_judged(gpus, COUNT);
    before.generated = strdup("d");
    facts_set_bool(&gpus[SUSPECT].health, "remap_pending", true);
    struct inventory now = judged_since(gpus, &before, true);
    check_only(&now, "health.remap_pending", ACCUSED, VERDICT_FAILING,
               "row remap pending: yes, was no (baseline of d)", "diff");
    inventory_fini(&now);
    now = judged_since(gpus, &before, false);
    check_only(&now, "health.remap_pending", ACCUSED, VERDICT_FAILING,
               "a row remap is pending: the GPU needs a reset", "baseline");
    inventory_fini(&now);
    inventory_fini(&before);
    made_free(gpus, COUNT);
}

/* The same errors are in two counters: one finding. */
static void one_of_two_counters(void **state)
{
    (void)state;
    struct gpu_result *gpus = known_fleet(COUNT, 9);
    struct inventory before = made_judged(gpus, COUNT);
    facts_set_int(&gpus[SUSPECT].health, "ecc_corrected_dram", 100000);
    facts_set_int(&gpus[SUSPECT].health, "ecc_corrected_volatile", 100000);
    struct inventory now = judged_since(gpus, &before, true);
    check_only(&now, "health.ecc_corrected_dram", WATCHED, VERDICT_DEGRADED,
               "corrected ECC errors of memory: 100000, was 0 (baseline of unknown date)", "two");
    inventory_fini(&now);
    inventory_fini(&before);
    made_free(gpus, COUNT);
}

/* Two of three GPUs are registered: too few to accuse the third. */
static void fabric_of_few(void **state)
{
    (void)state;
    struct gpu_result *gpus = known_fleet(3, 1);
    facts_set_text(&gpus[1].health, "fabric_state", "not_started");
    struct inventory inventory = made_judged(gpus, 3);
    const struct inventory_evidence *finding;
    assert_int_equal(listed_as(&inventory, "GPU-001", "health.fabric_state", &finding), WATCHED);
    assert_int_equal(inventory.total_outliers, 0);
    inventory_fini(&inventory);
    made_free(gpus, 3);
}

/* The baseline is from before these facts, or the GPU from before its counters. */
static void old_baseline(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(COUNT, 9), *later = known_fleet(COUNT, 9);
    struct inventory before = made_judged(gpus, COUNT);
    facts_set_int(&later[SUSPECT].health, "ecc_corrected_dram", 100000);
    struct inventory now = judged_since(later, &before, true);
    check_only(&now, "health.ecc_corrected_dram", LEFT, 0, NULL, "old baseline");
    inventory_fini(&now);
    inventory_fini(&before);
    made_free(gpus, COUNT);
    made_free(later, COUNT);
}

/* What is written is read again. */
static void xid_lists(void **state)
{
    (void)state;
    unsigned all[XID_LIST_MAX], read[XID_LIST_MAX];
    for (unsigned first = 1; first < 200; first += XID_LIST_MAX) {
        struct strbuf text = {0};
        for (unsigned i = 0; i < XID_LIST_MAX; i++)
            all[i] = first + i;
        xid_put_list(&text, all, XID_LIST_MAX);
        assert_int_equal(xid_parse_list(text.data, read), XID_LIST_MAX);
        assert_memory_equal(all, read, sizeof all);
        strbuf_fini(&text);
    }
    assert_int_equal(xid_parse_list(NULL, read), 0);
    assert_int_equal(xid_parse_list("none", read), 0);
    assert_int_equal(xid_parse_list("79", read), 0);
    assert_int_equal(xid_parse_list("79 (", read), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_of_a_fleet),      cmocka_unit_test(alone),
        cmocka_unit_test(healthy_fleets),      cmocka_unit_test(not_known),
        cmocka_unit_test(since_a_baseline),    cmocka_unit_test(pending_since_a_baseline),
        cmocka_unit_test(one_of_two_counters), cmocka_unit_test(fabric_of_few),
        cmocka_unit_test(old_baseline),        cmocka_unit_test(xid_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
