/* The links between the GPUs of each node, as a matrix with the findings about them. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "inventory/link_row.h"
#include "markup/html.h"
#include "report/html/sections.h"

/* Nodes with findings about links come first. Of them all have their findings, some a matrix; of
 * the other nodes only some are shown. */
enum { NODES_MAX = 40 };

/* GPUs first to last - 1 of the data: a node. */
struct link_node {
    size_t first, last;
    double fastest; /* of all links, GB/s */
};

static double links_number(const struct inventory_gpu *gpu, const char *key, size_t place)
{
    return link_row_number(&gpu->links, key, place);
}

/* The state of the link to a peer; NULL: the GPU has none to it. Also its place in the lists. */
static const char *links_state(const struct inventory_gpu *gpu, const char *uuid, size_t *out_place)
{
    size_t count = 0, state_count = 0;
    char *const *gpus = facts_texts(&gpu->links, "gpus", &count);
    char *const *states = facts_texts(&gpu->links, "state", &state_count);
    for (size_t i = 0; uuid && i < count && i < state_count; i++)
        if (strcmp(gpus[i], uuid) == 0) {
            *out_place = i;
            return states[i];
        }
    return NULL;
}

static size_t gpu_put_link_findings(struct strbuf *out, const struct html_gpu *gpu,
                                    const struct inventory_outlier *entry, bool outlier)
{
    size_t count = 0;
    for (size_t i = 0; entry && i < entry->evidence_count; i++) {
        if (strncmp(entry->evidence[i].metric, "links.", 6) != 0)
            continue;
        count++;
        if (!out)
            continue;
        strbuf_printf(out, "<p>%sGPU %d: ", outlier ? "" : "told: ", (int)gpu->gpu->index);
        html_text(out, entry->evidence[i].cause, HTML_SENTENCE);
        strbuf_puts(out, "</p>\n");
    }
    return count;
}

/* Puts the findings about links of a node's GPUs, or only counts them if out is NULL. */
static size_t node_put_link_findings(struct strbuf *out, const struct html_data *data,
                                     const struct link_node *node)
{
    size_t count = 0;
    for (size_t i = node->first; i < node->last; i++) {
        const struct html_gpu *gpu = &data->gpus[i];
        count += gpu_put_link_findings(out, gpu, gpu->outlier, true);
        count += gpu_put_link_findings(out, gpu, gpu->watch, false);
    }
    return count;
}

static void links_put_cell(struct strbuf *out, const struct link_node *node,
                           const struct inventory_gpu *gpu, const struct inventory_gpu *peer)
{
    static const double steps[HTML_SHADES] = {0.03, 0.1, 0.3, 0.7};
    size_t place = SIZE_MAX;
    const char *state = links_state(gpu, peer->uuid, &place);
    double read = links_number(gpu, "read", place), write = links_number(gpu, "write", place);
    if (gpu == peer || !state) {
        strbuf_puts(out, "<td></td>");
        return;
    }
    if (isnan(read) || isnan(write)) {
        strbuf_puts(out, "<td><i class=u></i>");
        strbuf_puts(out, strcmp(state, "failed") == 0 ? "fails" : "?");
        strbuf_puts(out, "</td>");
        return;
    }
    strbuf_printf(out, "<td title=\"GPU %d: %.4g GB/s from GPU %d, %.4g GB/s to it, %.4g both ways",
                  (int)gpu->index, read, (int)peer->index, write, links_number(gpu, "both", place));
    double sms = links_number(gpu, "sm_both", place), latency = links_number(gpu, "latency", place);
    if (isfinite(sms))
        strbuf_printf(out, ", %.4g by SMs", sms);
    if (isfinite(latency))
        strbuf_printf(out, ", %.0f cycles", latency);
    strbuf_printf(out, "\"><i%s></i>%.0f</td>",
                  html_shade(1 - fmin(read, write) / node->fastest, steps), fmin(read, write));
}

/* Columns beside the matrix: the host link of the GPU alone, and with all others. */
static const char *const host_metrics[] = {"host.bandwidth.h2d", "host.together.h2d",
                                           "host.bandwidth.d2h", "host.together.d2h"};

static bool node_has_host_columns(const struct html_data *data, const struct link_node *node)
{
    for (size_t i = node->first; i < node->last; i++)
        if (isfinite(html_data_value(data->gpus[i].gpu, "host.together.h2d")))
            return true;
    return false;
}

