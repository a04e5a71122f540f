/* What became of the GPUs of an earlier inventory. */
#include "report/diff_status.h"

#include <stdlib.h>

#include "base/mem.h"
#include "inventory/results.h"
#include "markup/text.h"
#include "report/entries.h"

enum { ENTRIES_MAX = 100, NAME_CHARS = 40, TEXT_CHARS = 200 };

/* One inventory, with its GPUs and outliers by UUID. */
struct side {
    const struct inventory *inventory;
    struct inventory_lookup *lookup;
    const struct inventory_outlier **outliers; /* sorted */
};

static int by_uuid(const void *left, const void *right)
{
    const struct inventory_outlier *const *a = left, *const *b = right;
    return str_order((*a)->uuid, (*b)->uuid);
}

static int side_init(struct side *side, const struct inventory *inventory)
{
    const size_t count = inventory->outlier_count;
    *side = (struct side){.inventory = inventory};
    side->outliers = mem_array(count, sizeof *side->outliers);
    if (!side->outliers || inventory_lookup_create(inventory, &side->lookup))
        return -1;
    for (size_t i = 0; i < count; i++)
        side->outliers[i] = &inventory->outliers[i];
    if (count)
        qsort(side->outliers, count, sizeof *side->outliers, by_uuid);
    return 0;
}

static void side_fini(struct side *side)
{
    free(side->outliers);
    inventory_lookup_destroy(side->lookup);
}

/* The GPU's entry in `outliers`. NULL if its finding is listed for its place. */
static const struct inventory_outlier *outlier_of(const struct side *side, const char *uuid)
{
    const struct inventory_outlier wanted = {.uuid = (char *)uuid}, *key = &wanted;
    const struct inventory_outlier **found =
        side->inventory->outlier_count
            ? bsearch(&key, side->outliers, side->inventory->outlier_count, sizeof *side->outliers,
                      by_uuid)
            : NULL;
    return found ? *found : NULL;
}

static bool was_measured(const struct inventory_gpu *gpu)
{
    return gpu->status == GPU_OK || gpu->status == GPU_OUTLIER;
}

static bool is_outlier(const struct inventory_gpu *gpu)
{
    return gpu && gpu->status == GPU_OUTLIER;
}

static void begin_line(struct strbuf *line, const struct inventory_gpu *gpu)
{
    text_put_clean(line, gpu->node, NAME_CHARS);
    strbuf_puts(line, " ");
    text_put_clean(line, gpu->pci, 20);
    strbuf_puts(line, " ");
    text_put_clean(line, gpu->uuid, 50);
    strbuf_puts(line, ": ");
}

/* "degraded: memory clock ..." */
static void put_verdict(struct strbuf *line, const struct side *side, const char *uuid)
{
    const struct inventory_outlier *outlier = outlier_of(side, uuid);
    strbuf_puts(line, outlier ? inventory_kind_name(outlier->kind) : "outlier with its place");
    if (!outlier || !outlier->finding_count)
        return;
    strbuf_puts(line, ", ");
    text_put_clean(line, outlier->findings[0].metric, NAME_CHARS);
    strbuf_puts(line, ": ");
    text_put_clean(line, outlier->findings[0].cause, TEXT_CHARS);
}

static const char *reason_of(const struct inventory *inventory, const char *uuid)
{
    for (size_t i = 0; i < inventory->unmeasured_count; i++)
        if (str_equal(inventory->unmeasured[i].uuid, uuid))
            return inventory->unmeasured[i].reason;
    return NULL;
}

/* Appends the title before the first entry; false beyond the last one that is shown. */
static bool begin_entry(struct strbuf *out, size_t number, const char *title)
{
    if (number >= ENTRIES_MAX)
        return false;
    strbuf_puts(out, number ? "  " : title);
    strbuf_puts(out, number ? "" : "  ");
    return true;
}

