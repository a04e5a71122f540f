/* Text for people: strings from outside are made safe for a terminal, lines are limited to a
 * width. */
#ifndef GPUMEMTOPO_MARKUP_TEXT_H
#define GPUMEMTOPO_MARKUP_TEXT_H

#include "base/str.h"

/* Appends `text` in at most `columns_max` columns. Control characters, direction overrides and
 * bytes that are not UTF-8 become '?'; a text that is cut ends in "...". NULL becomes "-". Returns
 * the columns used. */
unsigned text_put_clean(struct strbuf *buffer, const char *text, unsigned columns_max);

/* The same, without the columns. Three parts or more ("a; b; c") are lines of their own: a line
 * break stands where the blank was. */
void text_put_parts(struct strbuf *buffer, const char *text, unsigned columns_max);

/* Like text_put_clean, padded with blanks to exactly `columns` columns. */
void text_put_column(struct strbuf *buffer, const char *text, unsigned columns);

/* Columns of the cleaned text; if it has more than `limit`, any number above `limit`. */
unsigned text_columns(const char *text, unsigned limit);

/* Appends `text`, which must be clean, as lines of at most `width` columns, broken at blanks and at
 * the line breaks of text_put_parts. The
 * caller has already filled the first line up to column `first`; the others are indented by
 * `indent`. A blank at the start is kept unless the line breaks there. Ends with a line break. */
void text_put_wrapped(struct strbuf *buffer, const char *text, unsigned first, unsigned indent,
                      unsigned width);

/* A share as a percentage with one digit behind the point. What is left over is cut off, so that a
 * loss of 7.96 % is not shown as one of 8 %, which a policy treats otherwise. */
double text_percent(double share);

/* A number with a readable unit: "205.1 KiB", "36.2 cycles"; "-" for NaN. */
void text_put_quantity(struct strbuf *buffer, double value, const char *unit);

#endif
