/* Compares two inventories of the same GPUs. */
#include "report/diff.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "markup/text.h"
#include "report/diff_status.h"
#include "report/entries.h"

enum { ENTRIES_MAX = 100, NAMES_MAX = 8, TEXT_MAX = 200 };

static void put_side(struct strbuf *out, const char *name, const struct inventory *inventory)
{
    strbuf_printf(out, "%s: ", name);
    text_put_clean(out, inventory->generated, 30);
    strbuf_puts(out, ", ");
    report_put_count(out, inventory->total_gpus, "GPU", "GPUs");
    strbuf_printf(out, ", %u measured\n", inventory->total_measured);
}

/* A setting of one GPU that changed. */
struct change {
    const struct inventory_outlier *gpu;
    const char *cause; /* "driver 590.00, was 580.00" */
};

static int by_cause(const void *left, const void *right)
{
    const struct change *a = left, *b = right;
    return str_order(a->cause, b->cause);
}

static int by_cause_and_place(const void *left, const void *right)
{
    const struct change *a = left, *b = right;
    int order = by_cause(a, b);
    if (!order)
        order = str_order(a->gpu->node, b->gpu->node);
    return order ? order : str_order(a->gpu->pci, b->gpu->pci);
}

static bool is_setting(const struct inventory_finding *finding)
{
    return strncmp(finding->metric, "config.", 7) == 0 ||
           strncmp(finding->metric, "board.", 6) == 0;
}

/* One change and the GPUs that have it, unless all have it. */
static void put_setting(struct strbuf *out, const struct change *changes, size_t count, size_t all)
{
    struct strbuf line = {0}, names = {0};
    if (count == all && count > 1)
        strbuf_puts(&line, "all ");
    report_put_count(&line, count, "GPU: ", "GPUs: ");
    text_put_clean(&line, changes[0].cause, TEXT_MAX);
    strbuf_puts(out, "  ");
    report_end_line(out, NULL, &line, 2, 4);
    if (count == all && count > 1)
        return;
    for (size_t i = 0; i < count && i < NAMES_MAX; i++) {
        strbuf_puts(&names, i ? ", " : "");
        text_put_clean(&names, changes[i].gpu->node, 40);
        strbuf_puts(&names, " ");
        text_put_clean(&names, changes[i].gpu->uuid, 50);
    }
    if (count > NAMES_MAX)
        strbuf_printf(&names, " and %zu more", count - NAMES_MAX);
    strbuf_puts(out, "      ");
    report_end_line(out, NULL, &names, 6, 6);
}

/* One entry per change of a setting, since settings usually change on many GPUs at once. */
static int put_settings(struct strbuf *out, const struct inventory *judged, struct err *err)
{
    size_t room = 0, count = 0;
    for (size_t i = 0; i < judged->watch_count; i++)
        room += judged->watch[i].finding_count;
    struct change *changes = mem_array(room, sizeof *changes);
    if (!changes)
        return err_no_memory(err);
    for (size_t i = 0; i < judged->watch_count; i++)
        for (size_t f = 0; f < judged->watch[i].finding_count; f++)
            if (is_setting(&judged->watch[i].findings[f]))
                changes[count++] =
                    (struct change){&judged->watch[i], judged->watch[i].findings[f].cause};
    if (count)
        qsort(changes, count, sizeof *changes, by_cause_and_place);
    strbuf_puts(out, count ? "\nSettings:\n" : "");
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && by_cause(&changes[i], &changes[end]) == 0;)
            end++;
        put_setting(out, &changes[i], end - i, judged->total_measured);
    }
    free(changes);
    return 0;
}

static bool is_counter(const struct inventory_finding *finding)
{
    return strncmp(finding->metric, "health.", 7) == 0;
}

static bool is_figure(const struct inventory_finding *finding)
{
    return !is_setting(finding) && !is_counter(finding);
}

/* The watched findings of one sort. */
static void put_watched(struct strbuf *out, const struct inventory *judged, const char *title,
                        bool (*is_wanted)(const struct inventory_finding *finding))
{
    size_t shown = 0;
    for (size_t i = 0; i < judged->watch_count; i++) {
        struct inventory_outlier figures = judged->watch[i];
        struct inventory_finding *kept = mem_array(figures.finding_count, sizeof *kept);
        size_t count = 0;
        if (!kept) {
            out->failed = true;
            return;
        }
        for (size_t f = 0; f < figures.finding_count; f++)
            if (is_wanted(&figures.findings[f]))
                kept[count++] = figures.findings[f];
        figures.findings = kept;
        figures.finding_count = count;
        if (count && shown++ < ENTRIES_MAX) {
            strbuf_printf(out, "%s%s%s", shown == 1 ? "\n" : "", shown == 1 ? title : "",
                          shown == 1 ? ":\n" : "");
            report_put_outlier(out, NULL, &figures, true);
        }
        free(kept);
    }
    if (shown > ENTRIES_MAX)
        strbuf_printf(out, "  and %zu more\n", shown - ENTRIES_MAX);
}

static void put_lists(struct strbuf *out, const struct inventory *judged)
{
    for (size_t i = 0; i < judged->node_finding_count && i < ENTRIES_MAX; i++) {
        strbuf_puts(out, i ? "" : "\nPlaces:\n");
        report_put_node(out, NULL, &judged->node_findings[i]);
    }
    if (judged->node_finding_count > ENTRIES_MAX)
        strbuf_printf(out, "  and %zu more\n", judged->node_finding_count - ENTRIES_MAX);
    for (size_t i = 0; i < judged->outlier_count && i < ENTRIES_MAX; i++) {
        strbuf_puts(out, i ? "" : "\nWorse than they were:\n");
        report_put_outlier(out, NULL, &judged->outliers[i], false);
    }
    if (judged->outlier_count > ENTRIES_MAX)
        strbuf_printf(out, "  and %zu more\n", judged->outlier_count - ENTRIES_MAX);
    put_watched(out, judged, "Errors and repairs", is_counter);
    put_watched(out, judged, "A little worse, perhaps by chance", is_figure);
}

int report_diff(const struct inventory *before, const struct inventory *after,
                const struct judge_config *config, struct strbuf *out_text,
                struct report_diff *out_diff, struct err *err)
{
    const struct judge_basis basis = {.config = config, .baseline = before, .drift_only = true};
    struct inventory judged = {0};
    struct judge *judge = NULL;
    struct diff_counts counts = {0};
    int rc = judge_create(&basis, after->gpu_count, &judge, err);
    if (rc)
        return rc;
    rc = judge_add_inventory(judge, after, err);
    if (rc)
        goto out;
    rc = judge_finish(judge, &judged, err);
    if (rc)
        goto out;
    put_side(out_text, "before", before);
    put_side(out_text, "after", after);
    size_t head_length = out_text->length;
    put_lists(out_text, &judged);
    rc = put_settings(out_text, &judged, err);
    if (rc)
        goto out;
    rc = diff_status_put(out_text, before, after, &counts, err);
    if (rc)
        goto out;
    *out_diff =
        (struct report_diff){judged.total_outliers > 0 || counts.worse > 0, counts.missing > 0};
    if (out_text->length == head_length)
        strbuf_puts(out_text, "no change beyond the scatter\n");
out:
    judge_destroy(judge);
    inventory_fini(&judged);
    return rc;
}
