/* gpumemtopo-report show: summary, drawing, comparison of two models attribute by attribute. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "markup/text.h"
#include "report/command.h"
#include "report/summary.h"

struct compare_side {
    const struct inventory *inventory;
    const struct inventory_model *model;
    const char *name; /* title of the column: the file */
};

struct compare_table {
    struct strbuf *out;
    const struct report_style *style;
    const struct compare_side *sides[2];
    unsigned first, column;
};

/* A cell as text, and as a number if it is one. */
struct compare_cell {
    struct strbuf text;
    double number;
};

enum better { BETTER_NEITHER, BETTER_HIGHER, BETTER_LOWER };

static bool compare_has_word(const char *metric, const char *word)
{
    return strstr(metric, word) != NULL;
}

static enum better compare_better_of(const char *metric)
{
    if (compare_has_word(metric, "latency") || compare_has_word(metric, "penalty"))
        return BETTER_LOWER;
    if (compare_has_word(metric, "bandwidth") || compare_has_word(metric, ".size") ||
        compare_has_word(metric, "clock.") || compare_has_word(metric, "memory_bytes") ||
        compare_has_word(metric, ".reach"))
        return BETTER_HIGHER;
    return BETTER_NEITHER;
}

static void compare_put_ratio(struct compare_table *t, double left, double right,
                              enum better better)
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
static void compare_put_row(struct compare_table *t, const char *name, struct compare_cell cells[2],
                            enum better better)
{
    text_put_column(t->out, name, t->first);
    strbuf_puts(t->out, " ");
    text_put_column(t->out, cells[0].text.data, t->column);
    strbuf_puts(t->out, " ");
    if (isfinite(cells[0].number) && isfinite(cells[1].number))
        text_put_column(t->out, cells[1].text.data, t->column);
    else
        text_put_clean(t->out, cells[1].text.data, t->column);
    compare_put_ratio(t, cells[0].number, cells[1].number, better);
    strbuf_puts(t->out, "\n");
    strbuf_fini(&cells[0].text);
    strbuf_fini(&cells[1].text);
}

static struct compare_cell compare_count_cell(double count)
{
    struct compare_cell cell = {.number = count};
    text_put_quantity(&cell.text, count, "");
    return cell;
}

static struct compare_cell compare_fact_cell(const struct fact *fact, const char *key)
{
    struct compare_cell cell = {.number = NAN};
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

/* A bound has no number, since a ratio of bounds means nothing. */
static struct compare_cell compare_measure_cell(const struct measure *m)
{
    struct compare_cell cell = {.number = NAN};
    if (!m)
        strbuf_puts(&cell.text, "-");
    else if (!measure_status_valued(m->status))
        strbuf_puts(&cell.text, measure_status_name(m->status));
    else if (m->kind == MEASURE_WORDS) {
        for (size_t i = 0; i < m->word_count; i++) {
            strbuf_puts(&cell.text, i ? "+" : "");
            text_put_clean(&cell.text, m->words[i], REPORT_WIDTH);
        }
        if (!m->word_count)
            strbuf_puts(&cell.text, "none");
    } else {
        bool exact = m->bound == MEASURE_EXACT;
        cell.number = exact ? m->value : NAN;
        strbuf_puts(&cell.text, exact ? "" : ">= ");
        text_put_quantity(&cell.text, m->value, m->unit);
        strbuf_puts(&cell.text, m->status == MEASURE_NOISY ? " (noisy)" : "");
    }
    return cell;
}

static void compare_put_facts(struct compare_table *t)
{
    const struct facts *left = &t->sides[0]->model->identity;
    const struct facts *right = &t->sides[1]->model->identity;
    for (int side = 0; side < 2; side++) {
        const struct facts *facts = side ? right : left;
        for (size_t i = 0; i < facts->count; i++) {
            const char *key = facts->items[i].key;
            if (side && facts_get(left, key))
                continue;
            struct compare_cell cells[2] = {compare_fact_cell(facts_get(left, key), key),
                                            compare_fact_cell(facts_get(right, key), key)};
            compare_put_row(t, key, cells, compare_better_of(key));
        }
    }
}

static struct compare_cell compare_ns_cell(const struct fact *ns)
{
    struct compare_cell cell = {.number = ns->kind == FACT_INT ? (double)ns->integer : ns->real};
    text_put_quantity(&cell.text, cell.number, "ns");
    return cell;
}

/* Cycles of different clocks cannot be compared, nanoseconds can. */
static void compare_put_ns(struct compare_table *t, const struct measure *a,
                           const struct measure *b)
{
    const struct fact *left = a ? facts_get(&a->notes, "ns") : NULL;
    const struct fact *right = b ? facts_get(&b->notes, "ns") : NULL;
    bool numbers = left && right && (left->kind == FACT_INT || left->kind == FACT_REAL) &&
                   (right->kind == FACT_INT || right->kind == FACT_REAL);
    if (!numbers)
        return;
    struct compare_cell cells[2] = {compare_ns_cell(left), compare_ns_cell(right)};
    compare_put_row(t, "  in time", cells, BETTER_LOWER);
}

static void compare_put_measures(struct compare_table *t)
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
            struct compare_cell cells[2] = {compare_measure_cell(a), compare_measure_cell(b)};
            if (a && b && !str_equal(a->unit, b->unit))
                cells[0].number = NAN;
            compare_put_row(t, metric, cells, compare_better_of(metric));
            compare_put_ns(t, a, b);
        }
    }
}

