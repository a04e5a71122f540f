/* Compares two inventories of the same GPUs: what the judge finds, and what became of each GPU. */
#include "report/commands/commands.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/sort.h"
#include "inventory/results.h"
#include "markup/text.h"
#include "report/basis.h"
#include "report/command.h"
#include "report/entries.h"
#include "report/looked_for.h"

/* Longer lists and texts are cut. */
enum { ENTRIES_MAX = 100, NAMES_MAX = 8, NAME_CHARS = 40, TEXT_CHARS = 200 };

/* GPUs that were measured before. */
struct diff_counts {
    size_t missing; /* now gone or not measured */
    size_t worse;   /* now outliers, and not before */
};

/* One inventory, with its GPUs and outliers by UUID. */
struct side {
    const struct inventory *inventory;
    struct inventory_lookup *lookup;
};

static bool diff_was_measured(const struct inventory_gpu *gpu)
{
    return gpu->status == GPU_OK || gpu->status == GPU_OUTLIER;
}

static bool diff_is_outlier(const struct inventory_gpu *gpu)
{
    return gpu && gpu->status == GPU_OUTLIER;
}

static void diff_begin_line(struct strbuf *line, const struct inventory_gpu *gpu)
{
    text_put_clean(line, gpu->node, NAME_CHARS);
    strbuf_puts(line, " ");
    text_put_clean(line, gpu->pci, 20);
    strbuf_puts(line, " ");
    text_put_clean(line, gpu->uuid, 50);
    strbuf_puts(line, ": ");
}

static void diff_put_evidence(struct strbuf *line, const struct inventory_outlier *outlier,
                              const struct inventory_evidence *evidence)
{
    strbuf_printf(line, "%s, ", verdict_name(outlier->verdict));
    text_put_clean(line, evidence->metric, NAME_CHARS);
    strbuf_puts(line, ": ");
    text_put_clean(line, evidence->cause, TEXT_CHARS);
}

/* "degraded: memory clock ..." A finding that is listed for its place is no entry of `outliers`. */
static void diff_put_verdict(struct strbuf *line, const struct side *side, const char *uuid)
{
    const struct inventory_outlier *outlier = inventory_find_outlier(side->lookup, uuid);
    if (outlier && outlier->evidence_count)
        diff_put_evidence(line, outlier, &outlier->evidence[0]);
    else
        strbuf_puts(line, outlier ? verdict_name(outlier->verdict) : "outlier with its place");
}

/* Appends the title before the first entry; false beyond the last one that is shown. */
static bool diff_begin_entry(struct strbuf *out, size_t number, const char *title)
{
    if (number >= ENTRIES_MAX)
        return false;
    strbuf_puts(out, number ? "  " : title);
    strbuf_puts(out, number ? "" : "  ");
    return true;
}

static void diff_end_list(struct strbuf *out, size_t count)
{
    if (count > ENTRIES_MAX)
        strbuf_printf(out, "  and %zu more\n", count - ENTRIES_MAX);
}

/* Returns how many of them were measured before. */
static size_t diff_put_new_outliers(struct strbuf *out, const struct side *before,
                                    const struct side *after)
{
    size_t count = 0, worse = 0;
    for (size_t i = 0; i < after->inventory->gpu_count; i++) {
        const struct inventory_gpu *now = &after->inventory->gpus[i];
        const struct inventory_gpu *then = inventory_find_gpu(before->lookup, now->uuid);
        struct strbuf line = {0};
        if (!diff_is_outlier(now) || diff_is_outlier(then))
            continue;
        worse += then && diff_was_measured(then);
        if (!diff_begin_entry(out, count++, "\nOutliers now, but not before:\n"))
            continue;
        diff_begin_line(&line, now);
        diff_put_verdict(&line, after, now->uuid);
        strbuf_printf(&line, " (was %s)", then ? gpu_status_name(then->status) : "not there");
        report_end_line(out, NULL, &line, 2, 4);
    }
    diff_end_list(out, count);
    return worse;
}

