/* Where the GPUs are: the map of nodes and indices that shows which GPUs are odd, and the counts by
 * rack and switch, where the site gives a map. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "markup/html.h"
#include "markup/table.h"
#include "report/html/sections.h"

/* The class and the sign of a cell by oddity; the sign is for readers who cannot see the
 * colours. */
static const struct {
    const char *class, *sign;
} map_cells[] = {{"", ""}, {"w", "~"}, {"a", "!"}, {"c", "!"}, {"u", "?"}};

static void map_put_gpu(struct strbuf *out, const struct html_data *data,
                        const struct html_gpu *gpu)
{
    if (gpu->oddity == HTML_FINE) {
        strbuf_puts(out, "<i></i>");
        return;
    }
    strbuf_printf(out, "<i class=%s title=\"GPU %d: %s", map_cells[gpu->oddity].class,
                  (int)gpu->gpu->index, gpu_status_name(gpu->gpu->status));
    const struct inventory_outlier *odd = gpu->outlier ? gpu->outlier : gpu->watch;
    if (odd && odd->evidence_count) {
        strbuf_puts(out, ", ");
        html_text(out, odd->evidence[0].metric, HTML_NAME);
        if (isfinite(odd->evidence[0].score))
            strbuf_printf(out, ", score %.3g", odd->evidence[0].score);
    }
    strbuf_puts(out, "\">");
    if (gpu->has_card)
        strbuf_printf(out, "<a href=#o%td>!</a></i>", gpu->outlier - data->inventory->outliers);
    else if (gpu->place_has_card)
        strbuf_printf(out, "<a href=#p%td>!</a></i>", gpu->place - data->inventory->node_findings);
    else
        strbuf_printf(out, "%s</i>", map_cells[gpu->oddity].sign);
}

static bool node_is_fine(const struct html_data *data, size_t first, size_t last)
{
    while (first < last && data->gpus[first].oddity == HTML_FINE)
        first++;
    return first == last;
}

static void map_put_node(struct strbuf *out, const struct html_data *data, size_t first,
                         size_t last)
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
        map_put_gpu(out, data, gpu);
        next++;
    }
    strbuf_puts(out, "</div>\n");
}

/* Puts the nodes on which all GPUs are fine, or the others; returns their number. */
static size_t map_put_nodes(struct strbuf *out, const struct html_data *data, bool fine)
{
    size_t count = 0;
    for (size_t first = 0, last; first < data->inventory->gpu_count; first = last) {
        last = html_data_node_end(data, first);
        if (node_is_fine(data, first, last) != fine)
            continue;
        map_put_node(out, data, first, last);
        count++;
    }
    return count;
}

/* For a large fleet: nodes with odd GPUs first, the others folded, or only counted. */
static void map_put_folded(struct strbuf *out, const struct html_data *data)
{
    struct strbuf rows = {0};
    strbuf_puts(out, "<div class=heat>\n");
    map_put_nodes(out, data, false);
    strbuf_puts(out, "</div>\n");
    enum { FOLDED_MAX = 4000 };
    size_t count = map_put_nodes(&rows, data, true);
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
    strbuf_fini(&rows);
}

void html_heat(struct strbuf *out, const struct html_data *data)
{
    enum { OPEN_MAX = 256 };
    size_t count = data->inventory->gpu_count;
    if (!count)
        return;
    strbuf_puts(out, "<section id=map><h2>Map</h2>\n<p class=key>One row per node, GPUs by index:"
                     "<i></i>fine<i class=w>~</i>told<i class=a>!</i>alert<i class=c>!</i>drain<i "
                     "class=u>?</i>not measured or not judged</p>\n");
    if (data->node_count > OPEN_MAX) {
        map_put_folded(out, data);
    } else {
        strbuf_puts(out, "<div class=heat>\n");
        for (size_t first = 0, last; first < count; first = last) {
            last = html_data_node_end(data, first);
            map_put_node(out, data, first, last);
        }
        strbuf_puts(out, "</div>\n");
    }
    strbuf_puts(out, "</section>\n");
}

/* The GPUs of one node, or of all nodes of a rack. */
struct rack_row {
    const char *name; /* "": the map does not tell it */
    size_t mapped;    /* nodes in the map */
    size_t nodes, gpus, unmeasured, drained, alerted;
};

static const char *rack_name(const struct rack_place *place, bool leaf)
{
    const char *name = !place ? NULL : leaf ? place->leaf : place->rack;
    return name ? name : "";
}

