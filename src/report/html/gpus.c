/* The table of all GPUs. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "markup/html_text.h"
#include "report/html/sections.h"

/* Up to this many GPUs are in one table with all values. More are grouped by node and folded, with
 * the most important values only, so that a page with 10,000 GPUs stays usable. Still more are
 * lines of text (gpus_many.c). */
enum { ONE_TABLE_MAX = 1000, TABLES_MAX = 20000 };

static const char *const telling[] = {"main.bandwidth.read", "main.latency", "l2.bandwidth.read",
                                      "l1_data.latency",     "clock.sm",     "host.bandwidth.h2d"};

struct column {
    const char *metric, *unit;
    bool telling; /* the others are not printed on paper */
};

struct columns {
    struct column *items;
    size_t count, capacity;
};

static bool is_telling(const char *metric)
{
    for (size_t i = 0; i < COUNT_OF(telling); i++)
        if (strcmp(telling[i], metric) == 0)
            return true;
    return false;
}

/* 0 or -ENOMEM. */
static int choose(const struct html_data *data, struct columns *columns)
{
    bool few = data->inventory->gpu_count <= ONE_TABLE_MAX;
    for (size_t m = 0; m < data->inventory->model_count; m++)
        for (size_t s = 0; s < data->models[m].series_count; s++) {
            const struct html_series *series = &data->models[m].series[s];
            size_t i = 0;
            while (i < columns->count && strcmp(columns->items[i].metric, series->metric) != 0)
                i++;
            if (i < columns->count || !(few || is_telling(series->metric)))
                continue;
            struct column *grown =
                mem_grow(columns->items, &columns->capacity, i + 1, sizeof *grown);
            if (!grown)
                return -ENOMEM;
            columns->items = grown;
            grown[columns->count++] = (struct column){.metric = series->metric,
                                                      .unit = series->unit,
                                                      .telling = is_telling(series->metric)};
        }
    return 0;
}

static double value_of(const struct inventory_gpu *gpu, const char *metric)
{
    for (size_t i = 0; i < gpu->value_count; i++)
        if (strcmp(gpu->values[i].metric, metric) == 0)
            return gpu->values[i].value;
    return NAN;
}

/* The name of a metric, which may be broken after its dots. */
static void put_metric(struct strbuf *out, const char *metric)
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

static void put_head(struct strbuf *out, const struct columns *columns, bool node)
{
    strbuf_printf(out,
                  "<div class=wide><table class=\"sort filter values\"><thead><tr>%s<th class=n>GPU"
                  "<th>slot<th>uuid<th>model<th>status<th class=n>score",
                  node ? "<th>node" : "");
    for (size_t i = 0; i < columns->count; i++) {
        strbuf_puts(out, columns->items[i].telling ? "<th class=n>" : "<th class=\"n more\">");
        put_metric(out, columns->items[i].metric);
        if (columns->items[i].unit && *columns->items[i].unit) {
            strbuf_puts(out, "<br>");
            html_text(out, columns->items[i].unit, HTML_NAME);
        }
    }
    strbuf_puts(out, "</thead><tbody>\n");
}

static void put_row(struct strbuf *out, const struct html_gpu *g, const struct columns *columns,
                    bool node)
{
    const struct inventory_gpu *gpu = g->gpu;
    strbuf_puts(out, "<tr>");
    if (node) {
        strbuf_puts(out, "<td>");
        html_text(out, gpu->node, HTML_NAME);
    }
    html_number_cell(out, gpu->index);
    strbuf_puts(out, "<td>");
    html_text(out, gpu->pci, HTML_NAME);
    strbuf_puts(out, "<td class=mono>");
    html_text(out, gpu->uuid, HTML_NAME);
    strbuf_puts(out, "<td>");
    html_text(out, gpu->model, HTML_NAME);
    strbuf_printf(out,
                  gpu->status == GPU_OK ? "<td>%s<td class=n>" : "<td class=bad>%s<td class=n>",
                  gpu_status_name(gpu->status));
    if (isfinite(g->score))
        strbuf_printf(out, "%.3g", g->score);
    for (size_t i = 0; i < columns->count; i++) {
        strbuf_puts(out, columns->items[i].telling ? "<td class=n>" : "<td class=\"n more\">");
        html_figure(out, value_of(gpu, columns->items[i].metric));
    }
    strbuf_puts(out, "\n");
}

static void put_nodes(struct strbuf *out, const struct html_data *data,
                      const struct columns *columns)
{
    size_t count = data->inventory->gpu_count;
    for (size_t first = 0, last; first < count; first = last) {
        size_t odd = 0;
        for (last = first;
             last < count && str_equal(data->gpus[last].gpu->node, data->gpus[first].gpu->node);
             last++)
            odd += data->gpus[last].oddity != HTML_FINE;
        strbuf_puts(out, "<details class=node><summary>");
        html_text(out, data->gpus[first].gpu->node, HTML_NAME);
        strbuf_puts(out, ": ");
        html_count(out, last - first, "GPU", "GPUs");
        if (odd)
            strbuf_printf(out, ", <span class=bad>%zu not fine</span>", odd);
        strbuf_puts(out, "</summary>");
        put_head(out, columns, false);
        for (size_t i = first; i < last; i++)
            put_row(out, &data->gpus[i], columns, false);
        strbuf_puts(out, "</tbody></table></div></details>\n");
    }
}

void html_gpus(struct strbuf *out, const struct html_data *data)
{
    struct columns columns = {0};
    size_t count = data->inventory->gpu_count;
    if (!count)
        return;
    if (choose(data, &columns))
        out->failed = true;
    strbuf_puts(out, "<section id=gpus><h2>GPUs</h2>\n<p class=tools><input type=search "
                     "placeholder=\"filter: node, uuid, status ...\" aria-label=\"filter GPUs\">"
                     "<span class=found aria-live=polite></span></p>\n");
    if (count > TABLES_MAX) {
        html_gpus_many(out, data);
    } else if (count > ONE_TABLE_MAX) {
        strbuf_puts(out, "<div class=nodes>\n");
        put_nodes(out, data, &columns);
        strbuf_puts(out, "</div>\n");
    } else {
        put_head(out, &columns, true);
        for (size_t i = 0; i < count; i++)
            put_row(out, &data->gpus[i], &columns, true);
        strbuf_puts(out, "</tbody></table></div>\n");
    }
    strbuf_puts(out, "<p class=paper>The inventory has all values.</p></section>\n");
    free(columns.items);
}
