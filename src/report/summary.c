/* The short summary of an inventory. */
#include "report/summary.h"

#include <math.h>
#include <string.h>

#include "report/text.h"

/* What a screen can take; the inventory has the rest. */
enum { ENTRIES_MAX = 30, FINDINGS_MAX = 4, TEXT_MAX = 300, NAME_MAX = 40, MEMORY_COLUMNS = 14 };

static void put_count(struct strbuf *out, size_t count, const char *one, const char *many)
{
    strbuf_printf(out, "%zu %s", count, count == 1 ? one : many);
}

/* Measured although another process computed there. */
static size_t count_busy(const struct inventory *inventory)
{
    size_t busy = 0;
    for (size_t i = 0; i < inventory->gpu_count; i++)
        busy += inventory->gpus[i].status == GPU_BUSY && inventory->gpus[i].value_count;
    return busy;
}

static void put_headline(struct strbuf *out, const struct inventory *inventory)
{
    put_count(out, inventory->gpu_count_total, "GPU", "GPUs");
    strbuf_puts(out, " on ");
    put_count(out, inventory->nodes, "node", "nodes");
    size_t busy = count_busy(inventory);
    strbuf_printf(out, ": %u measured", inventory->measured);
    if (busy)
        strbuf_printf(out, " (%zu busy: not judged)", busy);
    strbuf_printf(out, ", %u unmeasured, ", inventory->unmeasured_count);
    put_count(out, inventory->outlier_count, "outlier", "outliers");
    if (inventory->lost_ranks) {
        strbuf_puts(out, ", ");
        put_count(out, inventory->lost_ranks, "rank lost", "ranks lost");
    }
    if (isfinite(inventory->wall_s))
        strbuf_printf(out, "; %.1f s", inventory->wall_s);
    strbuf_puts(out, "\n");
}

/* "l1_data" of "l1_data.size". */
static size_t memory_length(const char *metric)
{
    return strcspn(metric, ".");
}

static bool same_memory(const char *a, const char *b)
{
    size_t length = memory_length(a);
    return length == memory_length(b) && strncmp(a, b, length) == 0;
}

static void put_words(struct strbuf *out, const struct measure *measure)
{
    for (size_t i = 0; i < measure->word_count; i++) {
        strbuf_puts(out, i ? "+" : "");
        report_put_clean(out, measure->words[i], NAME_MAX);
    }
    if (!measure->word_count)
        strbuf_puts(out, "none");
}

static void put_measure(struct strbuf *out, const struct measure *measure)
{
    const char *attribute = measure->metric + memory_length(measure->metric);
    if (*attribute) {
        report_put_clean(out, attribute + 1, NAME_MAX);
        strbuf_puts(out, " ");
    }
    if (measure->status == MEASURE_UNSUPPORTED || measure->status == MEASURE_FAILED)
        strbuf_puts(out, measure_status_name(measure->status));
    else if (measure->kind == MEASURE_WORDS)
        put_words(out, measure);
    else {
        strbuf_puts(out, measure->bound == MEASURE_AT_LEAST ? "at least " : "");
        report_put_quantity(out, measure->value, measure->unit);
    }
    if (measure->status == MEASURE_NOISY)
        strbuf_puts(out, " (noisy)");
}

/* Takes over the text of `line`: wrapped, then released. */
static void end_line(struct strbuf *out, struct strbuf *line, unsigned first, unsigned indent)
{
    report_put_wrapped(out, line->data ? line->data : "", first, indent);
    out->failed |= line->failed;
    strbuf_fini(line);
}

/* All attributes of the memory that measure `first` is the first one of. */
static void put_memory(struct strbuf *out, const struct measures *memory, size_t first)
{
    const char *metric = memory->items[first].metric;
    struct strbuf line = {0}, name = {0};
    for (size_t i = first; i < memory->count; i++) {
        if (!same_memory(memory->items[i].metric, metric))
            continue;
        strbuf_puts(&line, i > first ? ", " : "");
        put_measure(&line, &memory->items[i]);
    }
    strbuf_append(&name, metric, memory_length(metric));
    strbuf_puts(out, "  ");
    report_put_column(out, name.data, MEMORY_COLUMNS);
    strbuf_puts(out, " ");
    out->failed |= name.failed;
    strbuf_fini(&name);
    end_line(out, &line, MEMORY_COLUMNS + 3, MEMORY_COLUMNS + 3);
}

static void put_model(struct strbuf *out, const struct inventory_model *model)
{
    const struct measures *memory = &model->memory;
    strbuf_puts(out, "\n");
    report_put_clean(out, model->name ? model->name : model->id, NAME_MAX);
    strbuf_puts(out, " (");
    report_put_clean(out, model->id, NAME_MAX);
    strbuf_printf(out, "), %u measured\n", model->count);
    for (size_t i = 0; i < memory->count; i++) {
        bool seen = false;
        for (size_t k = 0; k < i && !seen; k++)
            seen = same_memory(memory->items[k].metric, memory->items[i].metric);
        if (!seen)
            put_memory(out, memory, i);
    }
}

