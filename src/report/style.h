/* Width, colours and box characters of text for a terminal. */
#ifndef GPUMEMTOPO_REPORT_STYLE_H
#define GPUMEMTOPO_REPORT_STYLE_H

#include "base/str.h"

enum { REPORT_WIDTH = 100, REPORT_WIDTH_MIN = 40, REPORT_WIDTH_MAX = 400 };

struct report_style {
    unsigned width; /* columns */
    bool colour;
    bool boxes; /* the terminal shows box-drawing characters */
};

/* The style for a stream: width and colours of the terminal (no colours with NO_COLOR or
 * TERM=dumb); otherwise REPORT_WIDTH columns. COLUMNS overrides the width. */
struct report_style report_style_for(int fd);

/* Colours the text up to report_end_paint, unless the style has no colours or is NULL. */
enum report_paint { REPORT_BOLD, REPORT_RED, REPORT_GREEN, REPORT_DIM };
void report_begin_paint(struct strbuf *buffer, const struct report_style *style,
                        enum report_paint paint);
void report_end_paint(struct strbuf *buffer, const struct report_style *style);
void report_put_painted(struct strbuf *buffer, const struct report_style *style,
                        enum report_paint paint, const char *text);

#endif
