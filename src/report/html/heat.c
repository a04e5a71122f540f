/* Map of nodes and GPU indices that shows which GPUs are odd. */
#include <math.h>

#include "markup/html_text.h"
#include "report/html/sections.h"

/* The class and the sign of a cell by oddity; the sign is for readers who cannot see the
 * colours. */
static const struct {
    const char *class, *sign;
} cells[] = {{"", ""}, {"w", "~"}, {"a", "!"}, {"b", "!"}, {"c", "!"}, {"u", "?"}};

static void put_cell(struct strbuf *out, const struct html_data *data, const struct html_gpu *gpu)
{
    if (gpu->oddity == HTML_FINE) {
        strbuf_puts(out, "<i></i>");
        return;
    }
    strbuf_printf(out, "<i class=%s title=\"GPU %d: %s", cells[gpu->oddity].class,
                  (int)gpu->gpu->index, gpu_status_name(gpu->gpu->status));
    const struct inventory_outlier *odd = gpu->outlier ? gpu->outlier : gpu->watch;
    if (odd && odd->finding_count) {
        strbuf_puts(out, ", ");
        html_text(out, odd->findings[0].metric, HTML_NAME);
    }
    if (isfinite(gpu->score))
        strbuf_printf(out, ", score %.3g", gpu->score);
    strbuf_puts(out, "\">");
    if (gpu->has_card)
        strbuf_printf(out, "<a href=#o%td>!</a></i>", gpu->outlier - data->inventory->outliers);
    else if (gpu->place_has_card)
        strbuf_printf(out, "<a href=#p%td>!</a></i>", gpu->place - data->inventory->node_findings);
    else
        strbuf_printf(out, "%s</i>", cells[gpu->oddity].sign);
}

/* The GPUs from first to the returned index - 1 are on one node. */
static size_t node_end(const struct html_data *data, size_t first)
{
    size_t last = first;
    while (last < data->inventory->gpu_count &&
           str_equal(data->gpus[last].gpu->node, data->gpus[first].gpu->node))
        last++;
    return last;
}

static bool all_fine(const struct html_data *data, size_t first, size_t last)
{
    while (first < last && data->gpus[first].oddity == HTML_FINE)
        first++;
    return first == last;
}

static void put_node(struct strbuf *out, const struct html_data *data, size_t first, size_t last)
{
    enum { GAP_MAX = 16 };
    int32_t next = 0;
    strbuf_puts(out, "<div><b title=\"");
    html_text(out, data->gpus[first].gpu->node, HTML_NAME);
    strbuf_puts(out, "\">");
    html_text(out, data->gpus[first].gpu->node, HTML_NAME);
    strbuf_puts(out, "</b>");
    for (size_t i = first; i < last; i++) {
        const struct html_gpu *gpu = &data->gpus[i];
        /* The column is the index of the GPU; a gap is a GPU that no rank saw. */
        if (gpu->gpu->index - next <= GAP_MAX)
            for (; next < gpu->gpu->index; next++)
                strbuf_puts(out, "<i class=x></i>");
        put_cell(out, data, gpu);
        next++;
    }
    strbuf_puts(out, "</div>\n");
}

/* Puts the nodes on which all GPUs are fine, or the others; returns their number. */
static size_t put_nodes(struct strbuf *out, const struct html_data *data, bool fine)
{
    size_t count = 0;
    for (size_t first = 0, last; first < data->inventory->gpu_count; first = last) {
        last = node_end(data, first);
        if (all_fine(data, first, last) != fine)
            continue;
        put_node(out, data, first, last);
        count++;
    }
    return count;
}

/* For a large fleet: nodes with odd GPUs first, the others folded, or only counted. */
static void put_folded(struct strbuf *out, const struct html_data *data)
{
    struct strbuf rows = {0};
    strbuf_puts(out, "<div class=heat>\n");
    put_nodes(out, data, false);
    strbuf_puts(out, "</div>\n");
    enum { FOLDED_MAX = 4000 };
    size_t count = put_nodes(&rows, data, true);
    if (count > FOLDED_MAX) {
        strbuf_puts(out, "<p>");
        html_count(out, count, "node", "nodes");
        strbuf_puts(out, " on which all is fine</p>\n");
    } else if (count) {
        strbuf_puts(out, "<details><summary>");
        html_count(out, count, "node", "nodes");
        strbuf_puts(out, " on which all is fine</summary><div class=heat>\n");
        strbuf_append(out, rows.data, rows.length);
        strbuf_puts(out, "</div></details>\n");
    }
    out->failed |= rows.failed;
    strbuf_fini(&rows);
}

void html_heat(struct strbuf *out, const struct html_data *data)
{
    enum { OPEN_MAX = 256 };
    size_t count = data->inventory->gpu_count;
    if (!count)
        return;
    strbuf_puts(out,
                "<section id=map><h2>Map</h2>\n<p class=key>One row per node, GPUs by index:"
                "<i></i>fine<i class=w>~</i>watched<i class=a>!</i>outlier<i class=b>!</i>score "
                "above 20<i class=c>!</i>above 100, or failing<i class=u>?</i>not measured or not "
                "judged</p>\n");
    if (data->node_count > OPEN_MAX) {
        put_folded(out, data);
    } else {
        strbuf_puts(out, "<div class=heat>\n");
        for (size_t first = 0, last; first < count; first = last) {
            last = node_end(data, first);
            put_node(out, data, first, last);
        }
        strbuf_puts(out, "</div>\n");
    }
    strbuf_puts(out, "</section>\n");
}
