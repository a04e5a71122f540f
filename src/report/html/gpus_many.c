/* The GPUs of a fleet that is too large for tables: lines of text in blocks of nodes. The script
 * makes a table of a block when it is opened; without it the lines can be read. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "markup/html_text.h"
#include "report/html/sections.h"

/* Of more GPUs only those that are not fine, and their nodes, are listed: a page has at most some
 * 10 MB. */
enum { LISTED_MAX = 120000, NODES_PER_BLOCK = 100 };

static const char *const telling[] = {"main.bandwidth.read", "main.latency", "l2.bandwidth.read",
                                      "clock.sm"};

/* Nodes that stand in the list one after the other. */
struct block {
    size_t nodes, gpus, odd;
    const char *first, *last; /* names of nodes */
    struct strbuf lines;
};

static void put_value(struct strbuf *out, const struct inventory_gpu *gpu, const char *metric)
{
    for (size_t i = 0; i < gpu->value_count; i++) {
        if (strcmp(gpu->values[i].metric, metric) == 0 && isfinite(gpu->values[i].value)) {
            double value = gpu->values[i].value;
            strbuf_printf(out, fabs(value) < 1000 ? "\t%.4g" : "\t%.0f", value);
            return;
        }
    }
    strbuf_puts(out, "\t-");
}

/* One line: index, UUID without "GPU-", figures, and the status unless it is ok. */
static void put_gpu(struct strbuf *out, const struct inventory_gpu *gpu)
{
    const char *uuid = gpu->uuid && strncmp(gpu->uuid, "GPU-", 4) == 0 ? gpu->uuid + 4 : gpu->uuid;
    strbuf_printf(out, "\t%d\t", (int)gpu->index);
    html_text(out, uuid, HTML_NAME);
    for (size_t i = 0; i < COUNT_OF(telling); i++)
        put_value(out, gpu, telling[i]);
    if (gpu->status != GPU_OK)
        strbuf_printf(out, "\t%s", gpu_status_name(gpu->status));
    strbuf_puts(out, "\n");
}

/* A line with node and model before the GPUs that have both. */
static void put_node(struct strbuf *out, const struct html_data *data, size_t first, size_t last)
{
    for (size_t i = first; i < last; i++) {
        const struct inventory_gpu *gpu = data->gpus[i].gpu;
        if (i == first || !str_equal(gpu->model, data->gpus[i - 1].gpu->model)) {
            html_text(out, gpu->node, HTML_NAME);
            strbuf_puts(out, "\t");
            html_text(out, gpu->model, HTML_NAME);
            strbuf_puts(out, "\n");
        }
        put_gpu(out, gpu);
    }
}

static void put_block(struct strbuf *out, struct block *block)
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
    out->failed |= block->lines.failed;
    strbuf_fini(&block->lines);
    *block = (struct block){0};
}

static void add_node(struct block *block, const struct html_data *data, size_t first, size_t last)
{
    block->first = block->nodes++ ? block->first : data->gpus[first].gpu->node;
    block->last = data->gpus[first].gpu->node;
    block->gpus += last - first;
    for (size_t i = first; i < last; i++)
        block->odd += data->gpus[i].oddity != HTML_FINE;
    put_node(&block->lines, data, first, last);
}

static const char *unit_of(const struct html_data *data, const char *metric)
{
    for (size_t m = 0; m < data->inventory->model_count; m++) {
        const struct html_series *series = html_data_series(&data->models[m], metric);
        if (series && series->unit)
            return series->unit;
    }
    return "";
}

static void put_columns(struct strbuf *out, const struct html_data *data)
{
    strbuf_puts(out, "<p class=columns>Of each GPU:<i>GPU</i><i>uuid, after GPU-</i>");
    for (size_t i = 0; i < COUNT_OF(telling); i++) {
        strbuf_printf(out, "<i>%s ", telling[i]);
        html_text(out, unit_of(data, telling[i]), HTML_NAME);
        strbuf_puts(out, "</i>");
    }
    strbuf_puts(out, "<i>status, if not ok</i></p>\n");
}

void html_gpus_many(struct strbuf *out, const struct html_data *data)
{
    size_t count = data->inventory->gpu_count, left_out = 0;
    struct block block = {0};
    put_columns(out, data);
    strbuf_puts(out, "<div class=many>\n");
    for (size_t first = 0, last; first < count; first = last) {
        size_t odd = 0;
        for (last = first;
             last < count && str_equal(data->gpus[last].gpu->node, data->gpus[first].gpu->node);
             last++)
            odd += data->gpus[last].oddity != HTML_FINE;
        if (count > LISTED_MAX && !odd)
            left_out++;
        else
            add_node(&block, data, first, last);
        if (block.nodes == NODES_PER_BLOCK)
            put_block(out, &block);
    }
    put_block(out, &block);
    strbuf_puts(out, "</div>\n");
    if (left_out) {
        strbuf_puts(out, "<p>");
        html_count(out, left_out, "node", "nodes");
        strbuf_puts(out, " on which all is fine: in the inventory only.</p>\n");
    }
}
