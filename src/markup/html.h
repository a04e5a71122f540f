/* HTML: the frame of a self-contained page, escaped text and quantities. */
#ifndef GPUMEMTOPO_MARKUP_HTML_H
#define GPUMEMTOPO_MARKUP_HTML_H

#include "base/str.h"
#include "inventory/measure.h"

/* Head and the beginning of the body. The page needs no network and is styled for screen (light and
 * dark), phone and paper. title: plain text without markup. script_hash: of the only script that
 * may run, as "sha256-..."; NULL: none may. */
void html_page_begin(struct strbuf *out, const char *title, const char *script_hash);

/* script: NULL for none. */
void html_page_end(struct strbuf *out, const char *script);

/* Maximum columns of a name and of a sentence. */
enum { HTML_NAME = 80, HTML_SENTENCE = 600 };

/* Appends text, also for attributes: markup is escaped, control characters and direction overrides
 * become '?', a text longer than `columns` ends in "...". NULL becomes "-". */
void html_text(struct strbuf *out, const char *text, unsigned columns);

/* A sentence of three parts or more ("a; b; c") has a line for each. */
void html_parts(struct strbuf *out, const char *text);

/* "205.1 KiB", "-" for NaN. */
void html_quantity(struct strbuf *out, double value, const char *unit);

/* A number for a column with the unit in its head: five digits, no unit. */
void html_figure(struct strbuf *out, double value);

/* The value of a fact; "-" for NULL and for an unknown one. */
void html_fact(struct strbuf *out, const struct fact *fact);

/* "3 GPUs" */
void html_count(struct strbuf *out, size_t count, const char *one, const char *many);

#endif
