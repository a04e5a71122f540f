/* Tables of a page. */
#include "markup/table.h"

#include <string.h>

#include "markup/html.h"

void table_open(struct strbuf *out, const char *class)
{
    strbuf_puts(out, "<div class=wide><table");
    if (class)
        strbuf_printf(out, strchr(class, ' ') ? " class=\"%s\"" : " class=%s", class);
    strbuf_puts(out, "><thead><tr>");
}

void table_heads(struct strbuf *out, const char *heads)
{
    while (*heads) {
        const bool number = *heads == '#';
        heads += number;
        const size_t length = strcspn(heads, "|");
        strbuf_puts(out, number ? "<th class=n>" : "<th>");
        strbuf_append(out, heads, length);
        heads += length + (heads[length] == '|');
    }
}

void table_heads_end(struct strbuf *out)
{
    strbuf_puts(out, "</thead><tbody>\n");
}

void table_begin(struct strbuf *out, const char *class, const char *heads)
{
    table_open(out, class);
    table_heads(out, heads);
    table_heads_end(out);
}

void table_row(struct strbuf *out)
{
    strbuf_puts(out, "<tr>");
}

void table_end(struct strbuf *out)
{
    strbuf_puts(out, "</tbody></table></div>\n");
}

void table_name(struct strbuf *out, const char *text)
{
    strbuf_puts(out, "<td>");
    html_text(out, text, HTML_NAME);
}

void table_mono(struct strbuf *out, const char *text)
{
    strbuf_puts(out, "<td class=mono>");
    html_text(out, text, HTML_NAME);
}

void table_sentence(struct strbuf *out, const char *text)
{
    strbuf_puts(out, "<td class=t>");
    html_text(out, text, HTML_SENTENCE);
}

void table_quantity(struct strbuf *out, double value, const char *unit)
{
    strbuf_puts(out, "<td class=n>");
    html_quantity(out, value, unit);
}

void table_count(struct strbuf *out, size_t count)
{
    strbuf_printf(out, "<td class=n>%zu", count);
}

void table_figure(struct strbuf *out, double value)
{
    strbuf_puts(out, "<td class=n>");
    html_figure(out, value);
}

void table_index(struct strbuf *out, int32_t index)
{
    if (index >= 0)
        strbuf_printf(out, "<td class=n>%d", (int)index);
    else
        strbuf_puts(out, "<td class=n>-");
}
