/* Facts against the majority of the model, and rules that need no other GPU. */
#include "../check.h"

#include "made.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 24, SUSPECT = 13 };
static const char suspect[] = "GPU-013";

enum listed { LEFT, WATCHED, ACCUSED };

struct row {
    char set; /* of the fact: h, b, c, e (health) */
    struct fact fact;
    enum listed listed;
    enum verdict verdict;
    const char *metric, *cause;
};

#define TEXT(k, v)                                                                                 \
    {                                                                                              \
        .key = (char *)(k), .kind = FACT_TEXT, .text = (char *)(v)                                 \
    }
#define INT(k, v)                                                                                  \
    {                                                                                              \
        .key = (char *)(k), .kind = FACT_INT, .integer = (v)                                       \
    }
#define FLAG(k, v)                                                                                 \
    {                                                                                              \
        .key = (char *)(k), .kind = FACT_BOOL, .flag = (v)                                         \
    }

static struct facts *set_of(struct gpu_result *gpu, char set)
{
    return set == 'h'   ? &gpu->hardware
           : set == 'b' ? &gpu->board
           : set == 'c' ? &gpu->config
                        : &gpu->health;
}

static void expect(const struct inventory *inventory, const struct row *row)
{
    const struct inventory_outlier *outlier = made_outlier(inventory, suspect);
    const struct inventory_evidence *accused = made_finding(outlier, row->metric);
    const struct inventory_evidence *watched =
        made_finding(made_watched(inventory, suspect), row->metric);
    const struct inventory_evidence *finding = accused ? accused : watched;
    if ((accused != NULL) != (row->listed == ACCUSED) ||
        (watched != NULL) != (row->listed == WATCHED))
        fail_msg("%s: %s", row->fact.key, accused ? "accused" : watched ? "watched" : "left");
    if (accused && outlier->verdict != row->verdict)
        fail_msg("%s: %s", row->fact.key, verdict_name(outlier->verdict));
    if (finding && strcmp(finding->cause, row->cause) != 0)
        fail_msg("%s: \"%s\"", row->fact.key, finding->cause);
    assert_int_equal(inventory->total_outliers, accused ? 1 : 0);
}