static void compare_put_heads(struct compare_table *t)
{
    struct compare_cell names[2] = {{.number = NAN}, {.number = NAN}};
    struct compare_cell files[2] = {{.number = NAN}, {.number = NAN}};
    for (int i = 0; i < 2; i++) {
        const struct inventory_model *model = t->sides[i]->model;
        text_put_clean(&names[i].text, model->name ? model->name : model->id, REPORT_WIDTH);
        text_put_clean(&files[i].text, t->sides[i]->name, REPORT_WIDTH);
    }
    report_begin_paint(t->out, t->style, REPORT_BOLD);
    compare_put_row(t, "", names, BETTER_NEITHER);
    report_end_paint(t->out, t->style);
    compare_put_row(t, "of", files, BETTER_NEITHER);
    struct compare_cell gpus[2] = {compare_count_cell(t->sides[0]->model->count),
                                   compare_count_cell(t->sides[1]->model->count)};
    compare_put_row(t, "GPUs measured", gpus, BETTER_NEITHER);
    struct compare_cell nodes[2] = {compare_count_cell(t->sides[0]->inventory->total_nodes),
                                    compare_count_cell(t->sides[1]->inventory->total_nodes)};
    compare_put_row(t, "nodes of the survey", nodes, BETTER_NEITHER);
}

static int show_read_style(const struct command_options *options, struct report_style *out_style)
{
    struct report_style style = report_style_for(STDOUT_FILENO);
    uint64_t width = style.width;
    const char *colour = options->colour ? options->colour : "auto";
    if (options->width && (str_parse_u64(options->width, &width) || width < REPORT_WIDTH_MIN ||
                           width > REPORT_WIDTH_MAX)) {
        log_error("--width is a number of columns from %d to %d, not \"%.40s\"", REPORT_WIDTH_MIN,
                  REPORT_WIDTH_MAX, options->width);
        return EXIT_BAD_INPUT;
    }
    style.width = (unsigned)width;
    if (strcmp(colour, "always") == 0)
        style.colour = true;
    else if (strcmp(colour, "never") == 0)
        style.colour = false;
    else if (strcmp(colour, "auto") != 0) {
        log_error("--color is auto, always or never, not \"%.40s\"", colour);
        return EXIT_BAD_INPUT;
    }
    *out_style = style;
    return EXIT_DONE;
}

