/* Text for people: strings from outside are made safe for a terminal, lines are limited to a
 * width. */
#ifndef GPUMEMTOPO_REPORT_TEXT_H
#define GPUMEMTOPO_REPORT_TEXT_H

#include "base/str.h"

enum { REPORT_WIDTH = 100, REPORT_WIDTH_MIN = 40, REPORT_WIDTH_MAX = 400 };

/* Width, colours and box characters of the output. */
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

/* Appends `text` in at most `columns_max` columns. Control characters, direction overrides and
 * bytes that are not UTF-8 become '?'; a text that is cut ends in "...". NULL becomes "-". */
void report_put_clean(struct strbuf *buffer, const char *text, unsigned columns_max);

/* The same, padded with blanks to exactly `columns` columns. */
void report_put_column(struct strbuf *buffer, const char *text, unsigned columns);

/* Columns of the cleaned text; if it has more than `limit`, any number above `limit`. */
unsigned report_columns(const char *text, unsigned limit);

/* Appends `text`, which must be clean, as lines of at most `width` columns, broken at blanks. The
 * caller has already filled the first line up to column `first`; the others are indented by
 * `indent`. Ends with a line break. */
void report_put_wrapped(struct strbuf *buffer, const char *text, unsigned first, unsigned indent,
                        unsigned width);

/* A number with a readable unit: "205.1 KiB", "36.2 cycles"; "-" for NaN. */
void report_put_quantity(struct strbuf *buffer, double value, const char *unit);

#endif