/* One GPU with one fact that the other 23 do not have. */
static void facts(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {'c', FLAG("ecc", false), ACCUSED, VERDICT_MISCONFIGURED, "config.ecc",
         "ECC off, 23 of 24 of its model: on"},
        {'c', FLAG("mig", true), ACCUSED, VERDICT_MISCONFIGURED, "config.mig",
         "MIG on, 23 of 24 of its model: off"},
        {'c', INT("power_limit_w", 500), ACCUSED, VERDICT_MISCONFIGURED, "config.power_limit_w",
         "power limit 500 W, 23 of 24 of its model: 700 W"},
        {'c', FLAG("ecc_pending", false), WATCHED, 0, "config.ecc_pending",
         "the mode changes with the next reset"},
        {'c', FLAG("persistence", false), ACCUSED, VERDICT_MISCONFIGURED, "config.persistence",
         "persistence off, 23 of 24 of its model: on"},
        {'c', TEXT("compute_mode", "prohibited"), ACCUSED, VERDICT_MISCONFIGURED,
         "config.compute_mode", "compute mode prohibited, 23 of 24 of its model: default"},
        {'c', INT("memory_free_bytes", INT64_C(140000000000)), ACCUSED, VERDICT_DEGRADED,
         "config.memory_free_bytes",
         "130.4 GiB can be allocated though no process is seen, on its peers 139.7 GiB"},
        {'c', INT("memory_free_bytes", INT64_C(145000000000)), WATCHED, 0,
         "config.memory_free_bytes",
         "135 GiB can be allocated though no process is seen, on its peers 139.7 GiB"},
        {'c', INT("memory_free_bytes", INT64_C(149000000000)), LEFT, 0, "config.memory_free_bytes",
         NULL},
        {'b', TEXT("inforom", "G500"), ACCUSED, VERDICT_MISCONFIGURED, "board.inforom",
         "InfoROM G500, 23 of 24 of its model: G520.0200.00.05"},
        {'b', TEXT("driver", "570.00"), ACCUSED, VERDICT_MISCONFIGURED, "board.driver",
         "driver 570.00, 23 of 24 of its model: 580.00"},
        {'b', TEXT("vbios", "95.00"), ACCUSED, VERDICT_MISCONFIGURED, "board.vbios",
         "VBIOS 95.00, 23 of 24 of its model: 96.00"},
        {'b', TEXT("serial", "other"), LEFT, 0, "board.serial", NULL},
        {'h', INT("sms", 130), ACCUSED, VERDICT_MISMATCHED, "hardware.sms",
         "SMs 130, 23 of 24 of its model: 132"},
        {'h', INT("memory_bytes", INT64_C(125629016747)), ACCUSED, VERDICT_MISMATCHED,
         "hardware.memory_bytes", "memory 117 GiB, 23 of 24 of its model: 140.4 GiB"},
        {'h', INT("memory_bytes", INT64_C(150754820095)), LEFT, 0, "hardware.memory_bytes", NULL},
        {'h', INT("l2_bytes", 52428800), ACCUSED, VERDICT_MISMATCHED, "hardware.l2_bytes",
         "L2 50 MiB, 23 of 24 of its model: 60 MiB"},
        {'c', INT("pcie_width", 8), ACCUSED, VERDICT_DEGRADED, "config.pcie_width",
         "PCIe link runs x8 of x16"},
        {'c', INT("pcie_gen", 3), ACCUSED, VERDICT_DEGRADED, "config.pcie_gen",
         "PCIe link runs generation 3 of generation 5"},
        {'e', FLAG("remap_pending", true), ACCUSED, VERDICT_FAILING, "health.remap_pending",
         "a row remap is pending: the GPU needs a reset"},
        {'e', FLAG("remap_failed", true), ACCUSED, VERDICT_FAILING, "health.remap_failed",
         "a row remap failed: the memory cannot be repaired"},
        {'e', FLAG("retired_pages_pending", true), ACCUSED, VERDICT_FAILING,
         "health.retired_pages_pending", "page retirement is pending: the GPU needs a reset"},
        {'e', INT("ecc_uncorrected_volatile", 3), ACCUSED, VERDICT_FAILING,
         "health.ecc_uncorrected_volatile",
         "uncorrectable ECC errors since the driver was loaded: 3"},
        {'e', INT("ecc_uncorrected_new", 1), ACCUSED, VERDICT_FAILING, "health.ecc_uncorrected_new",
         "uncorrectable ECC errors during the survey: 1"},
        {'e', INT("ecc_uncorrected_dram", 2), WATCHED, 0, "health.ecc_uncorrected_dram",
         "uncorrectable ECC errors of memory in its life: 2"},
        {'e', FLAG("inforom_valid", false), ACCUSED, VERDICT_FAILING, "health.inforom_valid",
         "the InfoROM is corrupt"},
        {'e', INT("nvlinks_down", 2), ACCUSED, VERDICT_FAILING, "health.nvlinks_down",
         "NVLinks down: 2"},
        {'e', INT("remap_banks_low", 1), ACCUSED, VERDICT_DEGRADED, "health.remap_banks_low",
         "banks of memory with few spare rows left: 1"},
        {'e', TEXT("throttle", "power_cap,hw_slowdown"), ACCUSED, VERDICT_DEGRADED,
         "health.throttle", "the hardware slows down for heat or power"},
        {'e', TEXT("throttle", "hw_power_brake"), ACCUSED, VERDICT_DEGRADED, "health.throttle",
         "the power brake of the node slows the GPU down"},
        {'e', TEXT("throttle", "power_cap"), LEFT, 0, "health.throttle", NULL},
        {'e', TEXT("throttle", "hw_slowdowns"), LEFT, 0, "health.throttle", NULL},
        {'e', TEXT("throttle", "no_hw_slowdown"), LEFT, 0, "health.throttle", NULL},
        {'e', INT("temperature_c", 80), WATCHED, 0, "health.temperature_c",
         "temperature 80 C, its peers have 50 C after the same work"},
        {'e', INT("temperature_c", 65), LEFT, 0, "health.temperature_c", NULL},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct gpu_result *gpus = made_fleet(COUNT, 1);
        facts_set(set_of(&gpus[SUSPECT], rows[i].set), &rows[i].fact);
        if (strcmp(rows[i].fact.key, "ecc") == 0)
            facts_set_bool(&gpus[SUSPECT].config, "ecc_pending", false);
        struct inventory inventory = made_judged(gpus, COUNT);
        expect(&inventory, &rows[i]);
        inventory_fini(&inventory);
        made_free(gpus, COUNT);
    }
}

/* Whether `nodes` has one entry with "divided", which has the words and accuses no GPU. NULL:
 * whether it has none. */
static bool is_reported(const struct inventory *inventory, const char *words)
{
    size_t count = 0;
    for (size_t i = 0; i < inventory->node_finding_count; i++) {
        const struct inventory_node *node = &inventory->node_findings[i];
        bool divided = strstr(node->finding, "divided");
        count += divided;
        if (divided && (!words || !strstr(node->finding, words) || node->action >= ACTION_ALERT))
            return false;
    }
    return count == (words ? 1 : 0);
}

