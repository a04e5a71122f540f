/* The short summary of an inventory. */
#include "report/summary.h"

#include <math.h>
#include <string.h>

#include "report/entries.h"
#include "report/text.h"

/* What a screen can take; the inventory has the rest. */
enum { ENTRIES_MAX = 30, NAME_MAX = 40, MEMORY_COLUMNS = 14 };

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
    report_put_count(out, inventory->gpu_count_total, "GPU", "GPUs");
    strbuf_puts(out, " on ");
    report_put_count(out, inventory->nodes, "node", "nodes");
    size_t busy = count_busy(inventory);
    strbuf_printf(out, ": %u measured", inventory->measured);
    if (busy)
        strbuf_printf(out, " (%zu busy: not judged)", busy);
    strbuf_printf(out, ", %u unmeasured, ", inventory->unmeasured_count);
    report_put_count(out, inventory->outlier_count, "outlier", "outliers");
    if (inventory->lost_ranks) {
        strbuf_puts(out, ", ");
        report_put_count(out, inventory->lost_ranks, "rank lost", "ranks lost");
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
    report_end_line(out, &line, MEMORY_COLUMNS + 3, MEMORY_COLUMNS + 3);
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
        report_put_outlier(out_text, &v->outliers[i], false);
    }
    for (size_t i = 0; i < v->node_count; i++) {
        if (list_ends(out_text, "Places", i, v->node_count))
            break;
        report_put_node(out_text, &v->node_findings[i]);
    }
    for (size_t i = 0; i < v->unmeasured_length; i++) {
        if (list_ends(out_text, "Unmeasured", i, v->unmeasured_length))
            break;
        report_put_unmeasured(out_text, &v->unmeasured[i]);
    }
    if (v->watch_count) {
        strbuf_puts(out_text, "\nWatch: ");
        report_put_count(out_text, v->watch_count, "GPU deviates", "GPUs deviate");
        strbuf_puts(out_text, " too little to be accused\n");
    }
}
