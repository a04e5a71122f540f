/* The drawing of a model's memory hierarchy as SVG. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "markup/html.h"
#include "report/hierarchy.h"
#include "report/html/sections.h"

/* A character of a 12 px monospaced font is 7.25 px wide. */
static const double char_width = 7.25;
enum {
    WIDTH = 940,
    PAD = 10,
    LINE = 17,
    HEAD = 22,
    GAP = 10,
    LINK = 18,
    COLUMNS_MAX = 60,
    SIDE_MAX = 3
};

struct box {
    double x, y, width, height;
};

/* A row of boxes while it is laid out: x and y of the next box, height of the row so far. */
struct flow {
    double left, right, x, y, row;
};

static double text_width(const char *text)
{
    return char_width * (double)strlen(text);
}

static double lines_width(const struct hierarchy_memory *memory)
{
    double width = 0;
    for (size_t i = 0; i < memory->line_count; i++)
        width = fmax(width, text_width(memory->lines[i]));
    return width;
}

static struct box memory_box(const struct hierarchy_memory *memory, const char *name)
{
    return (struct box){.width = fmax(lines_width(memory), text_width(name)) + 2 * PAD,
                        .height = HEAD + LINE * (double)memory->line_count + PAD};
}

/* A box as wide as the drawing; its lines are placed side by side if they fit. */
static struct box wide_box(const struct hierarchy_memory *memory, double y, size_t *out_columns)
{
    size_t columns = SIDE_MAX;
    while (columns > 1 && lines_width(memory) + PAD > (WIDTH - 2 - PAD) / (double)columns)
        columns--;
    size_t rows = (memory->line_count + columns - 1) / columns;
    *out_columns = columns;
    return (struct box){1, y, WIDTH - 2, HEAD + LINE * (double)rows + PAD};
}

static void flow_place(struct flow *flow, struct box *box)
{
    if (flow->x > flow->left && flow->x + box->width > flow->right) {
        flow->x = flow->left;
        flow->y += flow->row + GAP;
        flow->row = 0;
    }
    box->x = flow->x;
    box->y = flow->y;
    flow->x += box->width + GAP;
    flow->row = fmax(flow->row, box->height);
}

/* Widens the boxes of each row equally until it is full, and makes them as high as the highest. */
static void rows_fill(struct box *boxes, size_t count, double right)
{
    for (size_t first = 0, last; first < count; first = last) {
        double height = 0;
        for (last = first; last < count && boxes[last].y - boxes[first].y < 1; last++)
            height = fmax(height, boxes[last].height);
        const struct box *end = &boxes[last - 1];
        double more = (right - end->x - end->width) / (double)(last - first);
        for (size_t i = first; i < last; i++) {
            boxes[i].x += more * (double)(i - first);
            boxes[i].width += more;
            boxes[i].height = height;
        }
    }
}

static void topology_put_rect(struct strbuf *out, const struct box *box, const char *class)
{
    strbuf_printf(out,
                  "<rect class=\"%s\" x=\"%.0f\" y=\"%.0f\" width=\"%.0f\" height=\"%.0f\" "
                  "rx=\"5\"/>",
                  class, box->x, box->y, box->width, box->height);
}

static void topology_put_text(struct strbuf *out, double x, double y, const char *class,
                              const char *text)
{
    strbuf_printf(out, "<text class=\"%s\" x=\"%.0f\" y=\"%.0f\">", class, x, y);
    html_text(out, text, COLUMNS_MAX);
    strbuf_puts(out, "</text>");
}

static void topology_put_memory(struct strbuf *out, const struct hierarchy_memory *memory,
                                const char *name, const struct box *box, size_t columns)
{
    double step = (box->width - PAD) / (double)columns;
    size_t rows = (memory->line_count + columns - 1) / columns;
    topology_put_rect(out, box, "memory");
    topology_put_text(out, box->x + PAD, box->y + HEAD - 5, "name", name);
    for (size_t i = 0; i < memory->line_count; i++)
        topology_put_text(out, box->x + PAD + step * (double)(i / rows),
                          box->y + HEAD + LINE * (double)(i % rows + 1) - 4, "", memory->lines[i]);
    strbuf_puts(out, "\n");
}

/* Lays out the inner boxes of a block from (x, y) on; returns the size of the block. */
static struct box block_lay_out(const struct hierarchy_block *block, double x, double y,
                                double right, struct box boxes[HIERARCHY_BLOCKS_MAX])
{
    bool framed = block->count > 1;
    double pad = framed ? PAD : 0, head = framed ? HEAD : 0, reach = x;
    struct flow flow = {x + pad, right - pad, x + pad, y + head, 0};
    for (size_t i = 0; i < block->count; i++) {
        boxes[i] = memory_box(&block->memories[i], block->memories[i].name);
        flow_place(&flow, &boxes[i]);
        reach = fmax(reach, boxes[i].x + boxes[i].width);
    }
    return (struct box){x, y, reach + pad - x, flow.y + flow.row + pad - y};
}