/* A majority is two thirds, and at least three GPUs. Without one, one or two GPUs that differ are
 * watched; with more the model is divided, which is reported once. */
static void majorities(void **state)
{
    (void)state;
    static const struct {
        size_t count, differing;
        bool accused;
        size_t watched;
        const char *divided;
    } rows[] = {
        {1, 0, false, 0, NULL},
        {2, 1, false, 1, NULL},
        {3, 1, false, 1, NULL},
        {4, 1, true, 0, NULL},
        {9, 3, true, 0, NULL},
        {8, 3, false, 0, "driver of alpha-100: 580.00 on 5 of 8 GPUs, 1 on 3, all on n00, n01: "},
        {8, 4, false, 0, "4 of 8 GPUs, "},
        {24, 8, true, 0, NULL},
        {24, 12, false, 0, "12 of 24 GPUs, "},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct gpu_result *gpus = made_fleet(rows[i].count, 2);
        for (size_t k = 0; k < rows[i].differing; k++)
            facts_set_text(&gpus[5 * k % rows[i].count].board, "driver", "1");
        struct inventory inventory = made_judged(gpus, rows[i].count);
        if (inventory.total_outliers != (rows[i].accused ? rows[i].differing : 0) ||
            inventory.watch_count < rows[i].watched || !is_reported(&inventory, rows[i].divided))
            fail_msg("%zu of %zu: %u accused, %zu watched", rows[i].differing, rows[i].count,
                     inventory.total_outliers, inventory.watch_count);
        inventory_fini(&inventory);
        made_free(gpus, rows[i].count);
    }
}

/* A rule needs no peers. */
static void rules_need_no_peers(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(1, 3);
    facts_set_bool(&gpus[0].health, "remap_pending", true);
    facts_set_int(&gpus[0].config, "pcie_width", 4);
    struct inventory inventory = made_judged(gpus, 1);
    assert_int_equal(inventory.outlier_count, 1);
    assert_int_equal(inventory.outliers[0].evidence_count, 2);
    assert_string_equal(inventory.outliers[0].evidence[0].basis, "rule");
    inventory_fini(&inventory);
    made_free(gpus, 1);
}

/* Idle links are slow: a link that was not seen under load is not judged. */
static void idle_links(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(1, 3);
    facts_set_int(&gpus[0].config, "pcie_gen", 1);
    facts_set_bool(&gpus[0].config, "pcie_under_load", false);
    made_set(&gpus[0], "host.bandwidth.h2d", 55);
    struct inventory inventory = made_judged(gpus, 1);
    assert_int_equal(inventory.total_outliers, 0);
    inventory_fini(&inventory);
    facts_set_bool(&gpus[0].config, "pcie_under_load", true);
    inventory = made_judged(gpus, 1);
    assert_int_equal(inventory.total_outliers, 1);
    inventory_fini(&inventory);
    made_free(gpus, 1);
}

/* Links that are not connected on any board are no fault, nor are those of cards without a bridge.
 */
static void nvlinks(void **state)
{
    (void)state;
    static const struct {
        size_t count;
        int64_t active, down; /* of all but the suspect */
        int64_t suspect_active, suspect_down;
        const char *fabric; /* state of all; NULL: there is none */
        size_t accused, watched;
    } rows[] = {
        {COUNT, 18, 0, 17, 1, NULL, 1, 0},
        {COUNT, 10, 2, 10, 2, NULL, 0, 0},
        {COUNT, 10, 2, 9, 3, NULL, 1, 0},
        {COUNT, 0, 12, 0, 12, NULL, 0, 0},
        {1, 0, 0, 0, 12, NULL, 0, 0},
        {1, 0, 0, 11, 1, NULL, 1, 0},
        /* With a fabric the links of a node must work; a GPU alone, or all of a site, may do
         * without. */
        {MADE_PER_NODE, 0, 18, 0, 18, "not_started", MADE_PER_NODE, 0},
        {1, 0, 0, 0, 18, "not_started", 0, 0},
        {COUNT, 0, 18, 0, 18, "not_started", 0, COUNT},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct gpu_result *gpus = made_fleet(rows[i].count, 6);
        for (size_t k = 0; k < rows[i].count; k++) {
            bool is_suspect = k == rows[i].count / 2;
            facts_set_int(&gpus[k].health, "nvlinks_active",
                          is_suspect ? rows[i].suspect_active : rows[i].active);
            facts_set_int(&gpus[k].health, "nvlinks_down",
                          is_suspect ? rows[i].suspect_down : rows[i].down);
            if (rows[i].fabric)
                facts_set_text(&gpus[k].health, "fabric_state", rows[i].fabric);
        }
        struct inventory inventory = made_judged(gpus, rows[i].count);
        if (inventory.outlier_count != rows[i].accused || inventory.watch_count != rows[i].watched)
            fail_msg("row %zu: %zu outliers, %zu watched", i, inventory.outlier_count,
                     inventory.watch_count);
        inventory_fini(&inventory);
        made_free(gpus, rows[i].count);
    }
}

