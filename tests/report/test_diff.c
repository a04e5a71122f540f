/* Two inventories of the same GPUs: what is said of them, and what the program returns for it. */
#include "../check.h"

#include "made.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "report/commands/commands.h"

enum { COUNT = 12 };

/* As a file would have it. */
static struct inventory surveyed(const struct gpu_result *gpus, size_t count, const char *stamp)
{
    struct inventory judged = made_judged(gpus, count), read;
    struct strbuf text = {0};
    struct err err = {0};
    judged.version = str_copy("x");
    judged.generated = str_copy(stamp);
    judged.backend = str_copy("x");
    inventory_print(&judged, &text);
    if (inventory_read_text(text.data, text.length, "file", &read, &err))
        fail_msg("%s", err.text);
    inventory_fini(&judged);
    strbuf_fini(&text);
    return read;
}

static char *compared(const struct inventory *before, const struct inventory *after,
                      struct report_diff *out_diff)
{
    struct strbuf text = {0};
    struct err err = {0};
    assert_int_equal(report_diff(before, after, made_config(), &text, out_diff, &err), 0);
    assert_false(text.failed);
    return text.data;
}

static void expect(const char *text, const char *part)
{
    if (!text || !strstr(text, part))
        fail_msg("\"%s\" is not in\n%s", part, text ? text : "nothing");
}

static void nothing_changed(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(COUNT, 1);
    made_scale(&gpus[3], "main.bandwidth.read", 0.5); /* bad, but as bad as before */
    struct inventory before = surveyed(gpus, COUNT, "2026-01-01T00:00:00Z");
    struct inventory after = surveyed(gpus, COUNT, "2026-02-01T00:00:00Z");
    struct report_diff diff;
    char *text = compared(&before, &after, &diff);
    assert_string_equal(text, "before: 2026-01-01T00:00:00Z, 12 GPUs, 12 measured\n"
                              "after: 2026-02-01T00:00:00Z, 12 GPUs, 12 measured\n"
                              "no change beyond the scatter\n");
    assert_false(diff.worse || diff.missing);
    free(text);
    inventory_fini(&before);
    inventory_fini(&after);
    made_free(gpus, COUNT);
}

/* Counters of errors and repairs: told by themselves, and silent where they did not grow. */
static void counters_grew(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(COUNT, 1);
    for (size_t i = 0; i < COUNT; i++) {
        facts_set_int(&gpus[i].health, "ecc_corrected_dram", i == 6 ? 70000 : 0);
        facts_set_int(&gpus[i].health, "pcie_replays", 2);
    }
    struct inventory before = surveyed(gpus, COUNT, "2026-01-01T00:00:00Z");
    facts_set_int(&gpus[3].health, "ecc_corrected_dram", 100000);
    facts_set_int(&gpus[4].health, "pcie_replays", 5);
    struct inventory after = surveyed(gpus, COUNT, "2026-02-01T00:00:00Z");
    struct report_diff diff;
    char *text = compared(&before, &after, &diff);
    expect(text, "\n\nErrors and repairs:\n  n00 0000:03:00.0 GPU-003\n"
                 "      corrected ECC errors of memory: 100000, was 0 (baseline of "
                 "2026-01-01T00:00:00Z)\n");
    assert_null(strstr(text, "GPU-006"));
    assert_null(strstr(text, "perhaps by chance"));
    assert_null(strstr(text, "replays"));
    assert_false(diff.worse || diff.missing);
    free(text);
    inventory_fini(&after);
    facts_set_bool(&gpus[5].health, "remap_pending", true);
    after = surveyed(gpus, COUNT, "2026-02-01T00:00:00Z");
    text = compared(&before, &after, &diff);
    expect(text, "row remap pending: yes, was no");
    assert_true(diff.worse);
    free(text);
    inventory_fini(&before);
    inventory_fini(&after);
    made_free(gpus, COUNT);
}

