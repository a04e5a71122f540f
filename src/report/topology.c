/* A text drawing of one model's memory hierarchy. */
#include "report/topology.h"

#include <math.h>
#include <stdlib.h>

#include "markup/text.h"
#include "report/hierarchy.h"
#include "report/panel.h"

enum { FRAME_COLUMNS = 4, NAME_COLUMNS = 40 };

static struct panel draw_memory(const struct hierarchy_memory *memory, const char *title,
                                unsigned width_min, const struct report_style *style,
                                unsigned width_max)
{
    struct panel text = panel_text(memory->lines, memory->line_count, width_max - FRAME_COLUMNS);
    unsigned titled = text_columns(title, width_max) + 6;
    if (titled > width_max)
        titled = width_max;
    return panel_frame(title, &text, width_min > titled ? width_min : titled, style->boxes);
}

static struct panel draw_block(const struct hierarchy_block *block,
                               const struct report_style *style, unsigned width_max)
{
    struct panel items[HIERARCHY_BLOCKS_MAX];
    unsigned inner = block->count > 1 ? width_max - FRAME_COLUMNS : width_max;
    for (size_t i = 0; i < block->count; i++)
        items[i] = draw_memory(&block->memories[i], block->memories[i].name, 0, style, inner);
    if (block->count == 1)
        return items[0];
    struct panel flow = panel_flow(items, block->count, inner);
    return panel_frame("one array", &flow, 0, style->boxes);
}

static struct panel draw_sm(const struct hierarchy *h, const struct report_style *style)
{
    struct panel items[HIERARCHY_BLOCKS_MAX + 1];
    unsigned inner = style->width - FRAME_COLUMNS;
    size_t count = 0;
    bool failed = false;
    for (size_t i = 0; i < h->block_count; i++)
        items[count++] = draw_block(&h->blocks[i], style, inner);
    if (h->constant_l15.line_count) {
        struct strbuf title = {0};
        strbuf_puts(&title, "constant L1.5");
        if (h->l15_sms > 1)
            strbuf_printf(&title, ", for %.0f SMs", h->l15_sms);
        items[count++] =
            draw_memory(&h->constant_l15, title.data ? title.data : "", 0, style, inner);
        failed = title.failed;
        strbuf_fini(&title);
    }
    struct panel flow = panel_flow(items, count, inner);
    flow.failed |= failed;
    return panel_frame(h->sm_title, &flow, style->width, style->boxes);
}

static void draw_whole(const struct hierarchy *h, const struct report_style *style,
                       struct strbuf *out)
{
    struct strbuf l2 = {0};
    strbuf_puts(&l2, "L2");
    if (h->l2_parts > 1)
        strbuf_printf(&l2, ", %u parts", h->l2_parts);
    const struct {
        const struct hierarchy_memory *memory;
        const char *title;
    } rows[] = {
        {&h->l2, l2.data ? l2.data : ""}, {&h->main, "main memory"}, {&h->host, "host link"}};
    struct panel sm = draw_sm(h, style);
    panel_print(&sm, out);
    panel_fini(&sm);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!rows[i].memory->line_count)
            continue;
        struct panel row =
            draw_memory(rows[i].memory, rows[i].title, style->width, style, style->width);
        panel_print(&row, out);
        panel_fini(&row);
    }
    out->failed |= l2.failed;
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
    if (hierarchy_init(&hierarchy, model))
        out_text->failed = true;
    else
        draw_whole(&hierarchy, style, out_text);
    hierarchy_fini(&hierarchy);
}
