/* All GPUs: as one table, as tables by node, or as lines of text, by their number. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "markup/html.h"
#include "markup/table.h"
#include "report/html/sections.h"

/* Up to this many GPUs are in one table with all values. More are grouped by node and folded, with
 * the most important values only, so that a page with 10,000 GPUs stays usable. Still more are
 * lines of text. */
enum { ONE_TABLE_MAX = 1000, TABLES_MAX = 20000 };

static const char *const table_metrics[] = {
    "main.bandwidth.read", "main.latency", "l2.bandwidth.read",
    "l1_data.latency",     "clock.sm",     "host.bandwidth.h2d"};

struct column {
    const char *metric, *unit;
    bool printed; /* on paper, too */
};

struct columns {
    struct column *items;
    size_t count, capacity;
};

static bool is_table_metric(const char *metric)
{
    for (size_t i = 0; i < COUNT_OF(table_metrics); i++)
        if (strcmp(table_metrics[i], metric) == 0)
            return true;
    return false;
}

static void columns_choose(const struct html_data *data, struct columns *columns)
{
    bool few = data->inventory->gpu_count <= ONE_TABLE_MAX;
    for (size_t m = 0; m < data->inventory->model_count; m++)
        for (size_t s = 0; s < data->models[m].series_count; s++) {
            const struct html_series *series = &data->models[m].series[s];
            size_t i = 0;
            while (i < columns->count && strcmp(columns->items[i].metric, series->metric) != 0)
                i++;
            if (i < columns->count || !(few || is_table_metric(series->metric)))
                continue;
            columns->items =
                mem_grow(columns->items, &columns->capacity, i + 1, sizeof *columns->items);
            columns->items[columns->count++] =
                (struct column){.metric = series->metric,
                                .unit = series->unit,
                                .printed = is_table_metric(series->metric)};
        }
}

/* The name of a metric, which may be broken after its dots. */
static void column_put_metric(struct strbuf *out, const char *metric)
{
    char part[HTML_NAME];
    while (*metric) {
        size_t length = strcspn(metric, ".") + 1, rest = strlen(metric);
        length = length < rest ? length : rest;
        snprintf(part, sizeof part, "%.*s", (int)length, metric);
        html_text(out, part, HTML_NAME);
        metric += length;
        strbuf_puts(out, *metric ? "<wbr>" : "");
    }
}

static void columns_put_heads(struct strbuf *out, const struct columns *columns, bool node)
{
    table_open(out, "sort filter values");
    table_heads(out, node ? "node|#GPU|slot|uuid|model|status|#score"
                          : "#GPU|slot|uuid|model|status|#score");
    for (size_t i = 0; i < columns->count; i++) {
        strbuf_puts(out, columns->items[i].printed ? "<th class=n>" : "<th class=\"n more\">");
        column_put_metric(out, columns->items[i].metric);
        if (columns->items[i].unit && *columns->items[i].unit) {
            strbuf_puts(out, "<br>");
            html_text(out, columns->items[i].unit, HTML_NAME);
        }
    }
    table_heads_end(out);
}

static void gpu_put_row(struct strbuf *out, const struct html_gpu *g, const struct columns *columns,
                        bool node)
{
    const struct inventory_gpu *gpu = g->gpu;
    table_row(out);
    if (node)
        table_name(out, gpu->node);
    table_index(out, gpu->index);
    table_name(out, gpu->pci);
    table_mono(out, gpu->uuid);
    table_name(out, gpu->model);
    strbuf_printf(out,
                  gpu->status == GPU_OK ? "<td>%s<td class=n>" : "<td class=bad>%s<td class=n>",
                  gpu_status_name(gpu->status));
    if (isfinite(g->score))
        strbuf_printf(out, "%.3g", g->score);
    for (size_t i = 0; i < columns->count; i++) {
        strbuf_puts(out, columns->items[i].printed ? "<td class=n>" : "<td class=\"n more\">");
        html_figure(out, html_data_value(gpu, columns->items[i].metric));
    }
    strbuf_puts(out, "\n");
}

static void gpus_put_nodes(struct strbuf *out, const struct html_data *data,
                           const struct columns *columns)
{
    for (size_t first = 0, last; first < data->inventory->gpu_count; first = last) {
        size_t odd = 0;
        last = html_data_node_end(data, first);
        for (size_t i = first; i < last; i++)
            odd += data->gpus[i].oddity != HTML_FINE;
        strbuf_puts(out, "<details class=node><summary>");
        html_text(out, data->gpus[first].gpu->node, HTML_NAME);
        strbuf_puts(out, ": ");
        html_count(out, last - first, "GPU", "GPUs");
        if (odd)
            strbuf_printf(out, ", <span class=bad>%zu not fine</span>", odd);
        strbuf_puts(out, "</summary>");
        columns_put_heads(out, columns, false);
        for (size_t i = first; i < last; i++)
            gpu_put_row(out, &data->gpus[i], columns, false);
        table_end(out);
        strbuf_puts(out, "</details>\n");
    }
}

/* More GPUs than tables can show are lines of text in blocks of nodes. The script makes a table of
 * a block when it is opened; without it the lines can be read. Of more than LISTED_MAX GPUs only
 * those that are not fine, and their nodes, are listed: a page has at most some 10 MB. */
enum { LISTED_MAX = 120000, NODES_PER_BLOCK = 100 };

static const char *const line_metrics[] = {"main.bandwidth.read", "main.latency",
                                           "l2.bandwidth.read", "clock.sm"};

/* Nodes that stand in the list one after the other. */
struct line_block {
    size_t nodes, gpus, odd;
    const char *first, *last; /* names of nodes */
    struct strbuf lines;
};