/* The worst evidence for which the later survey did not look; NULL: it looked for all. */
static const struct inventory_evidence *diff_find_unsought(const struct inventory_outlier *outlier,
                                                           const struct inventory_gpu *now)
{
    for (size_t i = 0; outlier && i < outlier->evidence_count; i++)
        if (!report_looked_for(now, outlier->evidence[i].metric))
            return &outlier->evidence[i];
    return NULL;
}

static void diff_put_not_looked_for(struct strbuf *out, const struct side *before,
                                    const struct side *after)
{
    size_t count = 0;
    for (size_t i = 0; i < before->inventory->outlier_count; i++) {
        const struct inventory_outlier *then = &before->inventory->outliers[i];
        const struct inventory_gpu *now = inventory_find_gpu(after->lookup, then->uuid);
        const struct inventory_evidence *evidence =
            now && diff_was_measured(now) ? diff_find_unsought(then, now) : NULL;
        struct strbuf line = {0};
        if (!evidence ||
            !diff_begin_entry(out, count++, "\nOutliers before, and not measured again:\n"))
            continue;
        diff_begin_line(&line, now);
        strbuf_puts(&line, "was ");
        diff_put_evidence(&line, then, evidence);
        report_end_line(out, NULL, &line, 2, 4);
    }
    diff_end_list(out, count);
}

static void diff_put_no_longer_outliers(struct strbuf *out, const struct side *before,
                                        const struct side *after)
{
    size_t count = 0;
    for (size_t i = 0; i < before->inventory->gpu_count; i++) {
        const struct inventory_gpu *then = &before->inventory->gpus[i];
        const struct inventory_gpu *now = inventory_find_gpu(after->lookup, then->uuid);
        struct strbuf line = {0};
        if (!diff_is_outlier(then) || !now || now->status != GPU_OK ||
            diff_find_unsought(inventory_find_outlier(before->lookup, then->uuid), now) ||
            !diff_begin_entry(out, count++, "\nOutliers before, but not now:\n"))
            continue;
        diff_begin_line(&line, now);
        strbuf_puts(&line, "was ");
        diff_put_verdict(&line, before, then->uuid);
        report_end_line(out, NULL, &line, 2, 4);
    }
    diff_end_list(out, count);
}

static size_t diff_put_missing(struct strbuf *out, const struct side *before,
                               const struct side *after)
{
    size_t count = 0;
    for (size_t i = 0; i < before->inventory->gpu_count; i++) {
        const struct inventory_gpu *then = &before->inventory->gpus[i];
        const struct inventory_gpu *now = inventory_find_gpu(after->lookup, then->uuid);
        struct strbuf line = {0};
        if (!diff_was_measured(then) || (now && diff_was_measured(now)) ||
            !diff_begin_entry(out, count++, "\nMeasured before, but not now:\n"))
            continue;
        const struct inventory_unmeasured *entry =
            now ? inventory_find_unmeasured(after->lookup, then->uuid) : NULL;
        diff_begin_line(&line, then);
        strbuf_puts(&line, now ? gpu_status_name(now->status) : "gone");
        strbuf_puts(&line, entry && entry->reason ? ", " : "");
        if (entry && entry->reason)
            text_put_clean(&line, entry->reason, TEXT_CHARS);
        report_end_line(out, NULL, &line, 2, 4);
    }
    diff_end_list(out, count);
    return count;
}

/* Inventories of two clusters can be compared, but every GPU is then new or gone. */
static void diff_put_strangers(struct strbuf *out, const struct side *before,
                               const struct side *after)
{
    for (size_t i = 0; i < before->inventory->gpu_count; i++)
        if (inventory_find_gpu(after->lookup, before->inventory->gpus[i].uuid))
            return;
    if (before->inventory->gpu_count && after->inventory->gpu_count)
        strbuf_puts(out, "\nNo GPU is in both inventories: they may be of different clusters.\n");
}

