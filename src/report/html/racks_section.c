/* Outliers by rack and by switch, where the site gives a map. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "markup/html_text.h"
#include "report/html/sections.h"

enum { KINDS = KIND_MISMATCHED + 1 };

/* The GPUs of one node, or of all nodes of a rack. */
struct rack_row {
    const char *name; /* "": the map does not tell it */
    size_t mapped;    /* nodes in the map */
    size_t nodes, gpus, unmeasured, bad[KINDS];
};

static const char *name_of(const struct rack_place *place, bool leaf)
{
    const char *name = !place ? NULL : leaf ? place->leaf : place->rack;
    return name ? name : "";
}

static void count_gpu(struct rack_row *row, const struct html_gpu *gpu)
{
    enum inventory_kind kind = gpu->outlier ? gpu->outlier->kind : KIND_MISMATCHED;
    if (gpu->place && (!gpu->outlier || gpu->place->kind < kind))
        kind = gpu->place->kind;
    row->gpus++;
    if (gpu->outlier || gpu->place)
        row->bad[kind]++;
    else if (gpu->gpu->status != GPU_OK)
        row->unmeasured++;
}

static int by_name(const void *a, const void *b)
{
    return strverscmp(((const struct rack_row *)a)->name, ((const struct rack_row *)b)->name);
}

/* The most severe first. */
static int by_severity(const void *a, const void *b)
{
    const struct rack_row *left = a, *right = b;
    for (int kind = 0; kind < KINDS; kind++)
        if (left->bad[kind] != right->bad[kind])
            return left->bad[kind] > right->bad[kind] ? -1 : 1;
    if (left->unmeasured != right->unmeasured)
        return left->unmeasured > right->unmeasured ? -1 : 1;
    return by_name(a, b);
}

/* Joins rows of the same name; returns their number. */
static size_t join(struct rack_row *rows, size_t count)
{
    size_t kept = 0;
    if (count)
        qsort(rows, count, sizeof *rows, by_name);
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
        for (int kind = 0; kind < KINDS; kind++)
            last->bad[kind] += rows[i].bad[kind];
    }
    if (kept)
        qsort(rows, kept, sizeof *rows, by_severity);
    return kept;
}

/* One row per node with GPUs and one per line of the map; returns their number. */
static size_t fill(struct rack_row *rows, const struct html_data *data, bool leaf)
{
    size_t count = 0;
    for (size_t i = 0; i < data->inventory->gpu_count; i++) {
        const char *node = data->gpus[i].gpu->node;
        if (!i || !str_equal(node, data->gpus[i - 1].gpu->node))
            rows[count++] =
                (struct rack_row){.name = name_of(racks_find(data->racks, node), leaf), .nodes = 1};
        count_gpu(&rows[count - 1], &data->gpus[i]);
    }
    for (size_t i = 0; i < data->racks->count; i++)
        rows[count++] =
            (struct rack_row){.name = name_of(&data->racks->items[i], leaf), .mapped = 1};
    return count;
}

static void put_row(struct strbuf *out, const struct rack_row *row, bool leaf)
{
    strbuf_puts(out, "<tr><td>");
    html_text(out, *row->name ? row->name : leaf ? "no switch given" : "not in the map", HTML_NAME);
    strbuf_printf(out, "<td class=n>%zu of %zu<td class=n>%zu", row->nodes,
                  *row->name ? row->mapped : row->nodes, row->gpus);
    for (int kind = 0; kind < KINDS; kind++)
        strbuf_printf(out, "<td class=n>%zu", row->bad[kind]);
    strbuf_printf(out, "<td class=n>%zu\n", row->unmeasured);
}

static void put_table(struct strbuf *out, const struct html_data *data, bool leaf)
{
    size_t room = data->node_count + data->racks->count;
    struct rack_row *rows = mem_array(room, sizeof *rows);
    if (!rows) {
        out->failed = true;
        return;
    }
    size_t count = join(rows, fill(rows, data, leaf));
    strbuf_printf(out,
                  "<div class=wide><table class=\"sort filter\"><thead><tr><th>%s<th class=n>nodes "
                  "surveyed<th class=n>GPUs",
                  leaf ? "switch" : "rack");
    for (int kind = 0; kind < KINDS; kind++)
        strbuf_printf(out, "<th class=n>%s", inventory_kind_name((enum inventory_kind)kind));
    strbuf_puts(out, "<th class=n>not measured</thead><tbody>\n");
    for (size_t i = 0; i < count; i++)
        put_row(out, &rows[i], leaf);
    strbuf_puts(out, "</tbody></table></div>\n");
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
                     "is, as the site says; each GPU counts once, with its worst kind.</p>\n");
    put_table(out, data, false);
    if (leaves)
        put_table(out, data, true);
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
