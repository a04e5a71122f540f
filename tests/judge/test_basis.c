/* The bases that also judge single GPUs and whole fleets: references, reported values, a baseline.
 */
#include "../check.h"

#include "made.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "judge/reference.h"

static struct judge_references references;

static struct inventory judged_by(const struct gpu_result *gpus, size_t count,
                                  const struct inventory *baseline)
{
    struct inventory inventory = {.generated = str_copy("2026-02-02T00:00:00Z")};
    struct err err = {0};
    const struct judge_basis basis = {made_config(), &references, baseline};
    assert_int_equal(made_judge(gpus, count, true, &basis, &inventory, &err), 0);
    return inventory;
}

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0 && fclose(file) == 0);
}

static void remove_file(const char *folder, const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(unlink(path), 0);
}

static const char alpha[] = "names: [Alpha 100, Alpha 100 again]\n"
                            "hardware:\n"
                            "  sms: {value: 132, source: sheet}\n"
                            "  memory_bytes: {value: 141000000000, source: sheet}\n"
                            "peaks:\n"
                            "  main.bandwidth.read: {value: 4800, source: sheet}\n"
                            "values:\n"
                            "  l1_data.latency: {value: 33, tolerance: 0.1, source: our own}\n";

static int setup(void **state)
{
    (void)state;
    char folder[] = "/tmp/gpumemtopo-references-XXXXXX";
    struct err err = {0};
    if (!mkdtemp(folder))
        return -1;
    write_file(folder, "alpha.yaml", alpha);
    write_file(folder, "notes.txt", "not: [read");
    int rc = judge_references_read(folder, &references, &err);
    remove_file(folder, "alpha.yaml");
    remove_file(folder, "notes.txt");
    rmdir(folder);
    return rc;
}

static int teardown(void **state)
{
    (void)state;
    judge_references_fini(&references);
    return 0;
}

static void shipped_references(void **state)
{
    (void)state;
    struct judge_references shipped = {0};
    struct err err = {0};
    if (judge_references_read(MODELS, &shipped, &err))
        fail_msg("%s:%d: %s", err.file, err.line, err.text);
    static const char *const names[] = {
        "Tesla V100-SXM2-16GB", "NVIDIA A100-SXM4-80GB", "NVIDIA H100 80GB HBM3",  "NVIDIA H200",
        "NVIDIA B200",          "NVIDIA L40S",           "NVIDIA GeForce RTX 4090"};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (!judge_references_find(&shipped, names[i]))
            fail_msg("no reference for %s", names[i]);
    for (size_t i = 0; i < shipped.count; i++)
        for (size_t k = 0; k < shipped.items[i].entry_count; k++)
            assert_true(strlen(shipped.items[i].entries[k].source) > 10);
    assert_null(judge_references_find(&shipped, "NVIDIA H2000"));
    judge_references_fini(&shipped);
}

static void bad_references(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"hardware: {}\n", "key \"names\" is missing"},
        {"names: []\n", "at least one name"},
        {"names: [A]\nhardware: {sms: {value: 132}}\n", "key \"source\" is missing"},
        {"names: [A]\nhardware: {sms: {value: -1, source: x}}\n", "outside"},
        {"names: [A]\nvalues: {a.b: {value: 1, source: x}}\n", "key \"tolerance\" is missing"},
        {"names: [A]\npeak: {}\n", "unknown key \"peak\""},
        {"names: [Beta]\n", "a second reference for \"Beta\""},
    };
    char folder[] = "/tmp/gpumemtopo-references-XXXXXX";
    assert_non_null(mkdtemp(folder));
    write_file(folder, "a.yaml", "names: [Beta]\n");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct judge_references read = {0};
        struct err err = {0};
        write_file(folder, "b.yaml", rows[i].text);
        assert_true(judge_references_read(folder, &read, &err) < 0);
        if (!strstr(err.text, rows[i].message) || !strstr(err.file, "b.yaml"))
            fail_msg("row %zu: %s: %s", i, err.file, err.text);
    }
    remove_file(folder, "a.yaml");
    remove_file(folder, "b.yaml");
    rmdir(folder);
    struct judge_references read = {0};
    struct err err = {0};
    assert_true(judge_references_read("/nowhere", &read, &err) < 0);
}

