/* Text for people: foreign strings made harmless for a terminal, lines kept to a width. */
#ifndef GPUMEMTOPO_REPORT_TEXT_H
#define GPUMEMTOPO_REPORT_TEXT_H

#include "base/str.h"

enum { REPORT_WIDTH = 100 };

/* Appends `text` in at most `columns_max` columns. Control characters, direction overrides and
 * bytes that are not UTF-8 become '?'; what is cut off ends in "...". NULL becomes "-". */
void report_put_clean(struct strbuf *buffer, const char *text, unsigned columns_max);

/* The same, filled up with blanks to exactly `columns` columns. */
void report_put_column(struct strbuf *buffer, const char *text, unsigned columns);

/* Appends `text` (clean already) as lines of at most REPORT_WIDTH columns, broken at blanks. The
 * first one begins at column `first`, which the caller has filled already; the others are indented
 * by `indent`. Ends with a line break. */
void report_put_wrapped(struct strbuf *buffer, const char *text, unsigned first, unsigned indent);

/* A number with its unit as people say it: "205.1 KiB", "36.2 cycles"; "-" for NaN. */
void report_put_quantity(struct strbuf *buffer, double value, const char *unit);

#endif
