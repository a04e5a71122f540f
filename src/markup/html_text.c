/* Pieces of HTML. */
#include "markup/html_text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "markup/text.h"

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
