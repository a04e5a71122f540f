/* Predictions: shares, histograms and bounds of the time, and how they are written: a table for
 * people, YAML, JSON. */
#include "predict/prediction.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "markup/text.h"
#include "predict/quantity.h"

static double bound_seconds(uint64_t sectors, uint64_t sector_bytes, double gb_per_s)
{
    return (double)(sectors * sector_bytes) / (gb_per_s * 1e9);
}

/* A warp waits for each load as long as the farthest memory takes that it needs; the warps in
 * flight wait at the same time. */
static double bound_latency_seconds(const struct model_counts *counts,
                                    const struct machine_figures *f)
{
    double ns = (double)counts->waits_l1 * f->l1_latency +
                (double)counts->waits_l2 * f->l2_latency +
                (double)counts->waits_main * f->main_latency;
    return ns * 1e-9 / ((double)counts->warps_in_flight * counts->active_sms);
}

struct bound bound_of(const struct model_counts *counts, const struct machine *machine)
{
    const struct machine_figures *f = &machine->figures;
    uint64_t sector = machine->config.l1.sector;
    struct bound bound = {
        .seconds =
            {
                [BOUND_L1] = bound_seconds(counts->l1_reads, sector, f->l1_read),
                [BOUND_L2_READ] = bound_seconds(counts->l2.reads, sector, f->l2_read),
                [BOUND_L2_WRITE] = bound_seconds(counts->l2.writes, sector, f->l2_write),
                [BOUND_MAIN_READ] = bound_seconds(counts->l2.main_reads, sector, f->main_read),
                [BOUND_MAIN_WRITE] = bound_seconds(counts->l2.main_writes, sector, f->main_write),
                [BOUND_LATENCY] = bound_latency_seconds(counts, f),
            },
        .longest = NAN,
        .limit = BOUND_LIMITS};
    for (int i = 0; i < BOUND_LIMITS; i++) {
        if (isnan(bound.seconds[i]) || bound.seconds[i] <= bound.longest)
            continue;
        bound.longest = bound.seconds[i];
        bound.limit = (enum bound_limit)i;
    }
    return bound;
}

const char *bound_limit_name(enum bound_limit limit)
{
    static const char *const names[BOUND_LIMITS + 1] = {
        [BOUND_L1] = "l1_bandwidth",
        [BOUND_L2_READ] = "l2_read_bandwidth",
        [BOUND_L2_WRITE] = "l2_write_bandwidth",
        [BOUND_MAIN_READ] = "main_read_bandwidth",
        [BOUND_MAIN_WRITE] = "main_write_bandwidth",
        [BOUND_LATENCY] = "latency",
        [BOUND_LIMITS] = "unknown",
    };
    return names[limit];
}

const char prediction_no_l1[] =
    "global loads are not cached in L1, as the survey saw: all go to L2, and L1 has no figures";

double prediction_ratio(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : NAN;
}

double prediction_l1_hits(const struct prediction *p)
{
    return p->machine.config.no_l1 ? NAN
                                   : prediction_ratio(p->counts.l1_read_hits, p->counts.l1_reads);
}

double prediction_l1_transactions(const struct prediction *p)
{
    return p->machine.config.no_l1 ? NAN : (double)(p->counts.l1_reads + p->counts.l1_writes);
}

double prediction_l2_hits(const struct model_l2_counts *l2)
{
    return prediction_ratio(l2->read_hits + l2->write_hits, l2->reads + l2->writes);
}

size_t prediction_distances(const struct model_curve *curve,
                            struct prediction_distance out[PREDICTION_DISTANCES_MAX])
{
    uint64_t from = 0, hits = 0;
    size_t count = 0;
    for (size_t i = 0; i < curve->count; i++) {
        uint64_t lines = curve->lines[i];
        if (lines & (lines - 1) && i + 1 < curve->count)
            continue; /* between two powers of two */
        out[count++] = (struct prediction_distance){from, lines - 1, curve->hits[i] - hits};
        from = lines;
        hits = curve->hits[i];
    }
    if (count)
        out[count++] = (struct prediction_distance){from, 0, curve->accesses - hits};
    return count;
}

/* YAML and JSON differ in quotes, brackets and commas only; both come from the same calls. */
struct data_writer {
    struct strbuf *out;
    bool json;
    bool first; /* of the map or list being written */
};

static void put_key(struct data_writer *w, const char *key)
{
    strbuf_printf(w->out, "%s%s%s%s: ", w->first ? "" : ", ", w->json ? "\"" : "", key,
                  w->json ? "\"" : "");
    w->first = false;
}

static void put_number(struct data_writer *w, const char *key, double value)
{
    put_key(w, key);
    if (isnan(value) || isinf(value))
        strbuf_puts(w->out, "null");
    else
        strbuf_printf(w->out, "%.6g", value);
}