/* One GPU without peers. */
static void single_gpu(void **state)
{
    (void)state;
    static const struct {
        const char *metric;
        double factor;
        bool accused;
    } rows[] = {
        {"main.bandwidth.read", 1, false},    {"main.bandwidth.read", 0.8, false},
        {"main.bandwidth.read", 0.7, true},   {"l1_data.latency", 1.05, false},
        {"l1_data.latency", 1.2, true},       {"l1_data.latency", 0.5, false},
        {"main.bandwidth.write", 0.5, false}, /* nothing is known of it */
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct gpu_result *gpus = made_fleet(1, 1);
        made_scale(&gpus[0], rows[i].metric, rows[i].factor);
        struct inventory inventory = judged_by(gpus, 1, NULL);
        const struct inventory_evidence *finding =
            made_finding(made_outlier(&inventory, "GPU-000"), rows[i].metric);
        if ((finding != NULL) != rows[i].accused)
            fail_msg("%s x %g", rows[i].metric, rows[i].factor);
        if (finding)
            assert_string_equal(finding->basis, "reference");
        assert_int_equal(inventory.total_outliers, rows[i].accused);
        inventory_fini(&inventory);
        made_free(gpus, 1);
    }
}

/* All GPUs have the same fault, so the consensus of the fleet does not show it. */
static void whole_fleet(void **state)
{
    (void)state;
    enum { COUNT = 16 };
    struct gpu_result *gpus = made_fleet(COUNT, 2);
    for (size_t i = 0; i < COUNT; i++) {
        made_scale(&gpus[i], "main.bandwidth.read", 0.6);
        made_scale(&gpus[i], "clock.memory", 0.6);
        facts_set_int(&gpus[i].hardware, "memory_clock_max_mhz", 3201);
    }
    struct inventory inventory = judged_by(gpus, COUNT, NULL);
    assert_int_equal(inventory.node_finding_count, 1);
    assert_int_equal(inventory.total_outliers, COUNT);
    assert_int_equal(inventory.node_findings[0].verdict, VERDICT_MISCONFIGURED);
    assert_non_null(strstr(inventory.node_findings[0].finding,
                           "16 of 16 GPUs of alpha-100: main.bandwidth.read"));
    assert_non_null(
        strstr(inventory.node_findings[0].finding, "memory clock 1921 MHz of 3201 MHz"));
    inventory_fini(&inventory);
    made_free(gpus, COUNT);
}

static void hardware(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(1, 3);
    facts_set_int(&gpus[0].hardware, "sms", 128);
    struct inventory inventory = judged_by(gpus, 1, NULL);
    const struct inventory_evidence *finding =
        made_finding(made_outlier(&inventory, "GPU-000"), "hardware.sms");
    assert_string_equal(finding->cause, "SMs 128, the model is specified with 132");
    assert_int_equal(inventory.outliers[0].verdict, VERDICT_MISMATCHED);
    inventory_fini(&inventory);
    /* A part of a GPU is not what is specified; a GPU that is passed through is. */
    for (int kind = 0; kind < 3; kind++) {
        facts_set_bool(&gpus[0].config, "mig", kind == 0);
        facts_set_text(&gpus[0].config, "virtualization", kind == 1 ? "vgpu" : "passthrough");
        inventory = judged_by(gpus, 1, NULL);
        assert_int_equal(inventory.total_outliers, kind == 2);
        inventory_fini(&inventory);
    }
    made_free(gpus, 1);
}

/* A finding of two bases is listed once, whatever else the GPU has. */
static void told_once(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(6, 3);
    facts_set_int(&gpus[3].hardware, "sms", 120);
    made_set(&gpus[3], "clock.memory", 1600);
    struct inventory inventory = judged_by(gpus, 6, NULL);
    const struct inventory_outlier *outlier = made_outlier(&inventory, "GPU-003");
    size_t count = 0;
    for (size_t i = 0; i < outlier->evidence_count; i++)
        count += strcmp(outlier->evidence[i].metric, "hardware.sms") == 0;
    assert_int_equal(count, 1);
    assert_string_equal(made_finding(outlier, "hardware.sms")->basis, "fleet");
    assert_non_null(made_finding(outlier, "clock.memory"));
    inventory_fini(&inventory);
    made_free(gpus, 6);
}

