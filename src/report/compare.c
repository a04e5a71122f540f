/* Compares two models. */
#include "report/compare.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "markup/text.h"

struct table {
    struct strbuf *out;
    const struct report_style *style;
    const struct compare_side *sides[2];
    unsigned first, column;
};

/* A cell as text, and as a number if it is one. */
struct cell {
    struct strbuf text;
    double number;
};

enum better { BETTER_NEITHER, BETTER_HIGHER, BETTER_LOWER };

static bool has_word(const char *metric, const char *word)
{
    return strstr(metric, word) != NULL;
}

static enum better better_of(const char *metric)
{
    if (has_word(metric, "latency") || has_word(metric, "penalty"))
        return BETTER_LOWER;
    if (has_word(metric, "bandwidth") || has_word(metric, ".size") || has_word(metric, "clock.") ||
        has_word(metric, "memory_bytes") || has_word(metric, ".reach"))
        return BETTER_HIGHER;
    return BETTER_NEITHER;
}

static void put_ratio(struct table *t, double left, double right, enum better better)
{
    double ratio = right / left;
    if (!isfinite(ratio) || left == 0)
        return;
    bool same = fabs(ratio - 1) < 0.005 || better == BETTER_NEITHER;
    bool good = (ratio > 1) == (better == BETTER_HIGHER);
    if (!same)
        report_begin_paint(t->out, t->style, good ? REPORT_GREEN : REPORT_RED);
    strbuf_printf(t->out, " %.*f", ratio < 10 ? 2 : 0, ratio);
    if (!same)
        report_end_paint(t->out, t->style);
}

/* Takes ownership of both cells. */
static void put_row(struct table *t, const char *name, struct cell cells[2], enum better better)
{
    text_put_column(t->out, name, t->first);
    strbuf_puts(t->out, " ");
    text_put_column(t->out, cells[0].text.data, t->column);
    strbuf_puts(t->out, " ");
    if (isfinite(cells[0].number) && isfinite(cells[1].number))
        text_put_column(t->out, cells[1].text.data, t->column);
    else
        text_put_clean(t->out, cells[1].text.data, t->column);
    t->out->failed |= cells[0].text.failed || cells[1].text.failed;
    put_ratio(t, cells[0].number, cells[1].number, better);
    strbuf_puts(t->out, "\n");
    strbuf_fini(&cells[0].text);
    strbuf_fini(&cells[1].text);
}

static struct cell count_cell(double count)
{
    struct cell cell = {.number = count};
    text_put_quantity(&cell.text, count, "");
    return cell;
}

static struct cell fact_cell(const struct fact *fact, const char *key)
{
    struct cell cell = {.number = NAN};
    size_t length = strlen(key);
    bool bytes = length > 6 && strcmp(key + length - 6, "_bytes") == 0;
    if (!fact || fact->kind == FACT_UNKNOWN)
        strbuf_puts(&cell.text, "-");
    else if (fact->kind == FACT_TEXT)
        text_put_clean(&cell.text, fact->text, REPORT_WIDTH);
    else if (fact->kind == FACT_BOOL)
        strbuf_puts(&cell.text, fact->flag ? "yes" : "no");
    else {
        cell.number = fact->kind == FACT_INT ? (double)fact->integer : fact->real;
        text_put_quantity(&cell.text, cell.number, bytes ? "B" : "");
    }
    return cell;
}

static void put_words(struct strbuf *out, const struct measure *m)
{
    for (size_t i = 0; i < m->word_count; i++) {
        strbuf_puts(out, i ? "+" : "");
        text_put_clean(out, m->words[i], REPORT_WIDTH);
    }
    if (!m->word_count)
        strbuf_puts(out, "none");
}

/* A bound has no number, since a ratio of bounds means nothing. */
static struct cell measure_cell(const struct measure *m)
{
    struct cell cell = {.number = NAN};
    if (!m)
        strbuf_puts(&cell.text, "-");
    else if (!measure_status_valued(m->status))
        strbuf_puts(&cell.text, measure_status_name(m->status));
    else if (m->kind == MEASURE_WORDS)
        put_words(&cell.text, m);
    else {
        bool exact = m->bound == MEASURE_EXACT;
        cell.number = exact ? m->value : NAN;
        strbuf_puts(&cell.text, exact ? "" : ">= ");
        text_put_quantity(&cell.text, m->value, m->unit);
        strbuf_puts(&cell.text, m->status == MEASURE_NOISY ? " (noisy)" : "");
    }
    return cell;
}