/* Draws the model named by --model, or all. */
static int show_one(const struct command_options *options, const struct report_style *style,
                    struct strbuf *out)
{
    struct inventory inventory;
    int code = command_read_given(options, 0, &inventory);
    if (code)
        return code;
    if (!options->topology && !options->model) {
        if (options->all)
            report_summary_all(&inventory, style, out);
        else
            report_summary(&inventory, options->anonymous ? NULL : options->files[0], style, out);
    } else if (options->model) {
        const struct inventory_model *model =
            command_model(&inventory, options->model, options->files[0]);
        code = model ? EXIT_DONE : EXIT_BAD_INPUT;
        if (model)
            report_topology(model, style, out);
    } else {
        for (size_t i = 0; i < inventory.model_count; i++) {
            strbuf_puts(out, i ? "\n" : "");
            report_topology(&inventory.models[i], style, out);
        }
        if (!inventory.model_count)
            strbuf_puts(out, "no model to draw: no GPU was measured\n");
    }
    inventory_fini(&inventory);
    return code;
}

/* The models to compare: those named by --model; else the only model of each of two files; else the
 * two models of one file. */
static int show_choose(const struct command_options *options, const struct inventory *inventories,
                       struct compare_side sides[2])
{
    const char *comma = options->model ? strchr(options->model, ',') : NULL;
    char *first = comma ? str_copy_n(options->model, (size_t)(comma - options->model)) : NULL;
    const char *ids[2] = {comma ? first : options->model, comma ? comma + 1 : options->model};
    int code = EXIT_DONE;
    if (!options->model && options->file_count == 1 && inventories[0].model_count == 2) {
        ids[0] = inventories[0].models[0].id;
        ids[1] = inventories[0].models[1].id;
    }
    for (int i = 0; i < 2 && !code; i++) {
        int file = options->file_count == 2 ? i : 0;
        sides[i].inventory = &inventories[file];
        sides[i].name = options->anonymous ? (i ? "right" : "left") : options->files[file];
        sides[i].model = command_model(&inventories[file], ids[i], options->files[file]);
        code = sides[i].model ? EXIT_DONE : EXIT_BAD_INPUT;
    }
    free(first);
    return code;
}

static int show_compared(const struct command_options *options, const struct report_style *style,
                         struct strbuf *out)
{
    struct inventory inventories[2] = {0};
    struct compare_side sides[2];
    int code = EXIT_DONE;
    for (int i = 0; i < options->file_count && !code; i++)
        code = command_read_given(options, i, &inventories[i]);
    if (!code)
        code = show_choose(options, inventories, sides);
    if (!code) {
        /* A table with all attributes that either model has: both values, and right divided
         * by left if both are numbers of the same unit. */
        enum { FIRST_MAX = 24, COLUMN_MAX = 40, RATIO = 7 };
        struct compare_table t = {.out = out, .style = style, .sides = {&sides[0], &sides[1]}};
        t.first = style->width < 80 ? 16 : FIRST_MAX;
        t.column = (style->width - t.first - RATIO - 2) / 2;
        t.column = t.column < COLUMN_MAX ? t.column : COLUMN_MAX;
        compare_put_heads(&t);
        compare_put_facts(&t);
        compare_put_measures(&t);
        text_put_wrapped(out, "The last column is the right one over the left one.", 0, 0,
                         style->width);
    }
    inventory_fini(&inventories[0]);
    inventory_fini(&inventories[1]);
    return code;
}

int command_show(const struct command_options *options)
{
    struct report_style style;
    struct strbuf text = {0};
    int code = show_read_style(options, &style);
    if (!code)
        code = options->compare ? show_compared(options, &style, &text)
                                : show_one(options, &style, &text);
    if (!code)
        return command_write(&text, NULL);
    strbuf_fini(&text);
    return code;
}