/* One line: index, UUID without "GPU-", figures, and the status unless it is ok. */
static void line_put_gpu(struct strbuf *out, const struct inventory_gpu *gpu)
{
    const char *uuid = gpu->uuid && strncmp(gpu->uuid, "GPU-", 4) == 0 ? gpu->uuid + 4 : gpu->uuid;
    strbuf_printf(out, "\t%d\t", (int)gpu->index);
    html_text(out, uuid, HTML_NAME);
    for (size_t i = 0; i < COUNT_OF(line_metrics); i++) {
        const double value = html_data_value(gpu, line_metrics[i]);
        if (isfinite(value))
            strbuf_printf(out, fabs(value) < 1000 ? "\t%.4g" : "\t%.0f", value);
        else
            strbuf_puts(out, "\t-");
    }
    if (gpu->status != GPU_OK)
        strbuf_printf(out, "\t%s", gpu_status_name(gpu->status));
    strbuf_puts(out, "\n");
}

static void block_put(struct strbuf *out, struct line_block *block)
{
    if (block->nodes) {
        strbuf_puts(out, "<details class=block><summary>");
        html_text(out, block->first, HTML_NAME);
        if (block->nodes > 1) {
            strbuf_puts(out, " to ");
            html_text(out, block->last, HTML_NAME);
        }
        strbuf_puts(out, ": ");
        html_count(out, block->nodes, "node", "nodes");
        strbuf_puts(out, ", ");
        html_count(out, block->gpus, "GPU", "GPUs");
        if (block->odd)
            strbuf_printf(out, ", <span class=bad>%zu not fine</span>", block->odd);
        strbuf_puts(out, "</summary><pre>\n");
        strbuf_append(out, block->lines.data, block->lines.length);
        strbuf_puts(out, "</pre></details>\n");
    }
    strbuf_fini(&block->lines);
    *block = (struct line_block){0};
}

static void block_add_node(struct line_block *block, const struct html_data *data, size_t first,
                           size_t last)
{
    block->first = block->nodes++ ? block->first : data->gpus[first].gpu->node;
    block->last = data->gpus[first].gpu->node;
    block->gpus += last - first;
    for (size_t i = first; i < last; i++)
        block->odd += data->gpus[i].oddity != HTML_FINE;
    /* A line with node and model before the GPUs that have both. */
    for (size_t i = first; i < last; i++) {
        const struct inventory_gpu *gpu = data->gpus[i].gpu;
        if (i == first || !str_equal(gpu->model, data->gpus[i - 1].gpu->model)) {
            html_text(&block->lines, gpu->node, HTML_NAME);
            strbuf_puts(&block->lines, "\t");
            html_text(&block->lines, gpu->model, HTML_NAME);
            strbuf_puts(&block->lines, "\n");
        }
        line_put_gpu(&block->lines, gpu);
    }
}

static const char *metric_unit(const struct html_data *data, const char *metric)
{
    for (size_t m = 0; m < data->inventory->model_count; m++) {
        const struct html_series *series = html_data_series(&data->models[m], metric);
        if (series && series->unit)
            return series->unit;
    }
    return "";
}

static void lines_put_columns(struct strbuf *out, const struct html_data *data)
{
    strbuf_puts(out, "<p class=columns>Of each GPU:<i>GPU</i><i>uuid, after GPU-</i>");
    for (size_t i = 0; i < COUNT_OF(line_metrics); i++) {
        strbuf_printf(out, "<i>%s ", line_metrics[i]);
        html_text(out, metric_unit(data, line_metrics[i]), HTML_NAME);
        strbuf_puts(out, "</i>");
    }
    strbuf_puts(out, "<i>status, if not ok</i></p>\n");
}

static void gpus_put_lines(struct strbuf *out, const struct html_data *data)
{
    size_t count = data->inventory->gpu_count, left_out = 0;
    struct line_block block = {0};
    lines_put_columns(out, data);
    strbuf_puts(out, "<div class=many>\n");
    for (size_t first = 0, last; first < count; first = last) {
        size_t odd = 0;
        last = html_data_node_end(data, first);
        for (size_t i = first; i < last; i++)
            odd += data->gpus[i].oddity != HTML_FINE;
        if (count > LISTED_MAX && !odd)
            left_out++;
        else
            block_add_node(&block, data, first, last);
        if (block.nodes == NODES_PER_BLOCK)
            block_put(out, &block);
    }
    block_put(out, &block);
    strbuf_puts(out, "</div>\n");
    if (left_out) {
        strbuf_puts(out, "<p>");
        html_count(out, left_out, "node", "nodes");
        strbuf_puts(out, " on which all is fine: in the inventory only.</p>\n");
    }
}

void html_gpus(struct strbuf *out, const struct html_data *data)
{
    struct columns columns = {0};
    size_t count = data->inventory->gpu_count;
    if (!count)
        return;
    columns_choose(data, &columns);
    strbuf_puts(out, "<section id=gpus><h2>GPUs</h2>\n<p class=tools><input type=search "
                     "placeholder=\"filter: node, uuid, status ...\" aria-label=\"filter GPUs\">"
                     "<span class=found aria-live=polite></span></p>\n");
    if (count > TABLES_MAX) {
        gpus_put_lines(out, data);
    } else if (count > ONE_TABLE_MAX) {
        strbuf_puts(out, "<div class=nodes>\n");
        gpus_put_nodes(out, data, &columns);
        strbuf_puts(out, "</div>\n");
    } else {
        columns_put_heads(out, &columns, true);
        for (size_t i = 0; i < count; i++)
            gpu_put_row(out, &data->gpus[i], &columns, true);
        table_end(out);
    }
    strbuf_puts(out, "<p class=paper>The inventory has all values.</p></section>\n");
    free(columns.items);
}