/* What became of the GPUs: a list for each case, unless it is empty. */
static struct diff_counts diff_status_put(struct strbuf *out, const struct inventory *before,
                                          const struct inventory *after)
{
    struct side old = {before, inventory_lookup_create(before)};
    struct side new = {after, inventory_lookup_create(after)};
    struct diff_counts counts;
    diff_put_strangers(out, &old, &new);
    counts.worse = diff_put_new_outliers(out, &old, &new);
    diff_put_no_longer_outliers(out, &old, &new);
    diff_put_not_looked_for(out, &old, &new);
    counts.missing = diff_put_missing(out, &old, &new);
    inventory_lookup_destroy(old.lookup);
    inventory_lookup_destroy(new.lookup);
    return counts;
}

static void diff_put_side(struct strbuf *out, const char *name, const struct inventory *inventory)
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

static int diff_by_cause(const void *left, const void *right)
{
    const struct change *a = left, *b = right;
    return str_order(a->cause, b->cause);
}

static int diff_by_cause_and_place(const void *left, const void *right)
{
    const struct change *a = left, *b = right;
    int order = diff_by_cause(a, b);
    if (!order)
        order = str_order(a->gpu->node, b->gpu->node);
    return order ? order : str_order(a->gpu->pci, b->gpu->pci);
}

static bool diff_is_setting(const struct inventory_evidence *finding)
{
    return strncmp(finding->metric, "config.", 7) == 0 ||
           strncmp(finding->metric, "board.", 6) == 0;
}

/* One change and the GPUs that have it, unless all have it. */
static void diff_put_setting(struct strbuf *out, const struct change *changes, size_t count,
                             size_t all)
{
    struct strbuf line = {0}, names = {0};
    if (count == all && count > 1)
        strbuf_puts(&line, "all ");
    report_put_count(&line, count, "GPU: ", "GPUs: ");
    text_put_clean(&line, changes[0].cause, TEXT_CHARS);
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
static void diff_put_settings(struct strbuf *out, const struct inventory *judged)
{
    size_t room = 0, count = 0;
    for (size_t i = 0; i < judged->watch_count; i++)
        room += judged->watch[i].evidence_count;
    struct change *changes = mem_array(room, sizeof *changes);
    for (size_t i = 0; i < judged->watch_count; i++)
        for (size_t f = 0; f < judged->watch[i].evidence_count; f++)
            if (diff_is_setting(&judged->watch[i].evidence[f]))
                changes[count++] =
                    (struct change){&judged->watch[i], judged->watch[i].evidence[f].cause};
    if (count)
        sort_stable(changes, count, sizeof *changes, diff_by_cause_and_place);
    strbuf_puts(out, count ? "\nSettings:\n" : "");
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && diff_by_cause(&changes[i], &changes[end]) == 0;)
            end++;
        diff_put_setting(out, &changes[i], end - i, judged->total_measured);
    }
    free(changes);
}

static bool diff_is_counter(const struct inventory_evidence *finding)
{
    return strncmp(finding->metric, "health.", 7) == 0;
}

static bool diff_is_figure(const struct inventory_evidence *finding)
{
    return !diff_is_setting(finding) && !diff_is_counter(finding);
}

/* The watched findings of one sort. */
static void diff_put_watched(struct strbuf *out, const struct inventory *judged, const char *title,
                             bool (*is_wanted)(const struct inventory_evidence *finding))
{
    size_t shown = 0;
    for (size_t i = 0; i < judged->watch_count; i++) {
        struct inventory_outlier figures = judged->watch[i];
        struct inventory_evidence *kept = mem_array(figures.evidence_count, sizeof *kept);
        size_t count = 0;
        for (size_t f = 0; f < figures.evidence_count; f++)
            if (is_wanted(&figures.evidence[f]))
                kept[count++] = figures.evidence[f];
        figures.evidence = kept;
        figures.evidence_count = count;
        if (count && shown++ < ENTRIES_MAX) {
            strbuf_printf(out, "%s%s%s", shown == 1 ? "\n" : "", shown == 1 ? title : "",
                          shown == 1 ? ":\n" : "");
            report_put_outlier(out, NULL, &figures);
        }
        free(kept);
    }
    if (shown > ENTRIES_MAX)
        strbuf_printf(out, "  and %zu more\n", shown - ENTRIES_MAX);
}