/* Measured against reported, on one GPU. */
static void claims(void **state)
{
    (void)state;
    static const struct {
        const char *metric; /* of the finding */
        const char *cause;
    } rows[] = {
        {"l2.size", "50 MiB measured, the driver reports 60 MiB"},
        {"sm.count", "130 measured, the driver reports 132"},
        {"config.memory_free_bytes", "93.13 GiB can be allocated, the driver reports 140.4 GiB"},
        {"clock.sm_reported", "1500 MHz measured, the driver reports 1980 MHz"},
        {"host.bandwidth.h2d", "20 GB/s measured, the link as reported has 63.04 GB/s"},
    };
    struct gpu_result *gpus = made_fleet(1, 4);
    measures_add(&gpus[0].measures, "l2.size", 52428800, "B", "m");
    measures_add(&gpus[0].measures, "sm.count", 130, "", "m");
    facts_set_int(&gpus[0].config, "memory_free_bytes", INT64_C(100000000000));
    made_set(&gpus[0], "clock.sm", 1500);
    measures_add(&gpus[0].measures, "clock.sm_reported", 1980, "MHz", "m");
    made_set(&gpus[0], "host.bandwidth.h2d", 20);
    struct inventory inventory = judged_by(gpus, 1, NULL);
    const struct inventory_outlier *outlier = made_outlier(&inventory, "GPU-000");
    assert_int_equal(outlier->evidence_count, COUNT_OF(rows));
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct inventory_evidence *finding = made_finding(outlier, rows[i].metric);
        if (!finding || strcmp(finding->cause, rows[i].cause) != 0)
            fail_msg("%s: %s", rows[i].metric, finding ? finding->cause : "not there");
        assert_string_equal(finding->basis, "rule");
    }
    inventory_fini(&inventory);
    made_free(gpus, 1);
}

/* A memory clock that the whole fleet has is compared with the highest one that the driver reports.
 */
static void memory_clock_of_all(void **state)
{
    (void)state;
    static const struct {
        double share;
        bool watched, accused;
    } rows[] = {{1, false, false}, {0.9, false, false}, {0.7, true, false}, {0.04, false, true}};
    enum { GPUS = 8, HIGHEST = 3201 };
    for (size_t r = 0; r < COUNT_OF(rows); r++) {
        struct gpu_result *gpus = made_fleet(GPUS, 1);
        for (size_t i = 0; i < GPUS; i++) {
            facts_set_int(&gpus[i].hardware, "memory_clock_max_mhz", HIGHEST);
            made_set(&gpus[i], "clock.memory", rows[r].share * HIGHEST);
        }
        struct inventory inventory = made_judged(gpus, GPUS);
        assert_int_equal(inventory.outlier_count, rows[r].accused ? GPUS : 0);
        assert_int_equal(inventory.total_outliers, rows[r].accused ? GPUS : 0);
        for (size_t i = 0; i < GPUS; i++) {
            const struct inventory_outlier *outlier = made_outlier(&inventory, gpus[i].uuid);
            const struct inventory_outlier *watched = made_watched(&inventory, gpus[i].uuid);
            assert_int_equal(watched && made_finding(watched, "clock.memory"), rows[r].watched);
            if (!rows[r].accused)
                continue;
            assert_int_equal(outlier->verdict, VERDICT_MISCONFIGURED);
            assert_true(made_finding(outlier, "clock.memory")->expected == HIGHEST);
        }
        inventory_fini(&inventory);
        made_free(gpus, GPUS);
    }
}

static void drift(void **state)
{
    (void)state;
    static const size_t counts[] = {1, 2, 3, 8, 64};
    for (size_t c = 0; c < COUNT_OF(counts); c++) {
        size_t count = counts[c];
        struct gpu_result *gpus = made_fleet(count, 5);
        struct inventory before = judged_by(gpus, count, NULL);
        struct inventory same = judged_by(gpus, count, &before);
        assert_int_equal(same.total_outliers, 0);
        assert_int_equal(same.watch_count, before.watch_count);
        inventory_fini(&same);
        made_clock(&gpus[0], 0.97); /* warmer today: no drift of anything else */
        made_scale(&gpus[0], "main.bandwidth.read", 0.95);
        facts_set_text(&gpus[0].board, "driver", "590.00");
        struct inventory now = judged_by(gpus, count, &before);
        const struct inventory_evidence *finding =
            made_finding(made_outlier(&now, "GPU-000"), "main.bandwidth.read");
        if (!finding)
            fail_msg("%zu GPUs: no drift found", count);
        if (count < 8) {
            assert_string_equal(finding->basis, "baseline");
            assert_true(fabs(finding->deviation + 0.05) < 0.001);
            assert_non_null(strstr(finding->cause, "(baseline of 2026-02-02T00:00:00Z)"));
        }
        if (count == 1) {
            finding = made_finding(made_watched(&now, "GPU-000"), "board.driver");
            assert_string_equal(finding->cause, "driver 590.00, was 580.00");
        }
        assert_null(made_finding(made_outlier(&now, "GPU-000"), "l2.bandwidth.read"));
        inventory_fini(&now);
        inventory_fini(&before);
        made_free(gpus, count);
    }
}

