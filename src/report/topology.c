/* A text drawing of one model's memory hierarchy: nested rectangles of text. */
#include "report/summary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "markup/text.h"
#include "report/hierarchy.h"

/* Every line is `width` columns wide. Zero-initialised is empty. */
struct panel {
    char **lines;
    size_t count, capacity;
    unsigned width;
};

static const unsigned gap = 1;

/* Takes ownership of the text. */
static void panel_add(struct panel *panel, struct strbuf *line)
{
    panel->lines = mem_grow(panel->lines, &panel->capacity, panel->count + 1, sizeof *panel->lines);
    panel->lines[panel->count++] = line->data;
}

static void put_repeated(struct strbuf *line, const char *text, unsigned count)
{
    while (count--)
        strbuf_puts(line, text);
}

static void panel_fini(struct panel *panel)
{
    for (size_t i = 0; i < panel->count; i++)
        free(panel->lines[i]);
    free(panel->lines);
    memset(panel, 0, sizeof *panel);
}

/* As wide as the longest text, at most width_max columns. */
static struct panel panel_text(char *const *texts, size_t count, unsigned width_max)
{
    struct panel panel = {.width = 1};
    for (size_t i = 0; i < count; i++) {
        unsigned columns = text_columns(texts[i], width_max);
        if (columns > panel.width)
            panel.width = columns < width_max ? columns : width_max;
    }
    for (size_t i = 0; i < count; i++) {
        struct strbuf line = {0};
        text_put_column(&line, texts[i], panel.width);
        panel_add(&panel, &line);
    }
    return panel;
}

static void panel_add_edge(struct panel *frame, const char *title, const char *const parts[3])
{
    struct strbuf line = {0};
    unsigned room = frame->width - 2, used = 0;
    strbuf_puts(&line, parts[0]);
    if (*title) {
        used = text_columns(title, room - 3);
        used = used < room - 3 ? used : room - 3;
        strbuf_printf(&line, "%s ", parts[1]);
        text_put_column(&line, title, used);
        strbuf_puts(&line, " ");
        used += 3;
    }
    put_repeated(&line, parts[1], room - used);
    strbuf_puts(&line, parts[2]);
    panel_add(frame, &line);
}

/* Puts the content into a frame with a title, at least width_min columns wide; the content is
 * released. boxes: use box-drawing characters. */
static struct panel panel_frame(const char *title, struct panel *content, unsigned width_min,
                                bool boxes)
{
    static const char *const tops[2][3] = {{"+", "-", "+"}, {"\u250c", "\u2500", "\u2510"}};
    static const char *const bottoms[2][3] = {{"+", "-", "+"}, {"\u2514", "\u2500", "\u2518"}};
    const char *side = boxes ? "\u2502" : "|";
    struct panel frame = {.width = content->width + 4};
    if (frame.width < width_min)
        frame.width = width_min;
    panel_add_edge(&frame, title, tops[boxes]);
    for (size_t i = 0; i < content->count; i++) {
        struct strbuf line = {0};
        strbuf_printf(&line, "%s %s%*s %s", side, content->lines[i],
                      (int)(frame.width - 4 - content->width), "", side);
        panel_add(&frame, &line);
    }
    panel_add_edge(&frame, "", bottoms[boxes]);
    panel_fini(content);
    return frame;
}

/* Items first .. last - 1 side by side, padded to the width of the flow. */
static void panel_add_row(struct panel *flow, const struct panel *items, size_t first, size_t last)
{
    size_t height = 0;
    for (size_t i = first; i < last; i++)
        height = items[i].count > height ? items[i].count : height;
    for (size_t y = 0; y < height; y++) {
        struct strbuf line = {0};
        unsigned used = 0;
        for (size_t i = first; i < last; i++) {
            unsigned space = i > first ? gap : 0;
            bool there = y < items[i].count;
            strbuf_printf(&line, "%*s%s%*s", (int)space, "", there ? items[i].lines[y] : "",
                          there ? 0 : (int)items[i].width, "");
            used += space + items[i].width;
        }
        strbuf_printf(&line, "%*s", (int)(flow->width - used), "");
        panel_add(flow, &line);
    }
}

/* The end of the row that begins at item `first`, and its width. */
static size_t panel_row_end(const struct panel *items, size_t first, size_t count,
                            unsigned width_max, unsigned *out_width)
{
    size_t last = first + 1;
    *out_width = items[first].width;
    while (last < count && *out_width + gap + items[last].width <= width_max)
        *out_width += gap + items[last++].width;
    return last;
}