static void everything_changed(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(COUNT, 2);
    struct inventory before = surveyed(gpus, COUNT - 1, "2026-01-01T00:00:00Z");
    made_scale(&gpus[1], "main.bandwidth.read", 0.9);
    made_scale(&gpus[1], "main.bandwidth.write", 0.9);
    made_scale(&gpus[2], "main.bandwidth.read", 1.2); /* better is nothing to report */
    for (size_t i = 0; i < 8; i++)
        facts_set_text(&gpus[i].board, "driver", "590.00");
    facts_set_int(&gpus[9].config, "power_limit_w", 500);
    free(gpus[4].node);
    gpus[4].node = str_copy("n99");
    gpus[5].status = GPU_TIMED_OUT;
    struct inventory after = surveyed(gpus + 1, COUNT - 1, "2026-02-01T00:00:00Z");
    struct report_diff diff;
    char *text = compared(&before, &after, &diff);
    expect(text, "\nPlaces:\n");
    expect(text, "n00: gone since the baseline: GPU-000 at 0000:00:00.0\n");
    expect(text, "n02: new since the baseline: GPU-011 at 0000:03:00.0\n");
    expect(text, "n99: moved since the baseline: GPU-004 at 0000:00:00.0, was in n01 at");
    expect(text,
           "\nWorse than they were:\n  n00 0000:01:00.0 GPU-001: degraded, loss 10.0 %, drain\n");
    expect(text, "(-10.0 %, seen 2 of 2)");
    expect(text, ": cause unknown (baseline of\n        2026-01-01T00:00:00Z)\n");
    expect(text, "\nSettings:\n  6 GPUs: driver 590.00, was 580.00\n");
    expect(text, "  1 GPU: power limit 500 W, was 700 W\n");
    expect(text,
           "      n00 GPU-001, n00 GPU-002, n00 GPU-003, n01 GPU-006, n01 GPU-007, n99 GPU-004");
    expect(text, "      n02 GPU-009\n");
    expect(text, "\nOutliers now, but not before:\n  n00 0000:01:00.0 GPU-001: degraded, main.");
    expect(text, "\nMeasured before, but not now:\n  n00 0000:00:00.0 GPU-000: gone\n"
                 "  n01 0000:01:00.0 GPU-005: timed_out");
    assert_null(strstr(text, "0000:02:00.0 GPU-002"));
    assert_true(diff.worse && diff.missing);
    free(text);
    text = compared(&after, &before, &diff);
    expect(text,
           "\nOutliers before, but not now:\n  n00 0000:01:00.0 GPU-001: was degraded, main.");
    free(text);
    inventory_fini(&before);
    inventory_fini(&after);
    made_free(gpus, COUNT);
}

/* A finding is gone only if the later survey looked for it. */
static void not_measured_again(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(COUNT, 1), *later = made_fleet(COUNT, 1);
    measures_add(&gpus[3].measures, "compute.screen", 40, "", "test");
    measures_add(&gpus[3].measures, "compute.wrong_on.fp32", 12, "", "test");
    struct inventory before = surveyed(gpus, COUNT, "2026-01-01T00:00:00Z");
    for (int looked = 0; looked < 2; looked++) {
        if (looked)
            measures_add(&later[3].measures, "compute.screen", 0, "", "test");
        struct inventory after = surveyed(later, COUNT, "2026-02-01T00:00:00Z");
        struct report_diff diff;
        char *text = compared(&before, &after, &diff);
        expect(text, looked ? "\nOutliers before, but not now:\n"
                            : "\nOutliers before, and not measured again:\n");
        expect(text, "  n00 0000:03:00.0 GPU-003: was failing, compute.wrong_on.fp32: wrong");
        assert_true((strstr(text, "but not now") != NULL) == (looked != 0));
        free(text);
        inventory_fini(&after);
    }
    inventory_fini(&before);
    made_free(gpus, COUNT);
    made_free(later, COUNT);
}

static void empty(void **state)
{
    (void)state;
    struct inventory before = surveyed(NULL, 0, "a"), after = surveyed(NULL, 0, "b");
    struct report_diff diff;
    char *text = compared(&before, &after, &diff);
    assert_false(diff.worse || diff.missing);
    free(text);
    inventory_fini(&before);
    inventory_fini(&after);
}

/* Hundreds of GPUs change: each list has an end. A setting that all changed names nobody. */
static void many_changes(void **state)
{
    (void)state;
    enum { MANY = 300 };
    struct gpu_result *gpus = made_fleet(MANY, 3);
    struct inventory before = surveyed(gpus, MANY, "2026-01-01T00:00:00Z");
    for (size_t i = 0; i < MANY; i++)
        facts_set_text(&gpus[i].board, "driver", "590.00");
    struct inventory after = surveyed(gpus, MANY / 2, "2026-02-01T00:00:00Z");
    struct report_diff diff;
    char *text = compared(&before, &after, &diff);
    expect(text, "\nSettings:\n  all 150 GPUs: driver 590.00, was 580.00\n\n");
    expect(text, "GPU-249: gone\n  and 50 more\n");
    assert_true(diff.missing && !diff.worse);
    free(text);
    inventory_fini(&after);
    after = surveyed(gpus + MANY / 2, MANY / 2, "2026-02-01T00:00:00Z");
    struct inventory half = surveyed(gpus, MANY / 2, "2026-01-01T00:00:00Z");
    text = compared(&half, &after, &diff);
    expect(text, "\nNo GPU is in both inventories: they may be of different clusters.\n");
    free(text);
    inventory_fini(&half);
    inventory_fini(&before);
    inventory_fini(&after);
    made_free(gpus, MANY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_changed),    cmocka_unit_test(counters_grew),
        cmocka_unit_test(everything_changed), cmocka_unit_test(not_measured_again),
        cmocka_unit_test(many_changes),       cmocka_unit_test(empty)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