static void put_finding(struct strbuf *out, const struct inventory_finding *finding)
{
    struct strbuf line = {0};
    report_put_clean(&line, finding->metric, NAME_MAX);
    strbuf_puts(&line, " ");
    report_put_quantity(&line, finding->value, finding->unit);
    if (isfinite(finding->expected)) {
        strbuf_puts(&line, ", expected ");
        report_put_quantity(&line, finding->expected, finding->unit);
    }
    if (isfinite(finding->deviation))
        strbuf_printf(&line, " (%+.1f %%)", 100 * finding->deviation);
    strbuf_puts(&line, ": ");
    report_put_clean(&line, finding->cause ? finding->cause : "no cause known", TEXT_MAX);
    strbuf_puts(out, "      ");
    end_line(out, &line, 6, 8);
}

static void put_outlier(struct strbuf *out, const struct inventory_outlier *outlier)
{
    struct strbuf line = {0};
    report_put_clean(&line, outlier->node, NAME_MAX);
    strbuf_puts(&line, " ");
    report_put_clean(&line, outlier->pci, 20);
    strbuf_puts(&line, " ");
    report_put_clean(&line, outlier->uuid, 50);
    strbuf_printf(&line, ": %s", inventory_kind_name(outlier->kind));
    strbuf_puts(out, "  ");
    end_line(out, &line, 2, 4);
    for (size_t i = 0; i < outlier->finding_count && i < FINDINGS_MAX; i++)
        put_finding(out, &outlier->findings[i]);
    if (outlier->finding_count > FINDINGS_MAX)
        strbuf_printf(out, "      and %zu more findings\n", outlier->finding_count - FINDINGS_MAX);
}

static void put_node(struct strbuf *out, const struct inventory_node *node)
{
    struct strbuf line = {0};
    report_put_clean(&line, node->node, NAME_MAX);
    strbuf_puts(&line, ": ");
    report_put_clean(&line, node->finding, TEXT_MAX);
    if (node->gpu_count) {
        strbuf_puts(&line, " (");
        put_count(&line, node->gpu_count, "GPU", "GPUs");
        strbuf_puts(&line, ")");
    }
    strbuf_puts(out, "  ");
    end_line(out, &line, 2, 4);
}

static void put_unmeasured(struct strbuf *out, const struct inventory_unmeasured *unmeasured)
{
    struct strbuf line = {0};
    report_put_clean(&line, unmeasured->node, NAME_MAX);
    strbuf_puts(&line, " ");
    report_put_clean(&line, unmeasured->uuid ? unmeasured->uuid : "unknown GPU", 50);
    strbuf_printf(&line, ": %s", gpu_status_name(unmeasured->status));
    if (unmeasured->reason) {
        strbuf_puts(&line, ", ");
        report_put_clean(&line, unmeasured->reason, TEXT_MAX);
    }
    strbuf_puts(out, "  ");
    end_line(out, &line, 2, 4);
}

/* "Title:" before the first entry of a list; "and N more" and true instead of one too many. */
static bool list_ends(struct strbuf *out, const char *title, size_t i, size_t count)
{
    if (i == 0)
        strbuf_printf(out, "\n%s:\n", title);
    if (i < ENTRIES_MAX)
        return false;
    strbuf_printf(out, "  and %zu more\n", count - i);
    return true;
}

void report_summary(const struct inventory *inventory, struct strbuf *out_text)
{
    const struct inventory *v = inventory;
    put_headline(out_text, v);
    for (size_t i = 0; i < v->model_count; i++) {
        if (i == ENTRIES_MAX) {
            strbuf_printf(out_text, "\nand %zu more models\n", v->model_count - i);
            break;
        }
        put_model(out_text, &v->models[i]);
    }
    for (size_t i = 0; i < v->outliers_length; i++) {
        if (list_ends(out_text, "Outliers", i, v->outliers_length))
            break;
        put_outlier(out_text, &v->outliers[i]);
    }
    for (size_t i = 0; i < v->node_count; i++) {
        if (list_ends(out_text, "Nodes", i, v->node_count))
            break;
        put_node(out_text, &v->node_findings[i]);
    }
    for (size_t i = 0; i < v->unmeasured_length; i++) {
        if (list_ends(out_text, "Unmeasured", i, v->unmeasured_length))
            break;
        put_unmeasured(out_text, &v->unmeasured[i]);
    }
    if (v->watch_count) {
        strbuf_puts(out_text, "\nWatch: ");
        put_count(out_text, v->watch_count, "GPU deviates", "GPUs deviate");
        strbuf_puts(out_text, " too little to be accused\n");
    }
}
