/* What-if: a column for each change, with the differences to the GPU as measured. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "markup/html_text.h"
#include "predict/html/sections.h"
#include "predict/quantity.h"

enum kind { SHARE, COUNT, BYTES, TIME };

/* A model as it is and its changes. */
struct columns {
    const struct prediction *items;
    size_t count;
};

static double value_of(const struct prediction *p, size_t row)
{
    const struct model_counts *c = &p->counts;
    uint64_t main = c->l2.main_reads + c->l2.main_writes;
    const double values[] = {prediction_l1_hits(p), prediction_l2_hits(&c->l2),
                             (double)(c->l2.reads + c->l2.writes),
                             (double)(main * p->machine.config.l1.sector), p->bound.longest};
    return values[row];
}

static const struct {
    const char *name;
    enum kind kind;
} rows[] = {
    {"L1 hits %", SHARE},  {"L2 hits %", SHARE},    {"L2 transactions", COUNT},
    {"main bytes", BYTES}, {"Time at least", TIME},
};

static const char *text_of(enum kind kind, double value, char text[QUANTITY_MAX])
{
    switch (kind) {
    case SHARE:
        return quantity_percent(value, text);
    case COUNT:
        return quantity_short(value, "", text);
    case BYTES:
        return quantity_short(value, "B", text);
    case TIME:
        return quantity_seconds(value, text);
    }
    return "-";
}

/* Points for shares, per cent for the rest. Coloured where less is better without doubt. */
static void put_difference(struct strbuf *out, enum kind kind, double before, double after)
{
    double change = 100 * (kind == SHARE ? after - before : after / before - 1);
    const char *word = kind == SHARE ? "points" : "%";
    if (!isfinite(change))
        return;
    if (fabs(change) < 0.05)
        strbuf_puts(out, "<br><span class=dim>same</span>");
    else
        strbuf_printf(out, "<br><span class=%s>%+.1f %s</span>",
                      kind != TIME ? "dim"
                      : change < 0 ? "good"
                                   : "bad",
                      change, word);
}

static void put_head(struct strbuf *out, const struct columns *columns)
{
    char text[WHAT_IF_TEXT_MAX];
    strbuf_puts(out, "<div class=wide><table class=whatif><thead><tr><th><th class=n>as measured");
    for (size_t i = 1; i < columns->count; i++) {
        what_if_text(columns->items[i].what_if, text);
        strbuf_puts(out, "<th class=n>");
        html_text(out, text, HTML_NAME);
    }
    strbuf_puts(out, "</tr></thead>\n<tbody>");
}

static void put_row(struct strbuf *out, const struct columns *columns, size_t row)
{
    const struct prediction *plain = columns->items;
    char text[QUANTITY_MAX];
    strbuf_printf(out, "<tr><th>%s", rows[row].name);
    for (size_t i = 0; i < columns->count; i++) {
        const struct prediction *p = &columns->items[i];
        double value = p->reason[0] ? NAN : value_of(p, row);
        strbuf_printf(out, "<td class=n>%s", text_of(rows[row].kind, value, text));
        if (i && !p->reason[0] && !plain->reason[0])
            put_difference(out, rows[row].kind, value_of(plain, row), value);
    }
    strbuf_puts(out, "</tr>\n");
}

static void put_limits(struct strbuf *out, const struct columns *columns)
{
    strbuf_puts(out, "<tr><th>Limited by");
    for (size_t i = 0; i < columns->count; i++)
        strbuf_printf(out, "<td class=n>%s",
                      columns->items[i].reason[0]
                          ? "not possible"
                          : bound_limit_name(columns->items[i].bound.limit));
    strbuf_puts(out, "</tr>\n</tbody></table></div>\n");
}

void section_what_if(struct strbuf *out, const struct section_kernel *kernel, bool with_file)
{
    bool begun = false;
    for (size_t at = 0; at < kernel->count;) {
        struct columns columns = {&kernel->predictions[at], 1};
        while (at + columns.count < kernel->count && columns.items[columns.count].what_if)
            columns.count++;
        at += columns.count;
        if (columns.count == 1)
            continue;
        strbuf_puts(out, begun ? "" : "<h3>What if</h3>\n");
        begun = true;
        strbuf_puts(out, "<p><b>");
        section_model(out, columns.items, with_file);
        strbuf_puts(out, "</b></p>\n");
        put_head(out, &columns);
        for (size_t row = 0; row < COUNT_OF(rows); row++)
            put_row(out, &columns, row);
        put_limits(out, &columns);
    }
}
