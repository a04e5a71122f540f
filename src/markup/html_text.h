/* Pieces of HTML: escaped text, quantities, small tables. */
#ifndef GPUMEMTOPO_MARKUP_HTML_TEXT_H
#define GPUMEMTOPO_MARKUP_HTML_TEXT_H

#include "base/str.h"
#include "inventory/measure.h"

/* Maximum columns of a name and of a sentence. */
enum { HTML_NAME = 80, HTML_SENTENCE = 400 };

/* Appends text, also for attributes: markup is escaped, control characters and direction overrides
 * become '?', a text longer than `columns` ends in "...". NULL becomes "-". */
void html_text(struct strbuf *out, const char *text, unsigned columns);

/* "205.1 KiB", "-" for NaN. */
void html_quantity(struct strbuf *out, double value, const char *unit);

/* A number for a column with the unit in its head: five digits, no unit. */
void html_figure(struct strbuf *out, double value);

/* The value of a fact; "-" for NULL and for an unknown one. */
void html_fact(struct strbuf *out, const struct fact *fact);

/* "3 GPUs" */
void html_count(struct strbuf *out, size_t count, const char *one, const char *many);

#endif
