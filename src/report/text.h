/* Text for people: foreign strings made harmless for a terminal, lines kept to a width. */
#ifndef GPUMEMTOPO_REPORT_TEXT_H
#define GPUMEMTOPO_REPORT_TEXT_H

#include "base/str.h"

enum { REPORT_WIDTH = 100, REPORT_WIDTH_MIN = 40, REPORT_WIDTH_MAX = 400 };

/* How text is laid out for the one who reads it. */
struct report_style {
    unsigned width; /* columns */
    bool colour;
    bool boxes; /* the terminal shows box-drawing characters */
};

/* The style for a stream: a terminal's own width and colours (none with NO_COLOR or TERM=dumb),
 * REPORT_WIDTH columns otherwise; COLUMNS goes before both. */
struct report_style report_style_for(int fd);

/* Colour from here to report_end_paint; nothing where the style has none
 * or is NULL. */
enum report_paint { REPORT_BOLD, REPORT_RED, REPORT_GREEN, REPORT_DIM };
void report_begin_paint(struct strbuf *buffer, const struct report_style *style,
                        enum report_paint paint);
void report_end_paint(struct strbuf *buffer, const struct report_style *style);
void report_put_painted(struct strbuf *buffer, const struct report_style *style,
                        enum report_paint paint, const char *text);

/* Appends `text` in at most `columns_max` columns. Control characters, direction overrides and
 * bytes that are not UTF-8 become '?'; what is cut off ends in "...". NULL becomes "-". */
void report_put_clean(struct strbuf *buffer, const char *text, unsigned columns_max);

/* The same, filled up with blanks to exactly `columns` columns. */
void report_put_column(struct strbuf *buffer, const char *text, unsigned columns);

/* Columns that the text takes once clean, or more than `limit`. */
unsigned report_columns(const char *text, unsigned limit);

/* Appends `text` (clean already) as lines of at most `width` columns, broken at blanks. The
 * first one begins at column `first`, which the caller has filled already; the others are indented
 * by `indent`. Ends with a line break. */
void report_put_wrapped(struct strbuf *buffer, const char *text, unsigned first, unsigned indent,
                        unsigned width);

/* A number with its unit as people say it: "205.1 KiB", "36.2 cycles"; "-" for NaN. */
void report_put_quantity(struct strbuf *buffer, double value, const char *unit);

#endif
