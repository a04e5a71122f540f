/* Tables of a page. Cells are not closed, as HTML allows: a page has many of them. */
#ifndef GPUMEMTOPO_MARKUP_TABLE_H
#define GPUMEMTOPO_MARKUP_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

/* Begins a table in a box that scrolls sideways. class: "sort filter" for one that readers can sort
 * and filter; NULL: none. heads: titles of the columns, separated by '|'; a column whose title
 * begins with '#' has numbers, which are flush right. A title is markup. */
void table_begin(struct strbuf *out, const char *class, const char *heads);

/* For a table of which the number of columns is known only later: the beginning of its head, a
 * title of a column, and the end of the head. */
void table_open(struct strbuf *out, const char *class);
void table_heads(struct strbuf *out, const char *heads);
void table_heads_end(struct strbuf *out);

/* The beginning of a row; the end of the table. */
void table_row(struct strbuf *out);
void table_end(struct strbuf *out);

/* Cells: a name, a name in fixed width, a sentence, a number with its unit, a count, a number for a
 * column with the unit in its head, an index ("-" if it is negative). */
void table_name(struct strbuf *out, const char *text);
void table_mono(struct strbuf *out, const char *text);
void table_sentence(struct strbuf *out, const char *text);
void table_quantity(struct strbuf *out, double value, const char *unit);
void table_count(struct strbuf *out, size_t count);
void table_figure(struct strbuf *out, double value);
void table_index(struct strbuf *out, int32_t index);

#endif