static void rack_count_gpu(struct rack_row *row, const struct html_gpu *gpu)
{
    row->gpus++;
    if (gpu->oddity == HTML_DRAINED)
        row->drained++;
    else if (gpu->oddity == HTML_ALERTED)
        row->alerted++;
    else if (gpu->gpu->status != GPU_OK)
        row->unmeasured++;
}

static int rack_name_order(const void *a, const void *b)
{
    return strverscmp(((const struct rack_row *)a)->name, ((const struct rack_row *)b)->name);
}

/* The most severe first. */
static int rack_severity_order(const void *a, const void *b)
{
    const struct rack_row *left = a, *right = b;
    if (left->drained != right->drained)
        return left->drained > right->drained ? -1 : 1;
    if (left->alerted != right->alerted)
        return left->alerted > right->alerted ? -1 : 1;
    if (left->unmeasured != right->unmeasured)
        return left->unmeasured > right->unmeasured ? -1 : 1;
    return rack_name_order(a, b);
}

/* Joins rows of the same name; returns their number. */
static size_t racks_join(struct rack_row *rows, size_t count)
{
    size_t kept = 0;
    if (count)
        sort_stable(rows, count, sizeof *rows, rack_name_order);
    for (size_t i = 0; i < count; i++) {
        struct rack_row *last = kept ? &rows[kept - 1] : NULL;
        if (!last || strcmp(last->name, rows[i].name) != 0) {
            rows[kept++] = rows[i];
            continue;
        }
        last->mapped += rows[i].mapped;
        last->nodes += rows[i].nodes;
        last->gpus += rows[i].gpus;
        last->unmeasured += rows[i].unmeasured;
        last->drained += rows[i].drained;
        last->alerted += rows[i].alerted;
    }
    if (kept)
        sort_stable(rows, kept, sizeof *rows, rack_severity_order);
    return kept;
}

/* One row per node with GPUs and one per line of the map; returns their number. */
static size_t racks_fill(struct rack_row *rows, const struct html_data *data, bool leaf)
{
    size_t count = 0;
    for (size_t i = 0; i < data->inventory->gpu_count; i++) {
        const char *node = data->gpus[i].gpu->node;
        if (!i || !str_equal(node, data->gpus[i - 1].gpu->node))
            rows[count++] = (struct rack_row){
                .name = rack_name(racks_find(data->racks, node), leaf), .nodes = 1};
        rack_count_gpu(&rows[count - 1], &data->gpus[i]);
    }
    for (size_t i = 0; i < data->racks->count; i++)
        rows[count++] =
            (struct rack_row){.name = rack_name(&data->racks->items[i], leaf), .mapped = 1};
    return count;
}

static void racks_put_table(struct strbuf *out, const struct html_data *data, bool leaf)
{
    struct rack_row *rows = mem_array(data->node_count + data->racks->count, sizeof *rows);
    const size_t count = racks_join(rows, racks_fill(rows, data, leaf));
    table_open(out, "sort filter");
    table_heads(out, leaf ? "switch" : "rack");
    table_heads(out, "#nodes surveyed|#GPUs|#drain|#alert|#not measured");
    table_heads_end(out);
    for (const struct rack_row *row = rows; row < rows + count; row++) {
        const char *nowhere = leaf ? "no switch given" : "not in the map";
        table_row(out);
        table_name(out, *row->name ? row->name : nowhere);
        strbuf_printf(out, "<td class=n>%zu of %zu", row->nodes,
                      *row->name ? row->mapped : row->nodes);
        table_count(out, row->gpus);
        table_count(out, row->drained);
        table_count(out, row->alerted);
        table_count(out, row->unmeasured);
        strbuf_puts(out, "\n");
    }
    table_end(out);
    free(rows);
}

void html_racks(struct strbuf *out, const struct html_data *data)
{
    bool leaves = false;
    if (!data->racks)
        return;
    for (size_t i = 0; i < data->racks->count; i++)
        leaves |= data->racks->items[i].leaf != NULL;
    strbuf_puts(out, "<section id=racks><h2>Racks and switches</h2>\n<p>GPUs by where their node "
                     "is, as the site says; each GPU counts once.</p>\n");
    racks_put_table(out, data, false);
    if (leaves)
        racks_put_table(out, data, true);
    strbuf_puts(out, "</section>\n");
}

void html_rack(struct strbuf *out, const struct html_data *data, const char *node)
{
    const struct rack_place *place = racks_find(data->racks, node);
    if (!place)
        return;
    strbuf_puts(out, ", rack ");
    html_text(out, place->rack, HTML_NAME);
    if (place->leaf) {
        strbuf_puts(out, ", switch ");
        html_text(out, place->leaf, HTML_NAME);
    }
}
