/* Writes predictions as a table for people. */
#include <stdio.h>
#include <string.h>

#include "markup/text.h"
#include "predict/prediction_formats.h"
#include "predict/quantity.h"

enum { NAME_COLUMNS_MAX = 40, SENTENCE_COLUMNS = 1000 };

/* Columns of names; 0: the column is left out. */
struct widths {
    unsigned kernel, model, inventory;
};

static void widen(unsigned *width, const char *text)
{
    unsigned columns = text_columns(text, NAME_COLUMNS_MAX);
    if (columns > *width)
        *width = columns < NAME_COLUMNS_MAX ? columns : NAME_COLUMNS_MAX;
}

static struct widths find_widths(const struct prediction *predictions, size_t count)
{
    struct widths widths = {.kernel = strlen("kernel"), .model = strlen("model")};
    bool several = false;
    for (size_t i = 0; i < count; i++) {
        widen(&widths.kernel, predictions[i].kernel);
        widen(&widths.model, predictions[i].model);
        widen(&widths.inventory, predictions[i].inventory);
        several |= !str_equal(predictions[i].inventory, predictions[0].inventory);
    }
    widths.inventory = several ? widths.inventory : 0;
    return widths;
}

static void put_names(struct strbuf *out, const struct widths *widths, const char *kernel,
                      const char *model, const char *inventory)
{
    text_put_column(out, kernel, widths->kernel);
    strbuf_puts(out, "  ");
    text_put_column(out, model, widths->model);
    if (!widths->inventory)
        return;
    strbuf_puts(out, "  ");
    text_put_column(out, inventory, widths->inventory);
}

static void put_row(const struct prediction *p, const struct widths *widths, struct strbuf *out)
{
    const struct model_counts *c = &p->counts;
    uint64_t fetched = c->l2.main_reads + c->l2.main_writes;
    char text[QUANTITY_MAX], changed[WHAT_IF_TEXT_MAX];
    put_names(out, widths, p->kernel, p->model, p->inventory);
    strbuf_printf(out, " %8s", quantity_percent(prediction_l1_hits(p), text));
    strbuf_printf(out, " %7s", quantity_percent(prediction_l2_hits(&c->l2), text));
    strbuf_printf(out, " %10s", quantity_percent(prediction_l2_hits(&c->l2_bypassed), text));
    strbuf_printf(out, " %6s", quantity_short(prediction_l1_transactions(p), "", text));
    strbuf_printf(out, " %6s", quantity_short((double)(c->l2.reads + c->l2.writes), "", text));
    strbuf_printf(out, " %7s", quantity_short((double)fetched, "", text));
    strbuf_printf(out, " %7s",
                  quantity_short((double)(fetched * p->machine.config.l1.sector), "B", text));
    strbuf_printf(out, " %7s", quantity_seconds(p->bound.longest, text));
    strbuf_printf(out, "  %s", bound_limit_name(p->bound.limit));
    if (p->what_if) {
        what_if_text(p->what_if, changed);
        strbuf_printf(out, "  (%s)", changed);
    }
    strbuf_puts(out, "\n");
}

static void put_note(struct strbuf *out, const char *what, const char *note)
{
    strbuf_printf(out, "%s: ", what);
    text_put_clean(out, note, SENTENCE_COLUMNS);
    strbuf_puts(out, "\n");
}

/* What was assumed of a model, once. */
static void put_assumed(const struct prediction *predictions, size_t at, struct strbuf *out)
{
    const struct prediction *p = &predictions[at];
    for (size_t i = 0; i < at; i++)
        if (!predictions[i].reason[0] && !predictions[i].what_if &&
            str_equal(p->model, predictions[i].model) &&
            str_equal(p->inventory, predictions[i].inventory))
            return;
    if (p->machine.config.no_l1) {
        text_put_clean(out, p->model, NAME_COLUMNS_MAX);
        strbuf_printf(out, ": %s\n", prediction_no_l1);
    }
    if (p->machine.assumed[0]) {
        text_put_clean(out, p->model, NAME_COLUMNS_MAX);
        put_note(out, ": not in the inventory, assumed", p->machine.assumed);
    }
    if (p->machine.uncertain[0]) {
        text_put_clean(out, p->model, NAME_COLUMNS_MAX);
        put_note(out, ": uncertain in the inventory", p->machine.uncertain);
    }
}

/* Why something is missing, once. */
static void put_reason(const struct prediction *predictions, size_t at, struct strbuf *out)
{
    for (size_t i = 0; i < at; i++)
        if (str_equal(predictions[i].reason, predictions[at].reason))
            return;
    put_note(out, "not predicted", predictions[at].reason);
}

void prediction_put_table(const struct prediction *predictions, size_t count, struct strbuf *out)
{
    struct widths widths = find_widths(predictions, count);
    put_names(out, &widths, "kernel", "model", "inventory");
    strbuf_printf(out, " %8s %7s %10s %6s %6s %7s %7s %7s  %s\n", "L1 hit%", "L2 hit%",
                  "L2% w/o L1", "L1 tx", "L2 tx", "main tx", "main", "time >=", "limited by");
    for (size_t i = 0; i < count; i++)
        if (!predictions[i].reason[0])
            put_row(&predictions[i], &widths, out);
    for (size_t i = 0; i < count; i++)
        if (!predictions[i].reason[0] && !predictions[i].what_if)
            put_assumed(predictions, i, out);
    for (size_t i = 0; i < count; i++)
        if (predictions[i].reason[0])
            put_reason(predictions, i, out);
}