static void put_count(struct data_writer *w, const char *key, uint64_t value)
{
    put_key(w, key);
    strbuf_printf(w->out, "%llu", (unsigned long long)value);
}

/* Quoted in both formats: JSON's escapes are YAML's, too. */
static void data_put_quoted(struct data_writer *w, const char *text)
{
    strbuf_puts(w->out, "\"");
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            strbuf_printf(w->out, "\\%c", *text);
        else if ((unsigned char)*text < ' ' || *text == 0x7f)
            strbuf_printf(w->out, "\\u%04x", (unsigned char)*text);
        else
            strbuf_append(w->out, text, 1);
    }
    strbuf_puts(w->out, "\"");
}

static void put_text(struct data_writer *w, const char *key, const char *text)
{
    put_key(w, key);
    if (text)
        data_put_quoted(w, text);
    else
        strbuf_puts(w->out, "null");
}

/* A line of a prediction: "    l1: {" */
static void open_line(struct data_writer *w, const char *key, const char *bracket)
{
    strbuf_printf(w->out, "%s\n      %s%s%s: %s", w->json ? "," : "", w->json ? "\"" : "", key,
                  w->json ? "\"" : "", bracket);
    w->first = true;
}

static void put_l2(struct data_writer *w, const char *name, const struct model_l2_counts *l2,
                   uint64_t sector)
{
    open_line(w, name, "{");
    put_number(w, "hits", prediction_l2_hits(l2));
    put_number(w, "read_hits", prediction_ratio(l2->read_hits, l2->reads));
    put_count(w, "reads", l2->reads);
    put_count(w, "writes", l2->writes);
    put_count(w, "transactions", l2->reads + l2->writes);
    put_count(w, "bytes", (l2->reads + l2->writes) * sector);
    put_count(w, "main_reads", l2->main_reads);
    put_count(w, "main_writes", l2->main_writes);
    put_count(w, "main_bytes", (l2->main_reads + l2->main_writes) * sector);
    strbuf_puts(w->out, "}");
}

/* The steps of its partitions. */
static void put_l2_steps(struct data_writer *w, const struct model_counts *counts)
{
    open_line(w, "l2_parallel", "{");
    put_count(w, "steps", counts->l2_steps);
    put_count(w, "merges", counts->l2_merges);
    put_count(w, "reservation_fails", counts->l2_fails);
    strbuf_puts(w->out, "}");
}

/* 0: not known */
static void put_known(struct data_writer *w, const char *key, uint64_t value)
{
    if (value)
        put_count(w, key, value);
    else
        put_number(w, key, NAN);
}

static void data_put_launch(struct data_writer *w, const struct prediction *p)
{
    open_line(w, "launch", "{");
    put_known(w, "size", p->size);
    put_count(w, "block_x", p->block_x);
    put_count(w, "block_y", p->block_y);
    put_known(w, "footprint_bytes", p->footprint_bytes);
    put_count(w, "active_sms", p->counts.active_sms);
    put_count(w, "blocks_in_flight", p->counts.blocks_in_flight);
    put_count(w, "warps_in_flight", p->counts.warps_in_flight);
    strbuf_puts(w->out, "}");
}

static void put_l1(struct data_writer *w, const struct prediction *p)
{
    const struct model_counts *counts = &p->counts;
    uint64_t sector = p->machine.config.l1.sector;
    open_line(w, "l1", "{");
    const struct {
        const char *key;
        uint64_t value;
    } rows[] = {{"reads", counts->l1_reads},
                {"writes", counts->l1_writes},
                {"read_bytes", counts->l1_reads * sector},
                {"size_bytes", p->l1_bytes},
                {"sector_bytes", sector}};
    put_number(w, "read_hits", prediction_l1_hits(p));
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (p->machine.config.no_l1)
            put_number(w, rows[i].key, NAN);
        else
            put_count(w, rows[i].key, rows[i].value);
    if (p->machine.config.parallel.mshrs) {
        put_count(w, "steps", counts->steps);
        put_count(w, "merges", counts->merges);
        put_count(w, "reservation_fails", counts->fails);
    }
    strbuf_puts(w->out, "}");
}

static void put_bound(struct data_writer *w, const struct prediction *p)
{
    open_line(w, "bound", "{");
    put_number(w, "seconds", p->bound.longest);
    put_text(w, "limit", bound_limit_name(p->bound.limit));
    for (int i = 0; i < BOUND_LIMITS; i++)
        put_number(w, bound_limit_name((enum bound_limit)i), p->bound.seconds[i]);
    strbuf_puts(w->out, "}");
}