static struct inventory judged_for_drift(const struct gpu_result *gpus, size_t count,
                                         const struct inventory *baseline)
{
    struct inventory inventory = {0};
    struct err err = {0};
    const struct judge_basis basis = {
        .config = made_config(), .baseline = baseline, .drift_only = true};
    assert_int_equal(made_judge(gpus, count, true, &basis, &inventory, &err), 0);
    return inventory;
}

/* A figure that fell to nothing is lost wholly, on every basis. */
static void fallen_to_nothing(void **state)
{
    (void)state;
    static const size_t counts[] = {1, 3, 8};
    for (size_t c = 0; c < COUNT_OF(counts); c++) {
        struct gpu_result *gpus = made_fleet(counts[c], 11);
        struct inventory before = judged_by(gpus, counts[c], NULL);
        made_set(&gpus[0], "main.bandwidth.read", 0);
        made_set(&gpus[0], "main.bandwidth.write", 0);
        struct inventory now[] = {judged_by(gpus, counts[c], &before),
                                  judged_for_drift(gpus, counts[c], &before),
                                  judged_by(gpus, counts[c], NULL)};
        for (size_t k = 0; k < COUNT_OF(now); k++) {
            const struct inventory_outlier *outlier = made_outlier(&now[k], "GPU-000");
            const struct inventory_evidence *read = made_finding(outlier, "main.bandwidth.read");
            const struct inventory_evidence *write = made_finding(outlier, "main.bandwidth.write");
            if (k == 2 && counts[c] == 3) /* no reference: with three GPUs it is only watched */
                write = made_finding(made_watched(&now[k], "GPU-000"), "main.bandwidth.write");
            if (!read || !(read->expected > 3000) || read->deviation != -1)
                fail_msg("%zu GPUs, basis %zu: read", counts[c], k);
            if (k < 2 || counts[c] > 1)
                if (!write || !(write->expected > 3000) || write->deviation != -1)
                    fail_msg("%zu GPUs, basis %zu: write", counts[c], k);
            inventory_fini(&now[k]);
        }
        inventory_fini(&before);
        made_free(gpus, counts[c]);
    }
}

/* A lowered clock has the same finding on every basis. */
static void held_clock(void **state)
{
    (void)state;
    static const struct {
        int64_t limit_mhz;
        const char *throttle;
        double factor;
        enum verdict verdict;
        const char *cause, *drift_cause;
    } rows[] = {
        {1386, "none", 0.7, VERDICT_MISCONFIGURED, "SM clock limit 1386 MHz, model has 1980 MHz",
         "SM clock limit 1386 MHz, model has 1980 MHz"},
        {1980, "sw_thermal", 0.8, VERDICT_DEGRADED, "throttled for heat at 50 C (sw_thermal)",
         "throttled for heat at 50 C (sw_thermal)"},
        {1980, "none", 0.6, VERDICT_DEGRADED,
         "cause unknown: no limit, setting or throttle reason holds it down",
         "cause unknown (baseline of 2026-02-02T00:00:00Z)"},
    };
    enum { COUNT = 64, SUSPECT = 5 };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct gpu_result *gpus = made_fleet(COUNT, 8);
        for (size_t k = 0; k < COUNT; k++)
            facts_set_int(&gpus[k].config, "sm_clock_limit_mhz", 1980);
        struct inventory before = judged_by(gpus, COUNT, NULL);
        facts_set_int(&gpus[SUSPECT].config, "sm_clock_limit_mhz", rows[i].limit_mhz);
        facts_set_text(&gpus[SUSPECT].health, "throttle", rows[i].throttle);
        made_clock(&gpus[SUSPECT], rows[i].factor * 1980 /
                                       measures_get(&gpus[SUSPECT].measures, "clock.sm")->value);
        struct inventory now[] = {judged_by(gpus, COUNT, NULL), judged_by(gpus, COUNT, &before),
                                  judged_for_drift(gpus, COUNT, &before)};
        for (size_t k = 0; k < COUNT_OF(now); k++) {
            const struct inventory_outlier *outlier = made_outlier(&now[k], "GPU-005");
            const struct inventory_evidence *finding = made_finding(outlier, "clock.sm");
            assert_non_null(finding);
            assert_int_equal(outlier->verdict, rows[i].verdict);
            assert_string_equal(finding->basis, k < 2 ? "fleet" : "baseline");
            assert_string_equal(finding->cause, k < 2 ? rows[i].cause : rows[i].drift_cause);
            inventory_fini(&now[k]);
        }
        inventory_fini(&before);
        made_free(gpus, COUNT);
    }
}

/* With too few GPUs to find how a figure follows the clock, a changed clock makes drift uncertain.
 */
