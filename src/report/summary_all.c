/* All attributes of the models and all entries of an inventory, and the time that a survey spent
 * per probe. */
#include "report/summary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "catalogue/facts.h"
#include "catalogue/metrics.h"
#include "markup/text.h"
#include "report/entries.h"
#include "report/summary_parts.h"

enum { INDENT = 5 };

/* Shorter times are summed up. */
static const double SHOWN_S = 0.0005;

static int timing_by_time(const void *a, const void *b)
{
    double x = (*(const struct fact *const *)a)->real, y = (*(const struct fact *const *)b)->real;
    return (x < y) - (x > y);
}

void report_timing(const struct gpu_result *slowest, struct strbuf *out_text)
{
    if (!slowest->timings.count)
        return;
    const struct fact **laps = mem_array(slowest->timings.count, sizeof *laps);
    struct strbuf line = {0};
    size_t count = slowest->timings.count;
    double rest_s = 0;
    strbuf_printf(&line, "%.2f s on %s:", slowest->elapsed_s, slowest->uuid);
    for (size_t i = 0; i < count; i++)
        laps[i] = &slowest->timings.items[i];
    sort_stable(laps, count, sizeof *laps, timing_by_time);
    for (size_t i = 0; i < count; i++) {
        if (laps[i]->real >= SHOWN_S)
            strbuf_printf(&line, " %s %.3f,", laps[i]->key, laps[i]->real);
        else
            rest_s += laps[i]->real;
    }
    strbuf_printf(&line, " others %.3f", rest_s);
    strbuf_puts(out_text, "\nTime ");
    text_put_wrapped(out_text, line.data, INDENT, INDENT, REPORT_WIDTH);
    strbuf_fini(&line);
    free(laps);
}

/* KIND_MAX: names of models and kinds, which may be long (MIG, vGPU) and are wrapped. */
enum { NAME_MAX = 40, KIND_MAX = 160, MEMORY_COLUMNS = 14 };

/* The length of "l1_data" in "l1_data.size". */
static size_t memory_length(const char *metric)
{
    return strcspn(metric, ".");
}

static void summary_put_words(struct strbuf *out, const struct measure *measure)
{
    for (size_t i = 0; i < measure->word_count; i++) {
        strbuf_puts(out, i ? "+" : "");
        text_put_clean(out, measure->words[i], NAME_MAX);
    }
    if (!measure->word_count)
        strbuf_puts(out, "none");
}

static void summary_put_measure(struct strbuf *out, const struct measure *measure)
{
    const char *attribute = measure->metric + memory_length(measure->metric);
    if (*attribute) {
        text_put_clean(out, attribute + 1, NAME_MAX);
        strbuf_puts(out, " ");
    }
    if (measure->status == MEASURE_UNSUPPORTED || measure->status == MEASURE_FAILED)
        strbuf_puts(out, measure_status_name(measure->status));
    else if (measure->kind == MEASURE_WORDS)
        summary_put_words(out, measure);
    else {
        strbuf_puts(out, measure->bound == MEASURE_AT_LEAST ? "at least " : "");
        text_put_quantity(out, measure->value, measure->unit);
    }
    if (measure->status == MEASURE_NOISY)
        strbuf_puts(out, " (noisy)");
}

/* All attributes of one memory; measure `first` is its first one. */
static void summary_put_memory(struct strbuf *out, const struct report_style *style,
                               const struct measures *memory, size_t first)
{
    const char *metric = memory->items[first].metric;
    struct strbuf line = {0}, name = {0};
    for (size_t i = first; i < memory->count; i++) {
        if (!measure_same_memory(memory->items[i].metric, metric) ||
            metric_is_name(memory->items[i].metric, memory->items[i].unit))
            continue;
        strbuf_puts(&line, line.length ? ", " : "");
        summary_put_measure(&line, &memory->items[i]);
    }
    if (!line.length)
        return;
    strbuf_append(&name, metric, memory_length(metric));
    strbuf_puts(out, "  ");
    text_put_column(out, name.data, MEMORY_COLUMNS);
    strbuf_puts(out, " ");
    strbuf_fini(&name);
    report_end_line(out, style, &line, MEMORY_COLUMNS + 3, MEMORY_COLUMNS + 3);
}