/* Puts as many items side by side as fit, then starts the next row; the items are released. */
static struct panel panel_flow(struct panel *items, size_t count, unsigned width_max)
{
    struct panel flow = {0};
    unsigned width;
    for (size_t first = 0; first < count;
         first = panel_row_end(items, first, count, width_max, &width)) {
        panel_row_end(items, first, count, width_max, &width);
        flow.width = width > flow.width ? width : flow.width;
    }
    for (size_t first = 0, last; first < count; first = last) {
        last = panel_row_end(items, first, count, width_max, &width);
        panel_add_row(&flow, items, first, last);
    }
    for (size_t i = 0; i < count; i++)
        panel_fini(&items[i]);
    return flow;
}

static void panel_print(const struct panel *panel, struct strbuf *out_text)
{
    for (size_t i = 0; i < panel->count; i++) {
        size_t length = strlen(panel->lines[i]);
        while (length && panel->lines[i][length - 1] == ' ')
            length--;
        strbuf_append(out_text, panel->lines[i], length);
        strbuf_puts(out_text, "\n");
    }
}

enum { FRAME_COLUMNS = 4, NAME_COLUMNS = 40 };

static struct panel topology_draw_memory(const struct hierarchy_memory *memory, const char *title,
                                         unsigned width_min, const struct report_style *style,
                                         unsigned width_max)
{
    struct panel text = panel_text(memory->lines, memory->line_count, width_max - FRAME_COLUMNS);
    unsigned titled = text_columns(title, width_max) + 6;
    if (titled > width_max)
        titled = width_max;
    return panel_frame(title, &text, width_min > titled ? width_min : titled, style->boxes);
}

static struct panel topology_draw_block(const struct hierarchy_block *block,
                                        const struct report_style *style, unsigned width_max)
{
    struct panel items[HIERARCHY_BLOCKS_MAX];
    unsigned inner = block->count > 1 ? width_max - FRAME_COLUMNS : width_max;
    for (size_t i = 0; i < block->count; i++)
        items[i] =
            topology_draw_memory(&block->memories[i], block->memories[i].name, 0, style, inner);
    if (block->count == 1)
        return items[0];
    struct panel flow = panel_flow(items, block->count, inner);
    return panel_frame("one array", &flow, 0, style->boxes);
}

static struct panel topology_draw_sm(const struct hierarchy *h, const struct report_style *style)
{
    struct panel items[HIERARCHY_BLOCKS_MAX + 1];
    unsigned inner = style->width - FRAME_COLUMNS;
    size_t count = 0;
    for (size_t i = 0; i < h->block_count; i++)
        items[count++] = topology_draw_block(&h->blocks[i], style, inner);
    if (h->constant_l15.line_count) {
        struct strbuf title = {0};
        strbuf_puts(&title, "constant L1.5");
        if (h->l15_sms > 1)
            strbuf_printf(&title, ", for %.0f SMs", h->l15_sms);
        items[count++] = topology_draw_memory(&h->constant_l15, title.data, 0, style, inner);
        strbuf_fini(&title);
    }
    struct panel flow = panel_flow(items, count, inner);
    return panel_frame(h->sm_title, &flow, style->width, style->boxes);
}

static void topology_draw_whole(const struct hierarchy *h, const struct report_style *style,
                                struct strbuf *out)
{
    struct strbuf l2 = {0};
    strbuf_puts(&l2, "L2");
    if (h->l2_parts > 1)
        strbuf_printf(&l2, ", %u parts", h->l2_parts);
    const struct {
        const struct hierarchy_memory *memory;
        const char *title;
    } rows[] = {{&h->l2, l2.data}, {&h->main, "main memory"}, {&h->host, "host link"}};
    struct panel sm = topology_draw_sm(h, style);
    panel_print(&sm, out);
    panel_fini(&sm);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!rows[i].memory->line_count)
            continue;
        struct panel row =
            topology_draw_memory(rows[i].memory, rows[i].title, style->width, style, style->width);
        panel_print(&row, out);
        panel_fini(&row);
    }
    strbuf_fini(&l2);
}

void report_topology(const struct inventory_model *model, const struct report_style *style,
                     struct strbuf *out_text)
{
    struct hierarchy hierarchy;
    report_begin_paint(out_text, style, REPORT_BOLD);
    text_put_clean(out_text, model->name ? model->name : model->id, NAME_COLUMNS);
    report_end_paint(out_text, style);
    strbuf_printf(out_text, ": %u measured\n", model->count);
    report_hierarchy_init(&hierarchy, model);
    topology_draw_whole(&hierarchy, style, out_text);
    report_hierarchy_fini(&hierarchy);
}