/* With several kinds the first of failing, degraded, misconfigured, mismatched counts. */
static void precedence(void **state)
{
    (void)state;
    static const struct {
        char set;
        struct fact fact;
        enum verdict verdict;
    } steps[] = {
        {'h', INT("l2_bytes", 52428800), VERDICT_MISMATCHED},
        {'c', INT("power_limit_w", 500), VERDICT_MISCONFIGURED},
        {'c', INT("pcie_width", 8), VERDICT_DEGRADED},
        {'e', FLAG("remap_pending", true), VERDICT_FAILING},
    };
    struct gpu_result *gpus = made_fleet(COUNT, 4);
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        facts_set(set_of(&gpus[SUSPECT], steps[i].set), &steps[i].fact);
        struct inventory inventory = made_judged(gpus, COUNT);
        const struct inventory_outlier *outlier = made_outlier(&inventory, suspect);
        assert_int_equal(outlier->verdict, steps[i].verdict);
        assert_int_equal(outlier->evidence_count, i + 1);
        inventory_fini(&inventory);
    }
    made_free(gpus, COUNT);
}

/* The driver takes memory for ECC where the hardware has none of its own: one finding, not two. */
static void ecc_takes_memory(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(COUNT, 5);
    facts_set_bool(&gpus[SUSPECT].config, "ecc", false);
    facts_set_bool(&gpus[SUSPECT].config, "ecc_pending", false);
    facts_set_int(&gpus[SUSPECT].hardware, "memory_bytes", INT64_C(160176996352));
    struct inventory inventory = made_judged(gpus, COUNT);
    assert_int_equal(made_outlier(&inventory, suspect)->evidence_count, 1);
    assert_int_equal(made_outlier(&inventory, suspect)->verdict, VERDICT_MISCONFIGURED);
    inventory_fini(&inventory);
    made_free(gpus, COUNT);
}

/* The usual memory clock is that of measured GPUs, and at least one GPU runs at it. */
static void memory_clock(void **state)
{
    (void)state;
    static const struct {
        size_t measured, slow, lost;
        enum listed listed;
        const char *cause;
    } rows[] = {
        {2, 1, 0, WATCHED,
         "memory clock 1600 MHz, 1 of 2 of its model: 3201 MHz; too few to tell who is right"},
        {2, 1, 6, WATCHED,
         "memory clock 1600 MHz, 1 of 2 of its model: 3201 MHz; too few to tell who is right"},
        {4, 1, 0, ACCUSED, "memory clock 1600 MHz, model runs at 3201 MHz"},
        {4, 2, 8, WATCHED,
         "memory clock 1600 MHz, 2 of 4 of its model: 3201 MHz; too few to tell who is right"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        size_t count = rows[i].measured + rows[i].lost;
        struct gpu_result *gpus = made_fleet(count, 7);
        for (size_t k = 0; k < rows[i].slow; k++)
            made_set(&gpus[k], "clock.memory", 1600);
        for (size_t k = rows[i].measured; k < count; k++) {
            gpus[k].status = k % 2 ? GPU_LOST : GPU_TIMED_OUT;
            if (k % 2) /* the other half had measured some figures */
                measures_fini(&gpus[k].measures);
        }
        struct inventory inventory = made_judged(gpus, count);
        const struct inventory_evidence *accused =
            made_finding(made_outlier(&inventory, "GPU-000"), "clock.memory");
        const struct inventory_evidence *watched =
            made_finding(made_watched(&inventory, "GPU-000"), "clock.memory");
        if ((accused != NULL) != (rows[i].listed == ACCUSED) || !accused == !watched)
            fail_msg("row %zu: %s", i, accused ? "accused" : watched ? "watched" : "left");
        assert_string_equal((accused ? accused : watched)->cause, rows[i].cause);
        assert_true((accused ? accused : watched)->expected == 3201);
        inventory_fini(&inventory);
        made_free(gpus, count);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(facts),
        cmocka_unit_test(majorities),
        cmocka_unit_test(rules_need_no_peers),
        cmocka_unit_test(idle_links),
        cmocka_unit_test(nvlinks),
        cmocka_unit_test(precedence),
        cmocka_unit_test(ecc_takes_memory),
        cmocka_unit_test(memory_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