/* "692-2G520-0282-000: 6 GPUs, main.latency 661.2; 692-...". */
static void summary_put_populations(struct strbuf *out, const struct report_style *style,
                                    const struct inventory_model *model)
{
    struct strbuf line = {0};
    if (!model->population_count)
        return;
    for (size_t i = 0; i < model->population_count; i++) {
        const struct inventory_population *population = &model->populations[i];
        strbuf_puts(&line, i ? "; " : "");
        text_put_clean(&line, population->value ? population->value : "unknown", KIND_MAX);
        strbuf_puts(&line, ": ");
        report_put_count(&line, population->count, "GPU", "GPUs");
        for (size_t k = 0; k < population->figures.count; k++) {
            const struct fact *figure = &population->figures.items[k];
            const struct measure *measure = measures_get(&model->memory, figure->key);
            strbuf_puts(&line, ", ");
            text_put_clean(&line, figure->key, NAME_MAX);
            strbuf_puts(&line, " ");
            text_put_quantity(&line,
                              figure->kind == FACT_INT ? (double)figure->integer : figure->real,
                              measure ? measure->unit : "");
        }
    }
    strbuf_puts(out, "  ");
    bool by_board = str_equal(model->populations[0].by, "board.part");
    text_put_column(out, by_board ? "board parts" : "populations", MEMORY_COLUMNS);
    strbuf_puts(out, " ");
    report_end_line(out, style, &line, MEMORY_COLUMNS + 3, MEMORY_COLUMNS + 3);
}

static void summary_put_model(struct strbuf *out, const struct report_style *style,
                              const struct inventory_model *model)
{
    const struct measures *memory = &model->memory;
    strbuf_puts(out, "\n");
    report_begin_paint(out, style, REPORT_BOLD);
    unsigned used = text_put_clean(out, model->name ? model->name : model->id,
                                   (style ? style->width : REPORT_WIDTH) - 1);
    report_end_paint(out, style);
    struct strbuf kinds = {0}, line = {0};
    catalogue_put_kinds(&model->config, &kinds);
    text_put_clean(&line, kinds.data ? kinds.data : "", KIND_MAX);
    strbuf_fini(&kinds);
    strbuf_puts(&line, " (");
    text_put_clean(&line, model->id, KIND_MAX);
    strbuf_printf(&line, "), %u measured", model->count);
    report_end_line(out, style, &line, used, 4);
    for (size_t i = 0; i < memory->count; i++) {
        bool seen = false;
        for (size_t k = 0; k < i && !seen; k++)
            seen = measure_same_memory(memory->items[k].metric, memory->items[i].metric);
        if (!seen)
            summary_put_memory(out, style, memory, i);
    }
    summary_put_populations(out, style, model);
}

/* Prints "Title:" before the first entry of a list. */
static void put_title(struct strbuf *out, const struct report_style *style, const char *title,
                      size_t i)
{
    if (i)
        return;
    strbuf_puts(out, "\n");
    report_put_painted(out, style, REPORT_BOLD, title);
    strbuf_puts(out, ":\n");
}

void report_summary_all(const struct inventory *inventory, const struct report_style *style,
                        struct strbuf *out_text)
{
    const struct inventory *v = inventory;
    summary_put_head(out_text, style, v);
    for (size_t i = 0; i < v->model_count; i++)
        summary_put_model(out_text, style, &v->models[i]);
    for (size_t i = 0; i < v->outlier_count; i++) {
        put_title(out_text, style, "Outliers", i);
        report_put_outlier(out_text, style, &v->outliers[i]);
    }
    for (size_t i = 0; i < v->node_finding_count; i++) {
        put_title(out_text, style, "Places", i);
        report_put_node(out_text, style, &v->node_findings[i]);
    }
    for (size_t i = 0; i < v->unmeasured_count; i++) {
        put_title(out_text, style, "Unmeasured", i);
        report_put_unmeasured(out_text, style, &v->unmeasured[i]);
    }
    for (size_t i = 0; i < v->watch_count; i++) {
        put_title(out_text, style, "To watch: nothing is to be done", i);
        report_put_outlier(out_text, style, &v->watch[i]);
    }
}