static void topology_put_block(struct strbuf *out, const struct hierarchy_block *block,
                               const struct box *outer)
{
    struct box boxes[HIERARCHY_BLOCKS_MAX];
    double right = outer->x + outer->width;
    if (block->count > 1) {
        block_lay_out(block, outer->x, outer->y, right + 1, boxes);
        rows_fill(boxes, block->count, right - PAD);
        topology_put_rect(out, outer, "array");
        topology_put_text(out, outer->x + PAD, outer->y + HEAD - 6, "", "one array");
    } else {
        boxes[0] = *outer;
    }
    for (size_t i = 0; i < block->count; i++)
        topology_put_memory(out, &block->memories[i], block->memories[i].name, &boxes[i], 1);
}

/* Draws one SM; returns the y below it. */
static double topology_put_sm(struct strbuf *out, const struct hierarchy *h, double y)
{
    struct box boxes[HIERARCHY_BLOCKS_MAX], outer[HIERARCHY_BLOCKS_MAX + 1];
    size_t count = h->block_count;
    struct flow flow = {PAD + 1, WIDTH - PAD - 1, PAD + 1, y + HEAD, 0};
    char l15_name[64] = "constant L1.5";
    for (size_t i = 0; i < h->block_count; i++) {
        outer[i] = block_lay_out(&h->blocks[i], flow.left, 0, flow.right, boxes);
        flow_place(&flow, &outer[i]);
    }
    if (h->l15_sms > 1)
        snprintf(l15_name, sizeof l15_name, "constant L1.5, for %.0f SMs", h->l15_sms);
    if (h->constant_l15.line_count) {
        outer[count] = memory_box(&h->constant_l15, l15_name);
        flow_place(&flow, &outer[count++]);
    }
    rows_fill(outer, count, flow.right);
    struct box sm = {1, y, WIDTH - 2, flow.y + flow.row + PAD - y};
    topology_put_rect(out, &sm, "sm");
    topology_put_text(out, sm.x + PAD, sm.y + HEAD - 6, "name", h->sm_title);
    for (size_t i = 0; i < h->block_count; i++)
        topology_put_block(out, &h->blocks[i], &outer[i]);
    if (count > h->block_count)
        topology_put_memory(out, &h->constant_l15, l15_name, &outer[h->block_count], 1);
    return sm.y + sm.height;
}

static double topology_put_link(struct strbuf *out, double y)
{
    strbuf_printf(out, "<line x1=\"%d\" y1=\"%.0f\" x2=\"%d\" y2=\"%.0f\"/>", WIDTH / 2, y,
                  WIDTH / 2, y + LINK);
    return y + LINK;
}

/* L2 as one box, with its parts side by side below the figures. */
static double topology_put_l2(struct strbuf *out, const struct hierarchy *h, double y)
{
    size_t columns;
    struct box box = wide_box(&h->l2, y, &columns);
    box.height += h->l2_parts > 1 ? HEAD + PAD : 0;
    topology_put_memory(out, &h->l2, "L2", &box, columns);
    double width = (box.width - PAD - PAD * (double)h->l2_parts) / (double)h->l2_parts;
    for (unsigned i = 0; h->l2_parts > 1 && i < h->l2_parts; i++) {
        struct box part = {box.x + PAD + (width + PAD) * i, box.y + box.height - HEAD - PAD, width,
                           HEAD};
        char name[32];
        snprintf(name, sizeof name, "part %u of %u", i + 1, h->l2_parts);
        topology_put_rect(out, &part, "part");
        topology_put_text(out, part.x + PAD, part.y + HEAD - 6, "", name);
    }
    return box.y + box.height;
}

static double topology_put_wide(struct strbuf *out, const struct hierarchy_memory *memory, double y)
{
    size_t columns;
    struct box box = wide_box(memory, y, &columns);
    topology_put_memory(out, memory, memory->name, &box, columns);
    return box.y + box.height;
}

static double topology_put_levels(struct strbuf *out, const struct hierarchy *h)
{
    double y = 1;
    if (h->block_count || h->constant_l15.line_count)
        y = topology_put_sm(out, h, y);
    if (h->l2.line_count)
        y = topology_put_l2(out, h, y > 1 ? topology_put_link(out, y) : y);
    if (h->main.line_count)
        y = topology_put_wide(out, &h->main, y > 1 ? topology_put_link(out, y) : y);
    if (h->host.line_count)
        y = topology_put_wide(out, &h->host, y > 1 ? topology_put_link(out, y) : y);
    return y;
}

void html_topology(struct strbuf *out, const struct inventory_model *model)
{
    struct hierarchy hierarchy;
    struct strbuf body = {0};
    report_hierarchy_init(&hierarchy, model);
    double height = topology_put_levels(&body, &hierarchy);
    if (body.data && height > 1) {
        strbuf_printf(out,
                      "<div class=wide><svg class=\"topo\" viewBox=\"0 0 %d %.0f\" width=\"%d\" "
                      "height=\"%.0f\" role=\"img\"><title>Memory hierarchy</title>\n",
                      WIDTH, height + 1, WIDTH, height + 1);
        strbuf_append(out, body.data, body.length);
        strbuf_puts(out, "</svg></div>\n");
    }
    strbuf_fini(&body);
    report_hierarchy_fini(&hierarchy);
}