static void put_facts(struct table *t)
{
    const struct facts *left = &t->sides[0]->model->identity;
    const struct facts *right = &t->sides[1]->model->identity;
    for (int side = 0; side < 2; side++) {
        const struct facts *facts = side ? right : left;
        for (size_t i = 0; i < facts->count; i++) {
            const char *key = facts->items[i].key;
            if (side && facts_get(left, key))
                continue;
            struct cell cells[2] = {fact_cell(facts_get(left, key), key),
                                    fact_cell(facts_get(right, key), key)};
            put_row(t, key, cells, better_of(key));
        }
    }
}

static struct cell ns_cell(const struct fact *ns)
{
    struct cell cell = {.number = ns->kind == FACT_INT ? (double)ns->integer : ns->real};
    text_put_quantity(&cell.text, cell.number, "ns");
    return cell;
}

/* Cycles of different clocks cannot be compared, nanoseconds can. */
static void put_ns(struct table *t, const struct measure *a, const struct measure *b)
{
    const struct fact *left = a ? facts_get(&a->notes, "ns") : NULL;
    const struct fact *right = b ? facts_get(&b->notes, "ns") : NULL;
    bool numbers = left && right && (left->kind == FACT_INT || left->kind == FACT_REAL) &&
                   (right->kind == FACT_INT || right->kind == FACT_REAL);
    if (!numbers)
        return;
    struct cell cells[2] = {ns_cell(left), ns_cell(right)};
    put_row(t, "  in time", cells, BETTER_LOWER);
}

static void put_measures(struct table *t)
{
    const struct measures *left = &t->sides[0]->model->memory;
    const struct measures *right = &t->sides[1]->model->memory;
    for (int side = 0; side < 2; side++) {
        const struct measures *measures = side ? right : left;
        for (size_t i = 0; i < measures->count; i++) {
            const char *metric = measures->items[i].metric;
            const struct measure *a = measures_get(left, metric), *b = measures_get(right, metric);
            if (side && a)
                continue;
            struct cell cells[2] = {measure_cell(a), measure_cell(b)};
            if (a && b && !str_equal(a->unit, b->unit))
                cells[0].number = NAN;
            put_row(t, metric, cells, better_of(metric));
            put_ns(t, a, b);
        }
    }
}

static void put_heads(struct table *t)
{
    struct cell names[2] = {{.number = NAN}, {.number = NAN}};
    struct cell files[2] = {{.number = NAN}, {.number = NAN}};
    for (int i = 0; i < 2; i++) {
        const struct inventory_model *model = t->sides[i]->model;
        text_put_clean(&names[i].text, model->name ? model->name : model->id, REPORT_WIDTH);
        text_put_clean(&files[i].text, t->sides[i]->name, REPORT_WIDTH);
    }
    report_begin_paint(t->out, t->style, REPORT_BOLD);
    put_row(t, "", names, BETTER_NEITHER);
    report_end_paint(t->out, t->style);
    put_row(t, "of", files, BETTER_NEITHER);
    struct cell gpus[2] = {count_cell(t->sides[0]->model->count),
                           count_cell(t->sides[1]->model->count)};
    put_row(t, "GPUs measured", gpus, BETTER_NEITHER);
    struct cell nodes[2] = {count_cell(t->sides[0]->inventory->total_nodes),
                            count_cell(t->sides[1]->inventory->total_nodes)};
    put_row(t, "nodes of the survey", nodes, BETTER_NEITHER);
}

void report_compare(const struct compare_side *left, const struct compare_side *right,
                    const struct report_style *style, struct strbuf *out_text)
{
    enum { FIRST_MAX = 24, COLUMN_MAX = 40, RATIO = 7 };
    struct table t = {.out = out_text, .style = style, .sides = {left, right}};
    t.first = style->width < 80 ? 16 : FIRST_MAX;
    t.column = (style->width - t.first - RATIO - 2) / 2;
    t.column = t.column < COLUMN_MAX ? t.column : COLUMN_MAX;
    put_heads(&t);
    put_facts(&t);
    put_measures(&t);
    text_put_wrapped(out_text, "The last column is the right one over the left one.", 0, 0,
                     style->width);
}
