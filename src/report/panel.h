/* Rectangles of text: framed, stacked, or side by side. */
#ifndef GPUMEMTOPO_REPORT_PANEL_H
#define GPUMEMTOPO_REPORT_PANEL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

enum { PANEL_LINES_MAX = 200 };

/* Every line is `width` columns wide. Zero-initialised is empty. */
struct panel {
    char *lines[PANEL_LINES_MAX];
    size_t count;
    unsigned width;
    bool failed; /* out of memory, or too many lines */
};

/* As wide as the longest text, at most width_max columns. */
struct panel panel_text(char *const *texts, size_t count, unsigned width_max);

/* Puts the content into a frame with a title, at least width_min columns wide; the content is
 * released. boxes: use box-drawing characters. */
struct panel panel_frame(const char *title, struct panel *content, unsigned width_min, bool boxes);

/* Puts as many items side by side as fit, then starts the next row; the items are released. */
struct panel panel_flow(struct panel *items, size_t count, unsigned width_max);

void panel_print(const struct panel *panel, struct strbuf *out_text);
void panel_fini(struct panel *panel);

#endif