static void clock_far_away(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(6, 9);
    for (size_t k = 0; k < 6; k++)
        facts_set_int(&gpus[k].config, "sm_clock_limit_mhz", 1980);
    struct inventory before = judged_by(gpus, 6, NULL);
    facts_set_int(&gpus[3].config, "sm_clock_limit_mhz", 1386);
    made_set(&gpus[3], "clock.sm", 1386); /* and main.latency does not follow */
    struct inventory now = judged_by(gpus, 6, &before);
    assert_int_equal(made_outlier(&now, "GPU-003")->verdict, VERDICT_MISCONFIGURED);
    assert_non_null(made_finding(made_watched(&now, "GPU-003"), "main.latency"));
    inventory_fini(&now);
    inventory_fini(&before);
    made_free(gpus, 6);
}

static void drift_of_all(void **state)
{
    (void)state;
    enum { COUNT = 24 };
    struct gpu_result *gpus = made_fleet(COUNT, 6);
    struct inventory before = judged_by(gpus, COUNT, NULL);
    for (size_t i = 0; i < COUNT; i++) {
        made_scale(&gpus[i], "host.bandwidth.h2d", 0.51);
        facts_set_int(&gpus[i].config, "pcie_gen", 4);
        facts_set_int(&gpus[i].hardware, "pcie_gen_max", 4);
    }
    struct inventory now = judged_by(gpus, COUNT, &before);
    assert_int_equal(now.node_finding_count, 1);
    assert_non_null(strstr(now.node_findings[0].finding, "24 of 24 GPUs of alpha-100: "
                                                         "host.bandwidth.h2d"));
    assert_non_null(strstr(now.node_findings[0].finding, "the PCIe link is slower than it was"));
    inventory_fini(&now);
    inventory_fini(&before);
    made_free(gpus, COUNT);
}

static bool has_text(const struct inventory *inventory, const char *text)
{
    for (size_t i = 0; i < inventory->node_finding_count; i++)
        if (strcmp(inventory->node_findings[i].finding, text) == 0)
            return inventory->node_findings[i].action < ACTION_ALERT;
    return false;
}

static void moves(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(8, 7);
    struct inventory before = judged_by(gpus, 8, NULL);
    free(gpus[1].node);
    gpus[1].node = str_copy("n77");
    free(gpus[2].uuid);
    gpus[2].uuid = str_copy("GPU-new");
    struct inventory now = judged_by(gpus, 8, &before);
    assert_int_equal(now.node_finding_count, 3);
    assert_true(has_text(&now, "moved since the baseline: GPU-001 at 0000:01:00.0, was in n00 at "
                               "0000:01:00.0"));
    assert_true(has_text(&now, "new since the baseline: GPU-new at 0000:02:00.0"));
    assert_true(has_text(&now, "gone since the baseline: GPU-002 at 0000:02:00.0"));
    assert_int_equal(now.total_outliers, 0);
    inventory_fini(&now);
    inventory_fini(&before);
    made_free(gpus, 8);
}

/* GPUs without UUID do not match each other. */
static void no_uuid(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(3, 7);
    struct inventory before = judged_by(gpus, 3, NULL);
    free(gpus[1].uuid);
    gpus[1].uuid = NULL;
    facts_set_bool(&gpus[1].health, "remap_pending", true);
    struct inventory now = judged_by(gpus, 3, &before);
    assert_true(has_text(&now, "new since the baseline: ? at 0000:01:00.0"));
    assert_true(has_text(&now, "gone since the baseline: GPU-001 at 0000:01:00.0"));
    assert_int_equal(now.outlier_count, 1);
    assert_null(now.outliers[0].uuid);
    struct inventory back = judged_by(gpus, 3, &now);
    assert_true(has_text(&back, "new since the baseline: ? at 0000:01:00.0"));
    inventory_fini(&back);
    inventory_fini(&now);
    inventory_fini(&before);
    made_free(gpus, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shipped_references),
        cmocka_unit_test(bad_references),
        cmocka_unit_test(single_gpu),
        cmocka_unit_test(whole_fleet),
        cmocka_unit_test(hardware),
        cmocka_unit_test(told_once),
        cmocka_unit_test(claims),
        cmocka_unit_test(memory_clock_of_all),
        cmocka_unit_test(drift),
        cmocka_unit_test(fallen_to_nothing),
        cmocka_unit_test(held_clock),
        cmocka_unit_test(clock_far_away),
        cmocka_unit_test(drift_of_all),
        cmocka_unit_test(moves),
        cmocka_unit_test(no_uuid),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