static void end_list(struct strbuf *out, size_t count)
{
    if (count > ENTRIES_MAX)
        strbuf_printf(out, "  and %zu more\n", count - ENTRIES_MAX);
}

/* Returns how many of them were measured before. */
static size_t put_accused(struct strbuf *out, const struct side *before, const struct side *after)
{
    size_t count = 0, worse = 0;
    for (size_t i = 0; i < after->inventory->gpu_count; i++) {
        const struct inventory_gpu *now = &after->inventory->gpus[i];
        const struct inventory_gpu *then = inventory_find_gpu(before->lookup, now->uuid);
        struct strbuf line = {0};
        if (!is_outlier(now) || is_outlier(then))
            continue;
        worse += then && was_measured(then);
        if (!begin_entry(out, count++, "\nOutliers now, but not before:\n"))
            continue;
        begin_line(&line, now);
        put_verdict(&line, after, now->uuid);
        strbuf_printf(&line, " (was %s)", then ? gpu_status_name(then->status) : "not there");
        report_end_line(out, NULL, &line, 2, 4);
    }
    end_list(out, count);
    return worse;
}

static void put_no_longer_outliers(struct strbuf *out, const struct side *before,
                                   const struct side *after)
{
    size_t count = 0;
    for (size_t i = 0; i < before->inventory->gpu_count; i++) {
        const struct inventory_gpu *then = &before->inventory->gpus[i];
        const struct inventory_gpu *now = inventory_find_gpu(after->lookup, then->uuid);
        struct strbuf line = {0};
        if (!is_outlier(then) || !now || now->status != GPU_OK ||
            !begin_entry(out, count++, "\nOutliers before, but not now:\n"))
            continue;
        begin_line(&line, now);
        strbuf_puts(&line, "was ");
        put_verdict(&line, before, then->uuid);
        report_end_line(out, NULL, &line, 2, 4);
    }
    end_list(out, count);
}

static size_t put_missing(struct strbuf *out, const struct side *before, const struct side *after)
{
    size_t count = 0;
    for (size_t i = 0; i < before->inventory->gpu_count; i++) {
        const struct inventory_gpu *then = &before->inventory->gpus[i];
        const struct inventory_gpu *now = inventory_find_gpu(after->lookup, then->uuid);
        struct strbuf line = {0};
        if (!was_measured(then) || (now && was_measured(now)) ||
            !begin_entry(out, count++, "\nMeasured before, but not now:\n"))
            continue;
        const char *reason = now ? reason_of(after->inventory, then->uuid) : NULL;
        begin_line(&line, then);
        strbuf_puts(&line, now ? gpu_status_name(now->status) : "gone");
        strbuf_puts(&line, reason ? ", " : "");
        if (reason)
            text_put_clean(&line, reason, TEXT_CHARS);
        report_end_line(out, NULL, &line, 2, 4);
    }
    end_list(out, count);
    return count;
}

/* Inventories of two clusters can be compared, but every GPU is then new or gone. */
static void put_strangers(struct strbuf *out, const struct side *before, const struct side *after)
{
    for (size_t i = 0; i < before->inventory->gpu_count; i++)
        if (inventory_find_gpu(after->lookup, before->inventory->gpus[i].uuid))
            return;
    if (before->inventory->gpu_count && after->inventory->gpu_count)
        strbuf_puts(out, "\nNo GPU is in both inventories: they may be of different clusters.\n");
}

int diff_status_put(struct strbuf *out, const struct inventory *before,
                    const struct inventory *after, struct diff_counts *out_counts, struct err *err)
{
    struct side old = {0}, new = {0};
    int rc = 0;
    if (side_init(&old, before) || side_init(&new, after)) {
        rc = err_no_memory(err);
        goto out;
    }
    put_strangers(out, &old, &new);
    out_counts->worse = put_accused(out, &old, &new);
    put_no_longer_outliers(out, &old, &new);
    out_counts->missing = put_missing(out, &old, &new);
out:
    side_fini(&old);
    side_fini(&new);
    return rc;
}
