/* Rectangles of text. */
#include "report/panel.h"

#include <stdlib.h>
#include <string.h>

#include "markup/text.h"

static const unsigned gap = 1;

/* Takes ownership of the text. */
static void add(struct panel *panel, struct strbuf *line)
{
    if (line->failed || panel->count == PANEL_LINES_MAX) {
        strbuf_fini(line);
        panel->failed = true;
        return;
    }
    panel->lines[panel->count++] = line->data;
}

static void put_repeated(struct strbuf *line, const char *text, unsigned count)
{
    while (count--)
        strbuf_puts(line, text);
}

struct panel panel_text(char *const *texts, size_t count, unsigned width_max)
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
        add(&panel, &line);
    }
    return panel;
}

static void add_edge(struct panel *frame, const char *title, const char *const parts[3])
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
    add(frame, &line);
}

struct panel panel_frame(const char *title, struct panel *content, unsigned width_min, bool boxes)
{
    static const char *const tops[2][3] = {{"+", "-", "+"}, {"\u250c", "\u2500", "\u2510"}};
    static const char *const bottoms[2][3] = {{"+", "-", "+"}, {"\u2514", "\u2500", "\u2518"}};
    const char *side = boxes ? "\u2502" : "|";
    struct panel frame = {.width = content->width + 4, .failed = content->failed};
    if (frame.width < width_min)
        frame.width = width_min;
    add_edge(&frame, title, tops[boxes]);
    for (size_t i = 0; i < content->count; i++) {
        struct strbuf line = {0};
        strbuf_printf(&line, "%s %s%*s %s", side, content->lines[i],
                      (int)(frame.width - 4 - content->width), "", side);
        add(&frame, &line);
    }
    add_edge(&frame, "", bottoms[boxes]);
    panel_fini(content);
    return frame;
}

/* Items first .. last - 1 side by side, padded to the width of the flow. */
static void add_row(struct panel *flow, const struct panel *items, size_t first, size_t last)
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
        add(flow, &line);
    }
}

/* The end of the row that begins at item `first`, and its width. */
static size_t row_end(const struct panel *items, size_t first, size_t count, unsigned width_max,
                      unsigned *out_width)
{
    size_t last = first + 1;
    *out_width = items[first].width;
    while (last < count && *out_width + gap + items[last].width <= width_max)
        *out_width += gap + items[last++].width;
    return last;
}

struct panel panel_flow(struct panel *items, size_t count, unsigned width_max)
{
    struct panel flow = {0};
    unsigned width;
    for (size_t first = 0; first < count; first = row_end(items, first, count, width_max, &width)) {
        row_end(items, first, count, width_max, &width);
        flow.width = width > flow.width ? width : flow.width;
    }
    for (size_t first = 0, last; first < count; first = last) {
        last = row_end(items, first, count, width_max, &width);
        add_row(&flow, items, first, last);
    }
    for (size_t i = 0; i < count; i++) {
        flow.failed |= items[i].failed;
        panel_fini(&items[i]);
    }
    return flow;
}

void panel_print(const struct panel *panel, struct strbuf *out_text)
{
    for (size_t i = 0; i < panel->count; i++) {
        size_t length = strlen(panel->lines[i]);
        while (length && panel->lines[i][length - 1] == ' ')
            length--;
        strbuf_append(out_text, panel->lines[i], length);
        strbuf_puts(out_text, "\n");
    }
    out_text->failed |= panel->failed;
}

void panel_fini(struct panel *panel)
{
    for (size_t i = 0; i < panel->count; i++)
        free(panel->lines[i]);
    memset(panel, 0, sizeof *panel);
}
