/* HTML: the frame of a page, escaped text and quantities. */
#include "markup/html.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "markup/text.h"
#include "page_style.h"

/* The content security policy lets only the page's script run, even if a hostile name got past the
 * escaping. */
void html_page_begin(struct strbuf *out, const char *title, const char *script_hash)
{
    strbuf_puts(out, "<!doctype html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n"
                     "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; "
                     "style-src 'unsafe-inline'; ");
    if (script_hash)
        strbuf_printf(out, "script-src '%s'; ", script_hash);
    strbuf_puts(out, "base-uri 'none'; form-action 'none'\">\n"
                     "<meta name=viewport content=\"width=device-width, initial-scale=1\">\n");
    strbuf_printf(out, "<title>%s</title>\n<style>\n", title);
    strbuf_puts(out, page_style);
    strbuf_puts(out, "</style>\n</head>\n<body>\n");
}

void html_page_end(struct strbuf *out, const char *script)
{
    if (script) {
        strbuf_puts(out, "<script>");
        strbuf_puts(out, script);
        strbuf_puts(out, "</script>\n");
    }
    strbuf_puts(out, "</body>\n</html>\n");
}

static void html_put_escaped(struct strbuf *out, const char *text)
{
    while (*text) {
        size_t plain = strcspn(text, "&<>\"'");
        strbuf_append(out, text, plain);
        text += plain;
        if (*text)
            strbuf_printf(out, "&#%d;", *text++);
    }
}

void html_text(struct strbuf *out, const char *text, unsigned columns)
{
    struct strbuf clean = {0};
    text_put_clean(&clean, text, columns);
    if (clean.data)
        html_put_escaped(out, clean.data);
    strbuf_fini(&clean);
}

void html_parts(struct strbuf *out, const char *text)
{
    struct strbuf parts = {0};
    text_put_parts(&parts, text, HTML_SENTENCE);
    for (char *at = parts.data, *end; at; at = end ? end + 1 : NULL) {
        end = strchr(at, '\n');
        if (end)
            *end = 0;
        html_put_escaped(out, at);
        strbuf_puts(out, end ? "<br>" : "");
    }
    strbuf_fini(&parts);
}

void html_quantity(struct strbuf *out, double value, const char *unit)
{
    struct strbuf text = {0};
    text_put_quantity(&text, value, unit);
    if (text.data)
        html_put_escaped(out, text.data);
    strbuf_fini(&text);
}

void html_figure(struct strbuf *out, double value)
{
    if (!isfinite(value))
        strbuf_puts(out, "-");
    else if (fabs(value) >= 1e5 && fabs(value) < 1e15)
        strbuf_printf(out, "%.0f", value);
    else
        strbuf_printf(out, "%.5g", value);
}

void html_fact(struct strbuf *out, const struct fact *fact)
{
    switch (fact ? fact->kind : FACT_UNKNOWN) {
    case FACT_UNKNOWN:
        strbuf_puts(out, "-");
        break;
    case FACT_BOOL:
        strbuf_puts(out, fact->flag ? "yes" : "no");
        break;
    case FACT_INT:
        strbuf_printf(out, "%" PRId64, fact->integer);
        break;
    case FACT_REAL:
        html_figure(out, fact->real);
        break;
    case FACT_TEXT:
        html_text(out, fact->text, HTML_NAME);
        break;
    case FACT_NUMBERS:
        for (size_t i = 0; i < fact->count; i++) {
            strbuf_puts(out, i ? " " : "");
            html_figure(out, fact->numbers[i]);
        }
        break;
    case FACT_TEXTS:
        for (size_t i = 0; i < fact->count; i++) {
            strbuf_puts(out, i ? " " : "");
            html_text(out, fact->texts[i], HTML_NAME);
        }
    }
}

void html_count(struct strbuf *out, size_t count, const char *one, const char *many)
{
    strbuf_printf(out, "%zu %s", count, count == 1 ? one : many);
}
