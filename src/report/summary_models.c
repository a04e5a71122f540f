/* The table of models in the summary. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "markup/text.h"
#include "report/summary_parts.h"

enum { MODELS_MAX = 8, TITLE_COLUMNS = 16, GAP = 3 };

/* The figures of a memory that are there are its cell. */
static const struct {
    const char *title;
    bool in_ns; /* latency: what lies behind L2 does not follow the SM clock */
    const char *size, *latency, *bandwidth;
} rows[] = {
    {"L1 data", false, "l1_data.size", "l1_data.latency", "l1_data.bandwidth.read"},
    {"L2", false, "l2.size", "l2.latency", "l2.bandwidth.read"},
    {"main memory", true, "main.size", "main.latency", "main.bandwidth.read"},
    {"link to the host", true, NULL, "host.latency", "host.bandwidth.h2d"},
};
enum { ROWS = COUNT_OF(rows) };

static const struct measure *figure_of(const struct inventory_model *model, const char *metric)
{
    const struct measure *m = metric ? measures_get(&model->memory, metric) : NULL;
    return m && m->kind == MEASURE_NUMBER && measure_status_valued(m->status) ? m : NULL;
}

/* "132 x " of L1: how many the GPU has. */
static void put_times(struct strbuf *cell, const struct inventory_model *model, const char *metric)
{
    double times = (double)facts_int(&model->identity, "sms", 0);
    const struct measure *per_sm = figure_of(model, "l1_data.per_sm");
    if (per_sm)
        times *= per_sm->value;
    if (strcmp(metric, "l1_data.size") == 0 && times > 1)
        strbuf_printf(cell, "%.0f x ", times);
}

static void put_figure(struct strbuf *cell, const struct inventory_model *model, const char *metric,
                       bool in_ns)
{
    const struct measure *m = figure_of(model, metric);
    if (!m)
        return;
    double ns = in_ns ? fact_number(facts_get(&m->notes, "ns")) : NAN;
    strbuf_puts(cell, cell->length ? ", " : "");
    strbuf_puts(cell, m->bound == MEASURE_AT_LEAST ? ">= " : "");
    put_times(cell, model, metric);
    text_put_quantity(cell, isfinite(ns) ? ns : m->value, isfinite(ns) ? "ns" : m->unit);
    strbuf_puts(cell, m->status == MEASURE_NOISY ? " (noisy)" : "");
}

/* Row 0 of a column is the name of the model. */
struct column {
    struct strbuf cells[ROWS + 1];
    unsigned width;
};

/* Two models may have one name, such as those of two makers of boards. */
static const char *name_of(const struct inventory *v, const struct inventory_model *model)
{
    bool again = !model->name;
    for (size_t i = 0; i < v->model_count && !again; i++)
        again = &v->models[i] != model && str_equal(v->models[i].name, model->name);
    return again ? model->id : model->name;
}

static void column_fill(struct column *column, const struct inventory *v,
                        const struct inventory_model *model, unsigned most)
{
    text_put_clean(&column->cells[0], name_of(v, model), most);
    strbuf_printf(&column->cells[0], " (%u)", model->count);
    for (size_t row = 0; row < ROWS; row++) {
        struct strbuf *cell = &column->cells[row + 1];
        put_figure(cell, model, rows[row].size, false);
        put_figure(cell, model, rows[row].latency, rows[row].in_ns);
        put_figure(cell, model, rows[row].bandwidth, false);
        strbuf_puts(cell, cell->length ? "" : "-");
    }
    for (size_t row = 0; row <= ROWS; row++) {
        unsigned columns = text_columns(column->cells[row].data, most);
        column->width = columns > column->width ? columns : column->width;
    }
    column->width = column->width < most ? column->width : most;
}

/* A line of the table; the last cell may take several. */
static void put_row(struct strbuf *out, const struct report_style *style, unsigned width,
                    struct column *columns, size_t count, size_t row)
{
    unsigned used = TITLE_COLUMNS + 4;
    if (!row)
        report_begin_paint(out, style, REPORT_BOLD);
    strbuf_puts(out, row ? "  " : "");
    text_put_column(out, row ? rows[row - 1].title : "MODELS", TITLE_COLUMNS + (row ? 2 : 4));
    for (size_t i = 0; i + 1 < count; i++) {
        text_put_column(out, columns[i].cells[row].data, columns[i].width + GAP);
        used += columns[i].width + GAP;
    }
    text_put_wrapped(out, columns[count - 1].cells[row].data, used, used, width);
    if (!row)
        report_end_paint(out, style);
}

/* As many models beside each other as the width holds; returns how many. */
static size_t put_beside(struct strbuf *out, const struct report_style *style,
                         const struct inventory *v, const struct inventory_model *const *models,
                         size_t count)
{
    struct column columns[MODELS_MAX] = {0};
    unsigned width = style ? style->width : REPORT_WIDTH, used = TITLE_COLUMNS + 4;
    size_t shown = 0;
    for (; shown < count; shown++) {
        column_fill(&columns[shown], v, models[shown], width - TITLE_COLUMNS - 4);
        if (shown && used + GAP + columns[shown].width > width)
            break;
        used += columns[shown].width + (shown ? GAP : 0);
    }
    strbuf_puts(out, "\n");
    for (size_t row = 0; row <= ROWS; row++)
        put_row(out, style, width, columns, shown, row);
    for (size_t i = 0; i < MODELS_MAX; i++)
        for (size_t row = 0; row <= ROWS; row++)
            strbuf_fini(&columns[i].cells[row]);
    return shown;
}

void summary_put_models(struct strbuf *out, const struct report_style *style,
                        const struct inventory *inventory)
{
    const struct inventory_model *models[MODELS_MAX];
    size_t measured = 0, count = 0;
    for (size_t i = 0; i < inventory->model_count; i++)
        if (inventory->models[i].count && measured++ < MODELS_MAX)
            models[count++] = &inventory->models[i];
    for (size_t shown = 0; shown < count;)
        shown += put_beside(out, style, inventory, &models[shown], count - shown);
    if (measured > count)
        strbuf_printf(out, "  and %zu more models\n", measured - count);
}