/* What a fully associative LRU cache of other sizes would hit. */
static void put_curve(struct data_writer *w, const char *name, const struct model_curve *curve,
                      uint64_t line)
{
    if (!curve->count)
        return;
    open_line(w, name, "[");
    for (size_t i = 0; i < curve->count; i++) {
        strbuf_puts(w->out, i ? ", {" : "{");
        w->first = true;
        put_count(w, "bytes", curve->lines[i] * line);
        put_number(w, "hits", prediction_ratio(curve->hits[i], curve->accesses));
        strbuf_puts(w->out, "}");
    }
    strbuf_puts(w->out, "]");
}

/* How often distances from `from` to `to` lines occurred; `to` null: farther, or never before. */
static void put_distance(struct data_writer *w, uint64_t from, uint64_t to, uint64_t accesses)
{
    strbuf_puts(w->out, from ? ", {" : "{");
    w->first = true;
    put_count(w, "from", from);
    put_key(w, "to");
    if (to >= from)
        strbuf_printf(w->out, "%llu", (unsigned long long)to);
    else
        strbuf_puts(w->out, "null");
    put_count(w, "accesses", accesses);
    strbuf_puts(w->out, "}");
}

static void put_distances(struct data_writer *w, const char *name, const struct model_curve *curve)
{
    struct prediction_distance distances[PREDICTION_DISTANCES_MAX];
    size_t count = prediction_distances(curve, distances);
    if (!count)
        return;
    open_line(w, name, "[");
    for (size_t i = 0; i < count; i++)
        put_distance(w, distances[i].from, distances[i].to, distances[i].accesses);
    strbuf_puts(w->out, "]");
}

/* The lines that say what a prediction, or its absence, is about. */
static void put_subject(struct data_writer *w, const struct prediction *p)
{
    char text[WHAT_IF_TEXT_MAX];
    strbuf_puts(w->out, w->json ? "    {" : "    - ");
    w->first = true;
    put_text(w, "kernel", p->kernel);
    open_line(w, "model", "");
    data_put_quoted(w, p->model);
    open_line(w, "inventory", "");
    data_put_quoted(w, p->inventory);
    open_line(w, "what_if", "");
    if (p->what_if) {
        what_if_text(p->what_if, text);
        data_put_quoted(w, text);
    } else {
        strbuf_puts(w->out, "null");
    }
}

static void put_prediction(struct data_writer *w, const struct prediction *p)
{
    const struct model_config *config = &p->machine.config;
    const uint64_t sector = config->l1.sector;
    put_subject(w, p);
    data_put_launch(w, p);
    put_l1(w, p);
    put_l2(w, "l2", &p->counts.l2, sector);
    if (config->l2_parallel.mshrs)
        put_l2_steps(w, &p->counts);
    put_l2(w, "l2_without_l1", &p->counts.l2_bypassed, sector);
    put_bound(w, p);
    put_curve(w, "l1_curve", &p->counts.l1_curve, config->l1.line);
    put_curve(w, "l2_curve", &p->counts.l2_curve, config->l2.line);
    put_distances(w, "l1_reuse_distances", &p->counts.l1_curve);
    put_distances(w, "l2_reuse_distances", &p->counts.l2_curve);
    open_line(w, "assumed", "");
    data_put_quoted(w, p->machine.assumed);
    open_line(w, "uncertain", "");
    data_put_quoted(w, p->machine.uncertain);
    strbuf_puts(w->out, w->json ? "}" : "");
}

static void put_absence(struct data_writer *w, const struct prediction *p)
{
    put_subject(w, p);
    open_line(w, "reason", "");
    data_put_quoted(w, p->reason);
    strbuf_puts(w->out, w->json ? "}" : "");
}

/* Those with a reason, or those without. */
static void data_put_list(struct data_writer *w, const char *key,
                          const struct prediction *predictions, size_t count, bool absent)
{
    bool any = false;
    strbuf_printf(w->out, w->json ? "  \"%s\": [" : "%s:", key);
    for (size_t i = 0; i < count; i++) {
        if ((predictions[i].reason[0] != 0) != absent)
            continue;
        strbuf_puts(w->out, w->json && any ? ",\n" : "\n");
        any = true;
        absent ? put_absence(w, &predictions[i]) : put_prediction(w, &predictions[i]);
    }
    strbuf_puts(w->out, w->json ? (any ? "\n  ]" : "]") : any ? "\n" : " []\n");
}

void prediction_put_data(const struct prediction *predictions, size_t count, bool json,
                         struct strbuf *out)
{
    struct data_writer w = {.out = out, .json = json};
    strbuf_puts(out, json ? "{\n" : "");
    data_put_list(&w, "predictions", predictions, count, false);
    strbuf_puts(out, json ? ",\n" : "");
    data_put_list(&w, "not_predicted", predictions, count, true);
    strbuf_puts(out, json ? "\n}\n" : "");
}

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

static void data_put_names(struct strbuf *out, const struct widths *widths, const char *kernel,
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
    data_put_names(out, widths, p->kernel, p->model, p->inventory);
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
    data_put_names(out, &widths, "kernel", "model", "inventory");
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