static void diff_put_lists(struct strbuf *out, const struct inventory *judged)
{
    for (size_t i = 0; i < judged->node_finding_count && i < ENTRIES_MAX; i++) {
        strbuf_puts(out, i ? "" : "\nPlaces:\n");
        report_put_node(out, NULL, &judged->node_findings[i]);
    }
    if (judged->node_finding_count > ENTRIES_MAX)
        strbuf_printf(out, "  and %zu more\n", judged->node_finding_count - ENTRIES_MAX);
    for (size_t i = 0; i < judged->outlier_count && i < ENTRIES_MAX; i++) {
        strbuf_puts(out, i ? "" : "\nWorse than they were:\n");
        report_put_outlier(out, NULL, &judged->outliers[i]);
    }
    if (judged->outlier_count > ENTRIES_MAX)
        strbuf_printf(out, "  and %zu more\n", judged->outlier_count - ENTRIES_MAX);
    diff_put_watched(out, judged, "Errors and repairs", diff_is_counter);
    diff_put_watched(out, judged, "A little worse, perhaps by chance", diff_is_figure);
}

int report_diff(const struct inventory *before, const struct inventory *after,
                const struct judge_config *config, struct strbuf *out_text,
                struct report_diff *out_diff, struct err *err)
{
    const struct judge_basis basis = {.config = config, .baseline = before, .drift_only = true};
    struct inventory judged = {0};
    struct judge *judge = judge_create(&basis, after->gpu_count);
    int rc = judge_add_inventory(judge, after, err);
    if (!rc) {
        judge_finish(judge, &judged);
        diff_put_side(out_text, "before", before);
        diff_put_side(out_text, "after", after);
        size_t head_length = out_text->length;
        diff_put_lists(out_text, &judged);
        diff_put_settings(out_text, &judged);
        struct diff_counts counts = diff_status_put(out_text, before, after);
        *out_diff =
            (struct report_diff){judged.total_outliers > 0 || counts.worse > 0, counts.missing > 0};
        if (out_text->length == head_length)
            strbuf_puts(out_text, "no change beyond the scatter\n");
    }
    judge_destroy(judge);
    inventory_fini(&judged);
    return rc;
}

/* In the wrong order, repaired GPUs look like broken ones. */
static void diff_check_order(const struct command_options *options, const struct inventory *before,
                             const struct inventory *after)
{
    int64_t before_s = 0, after_s = 0;
    if (clock_parse_stamp(before->generated, &before_s) ||
        clock_parse_stamp(after->generated, &after_s) || before_s <= after_s)
        return;
    log_warning("%s (%s) is newer than %s (%s): the older file comes first", options->files[0],
                before->generated, options->files[1], after->generated);
}

int command_diff(const struct command_options *options)
{
    struct report_basis basis = {0};
    struct inventory before = {0}, after = {0};
    struct report_diff diff = {0};
    struct err err = {0};
    struct strbuf text = {0};
    int rc = report_basis_load_config(NULL, &basis, &err);
    if (!rc)
        rc = inventory_read_file(options->files[0], &before, &err);
    if (!rc)
        rc = inventory_read_file(options->files[1], &after, &err);
    if (!rc) {
        diff_check_order(options, &before, &after);
        command_anonymise(options, (struct inventory *const[]){&before, &after}, 2, NULL);
        rc = report_diff(&before, &after, &basis.config, &text, &diff, &err);
    }
    inventory_fini(&before);
    inventory_fini(&after);
    report_basis_fini(&basis);
    if (rc) {
        strbuf_fini(&text);
        log_failure(&err);
        return command_exit_code(rc);
    }
    int code = command_write(&text, NULL);
    if (code != EXIT_DONE)
        return code;
    return diff.missing ? EXIT_MISSING : diff.worse ? EXIT_WORSE : EXIT_DONE;
}