static void links_put_host_cells(struct strbuf *out, const struct inventory_gpu *gpu)
{
    for (size_t i = 0; i < COUNT_OF(host_metrics); i++) {
        double value = html_data_value(gpu, host_metrics[i]);
        if (isfinite(value))
            strbuf_printf(out, "<td>%.3g</td>", value);
        else
            strbuf_puts(out, "<td></td>");
    }
}

static void links_put_name(struct strbuf *out, const struct html_data *data,
                           const struct link_node *node)
{
    strbuf_puts(out, "<h3>");
    html_text(out, data->gpus[node->first].gpu->node, HTML_NAME);
    strbuf_puts(out, "</h3>\n");
    node_put_link_findings(out, data, node);
}

static void links_put_node(struct strbuf *out, const struct html_data *data,
                           const struct link_node *node)
{
    links_put_name(out, data, node);
    bool host = node_has_host_columns(data, node);
    strbuf_puts(out, "<div class=wide><table class=links><tr><th>GPU</th>");
    for (size_t j = node->first; j < node->last; j++)
        strbuf_printf(out, "<th>%d</th>", (int)data->gpus[j].gpu->index);
    strbuf_puts(out, host ? "<th>from host alone</th><th>all at once</th><th>to host alone</th>"
                            "<th>all at once</th></tr>\n"
                          : "</tr>\n");
    for (size_t i = node->first; i < node->last; i++) {
        strbuf_printf(out, "<tr><th>%d</th>", (int)data->gpus[i].gpu->index);
        for (size_t j = node->first; j < node->last; j++)
            links_put_cell(out, node, data->gpus[i].gpu, data->gpus[j].gpu);
        if (host)
            links_put_host_cells(out, data->gpus[i].gpu);
        strbuf_puts(out, "</tr>\n");
    }
    strbuf_puts(out, "</table></div>\n");
}

/* The node that begins at a GPU. False: none of its GPUs has links. */
static bool links_find_node(const struct html_data *data, size_t first, struct link_node *out)
{
    bool any = false;
    *out = (struct link_node){.first = first, .last = first};
    while (out->last < data->inventory->gpu_count &&
           str_equal(data->gpus[out->last].gpu->node, data->gpus[first].gpu->node)) {
        const struct inventory_gpu *gpu = data->gpus[out->last++].gpu;
        size_t count = 0;
        any = facts_texts(&gpu->links, "gpus", &count) || any;
        for (size_t k = 0; k < count; k++) {
            out->fastest = fmax(out->fastest, links_number(gpu, "read", k));
            out->fastest = fmax(out->fastest, links_number(gpu, "write", k));
        }
    }
    return any;
}

/* Why no GPU has links to others: the first reason. NULL: none. */
static const char *links_missing_reason(const struct html_data *data)
{
    const char *why = NULL;
    for (size_t i = 0; i < data->inventory->gpu_count && !why; i++)
        why = facts_text(&data->gpus[i].gpu->links, "why");
    return why;
}

void html_links(struct strbuf *out, const struct html_data *data)
{
    size_t shown = 0, hidden = 0;
    struct link_node node;
    for (int bad = 1; bad >= 0; bad--)
        for (size_t first = 0; first < data->inventory->gpu_count; first = node.last) {
            bool any = links_find_node(data, first, &node);
            if (!any || (node_put_link_findings(NULL, data, &node) > 0) != bad)
                continue;
            if (shown == NODES_MAX) {
                hidden++;
                if (bad)
                    links_put_name(out, data, &node);
                continue;
            }
            if (!shown++)
                strbuf_puts(out,
                            "<section id=links><h2>Links between GPUs</h2>\n<p class=key>GB/s of "
                            "copies, the slower of both ways, by the GPU of the row. Slower than "
                            "the fastest link of the node by:<i></i>up to 3&nbsp;%<i class=w></i>"
                            "10&nbsp;%<i class=a></i>30&nbsp;%<i class=b></i>70&nbsp;%"
                            "<i class=c></i>more</p>\n");
            links_put_node(out, data, &node);
        }
    if (hidden)
        strbuf_printf(out, "<p>The links of %zu more nodes are in the inventory.</p>\n", hidden);
    const char *why = shown ? NULL : links_missing_reason(data);
    if (why) {
        strbuf_puts(out, "<section id=links><h2>Links between GPUs</h2>\n<p>Not measured: ");
        html_text(out, why, HTML_NAME);
        strbuf_puts(out, "</p>\n");
    }
    strbuf_puts(out, shown || why ? "</section>\n" : "");
}
