/* Writes predictions as a table for people, as YAML and as JSON. */
#include "predict/prediction.h"

#include <math.h>
#include <stdio.h>

#include "base/mem.h"

static double ratio(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : NAN;
}

double prediction_l2_hits(const struct model_l2_counts *l2)
{
    return ratio(l2->read_hits + l2->write_hits, l2->reads + l2->writes);
}

/* YAML and JSON differ in quotes, brackets and commas only; both come from the same calls. */
struct writer {
    struct strbuf *out;
    bool json;
    bool first; /* of the map or list being written */
};

static void put_key(struct writer *w, const char *key)
{
    strbuf_printf(w->out, "%s%s%s%s: ", w->first ? "" : ", ", w->json ? "\"" : "", key,
                  w->json ? "\"" : "");
    w->first = false;
}

static void put_number(struct writer *w, const char *key, double value)
{
    put_key(w, key);
    if (isnan(value) || isinf(value))
        strbuf_puts(w->out, "null");
    else
        strbuf_printf(w->out, "%.6g", value);
}

static void put_count(struct writer *w, const char *key, uint64_t value)
{
    put_key(w, key);
    strbuf_printf(w->out, "%llu", (unsigned long long)value);
}

/* Quoted in both formats: JSON's escapes are YAML's, too. */
static void put_quoted(struct writer *w, const char *text)
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

static void put_text(struct writer *w, const char *key, const char *text)
{
    put_key(w, key);
    if (text)
        put_quoted(w, text);
    else
        strbuf_puts(w->out, "null");
}

/* A line of a prediction: "    l1: {" */
static void open_line(struct writer *w, const char *key, const char *bracket)
{
    strbuf_printf(w->out, "%s\n      %s%s%s: %s", w->json ? "," : "", w->json ? "\"" : "", key,
                  w->json ? "\"" : "", bracket);
    w->first = true;
}

static void put_l2(struct writer *w, const char *name, const struct model_l2_counts *l2,
                   uint64_t sector)
{
    open_line(w, name, "{");
    put_number(w, "hits", prediction_l2_hits(l2));
    put_number(w, "read_hits", ratio(l2->read_hits, l2->reads));
    put_count(w, "reads", l2->reads);
    put_count(w, "writes", l2->writes);
    put_count(w, "transactions", l2->reads + l2->writes);
    put_count(w, "bytes", (l2->reads + l2->writes) * sector);
    put_count(w, "main_reads", l2->main_reads);
    put_count(w, "main_writes", l2->main_writes);
    put_count(w, "main_bytes", (l2->main_reads + l2->main_writes) * sector);
    strbuf_puts(w->out, "}");
}

/* 0: not known */
static void put_known(struct writer *w, const char *key, uint64_t value)
{
    if (value)
        put_count(w, key, value);
    else
        put_number(w, key, NAN);
}

static void put_launch(struct writer *w, const struct prediction *p)
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

static void put_l1(struct writer *w, const struct prediction *p)
{
    const struct model_counts *counts = &p->counts;
    uint64_t sector = p->machine.config.l1.sector;
    open_line(w, "l1", "{");
    put_number(w, "read_hits", ratio(counts->l1_read_hits, counts->l1_reads));
    put_count(w, "reads", counts->l1_reads);
    put_count(w, "writes", counts->l1_writes);
    put_count(w, "read_bytes", counts->l1_reads * sector);
    put_count(w, "size_bytes", p->l1_bytes);
    put_count(w, "sector_bytes", sector);
    if (p->machine.config.parallel.mshrs) {
        put_count(w, "steps", counts->steps);
        put_count(w, "merges", counts->merges);
        put_count(w, "reservation_fails", counts->fails);
    }
    strbuf_puts(w->out, "}");
}

static void put_bound(struct writer *w, const struct prediction *p)
{
    open_line(w, "bound", "{");
    put_number(w, "seconds", p->bound.longest);
    put_text(w, "limit", bound_limit_name(p->bound.limit));
    for (int i = 0; i < BOUND_LIMITS; i++)
        put_number(w, bound_limit_name((enum bound_limit)i), p->bound.seconds[i]);
    strbuf_puts(w->out, "}");
}

/* What a fully associative LRU L1 of other sizes would hit. */
static void put_curve(struct writer *w, const struct prediction *p)
{
    const struct model_counts *counts = &p->counts;
    if (!counts->curve_count)
        return;
    open_line(w, "l1_curve", "[");
    for (size_t i = 0; i < counts->curve_count; i++) {
        strbuf_puts(w->out, i ? ", {" : "{");
        w->first = true;
        put_count(w, "bytes", counts->curve_lines[i] * p->machine.config.l1.line);
        put_number(w, "hits", ratio(counts->curve_hits[i], counts->curve_loads));
        strbuf_puts(w->out, "}");
    }
    strbuf_puts(w->out, "]");
}

static void put_prediction(struct writer *w, const struct prediction *p)
{
    uint64_t sector = p->machine.config.l1.sector;
    strbuf_puts(w->out, w->json ? "    {" : "    - ");
    w->first = true;
    put_key(w, "kernel");
    put_quoted(w, p->kernel);
    open_line(w, "model", "");
    put_quoted(w, p->model);
    open_line(w, "what_if", "");
    if (p->change)
        strbuf_printf(w->out, "\"%s=%s\"", p->change->key, p->change->value);
    else
        strbuf_puts(w->out, "null");
    put_launch(w, p);
    put_l1(w, p);
    put_l2(w, "l2", &p->counts.l2, sector);
    put_l2(w, "l2_without_l1", &p->counts.l2_bypassed, sector);
    put_bound(w, p);
    put_curve(w, p);
    open_line(w, "assumed", "");
    put_quoted(w, p->machine.assumed);
    strbuf_puts(w->out, w->json ? "}" : "\n");
}

static void print_data(const struct prediction *predictions, size_t count, bool json,
                       const char *file, struct strbuf *out)
{
    struct writer w = {.out = out, .json = json};
    strbuf_puts(out, json ? "{\n  \"inventory\": " : "inventory: ");
    put_quoted(&w, file);
    strbuf_puts(out, json ? ",\n  \"predictions\": [\n" : "\npredictions:\n");
    for (size_t i = 0; i < count; i++) {
        put_prediction(&w, &predictions[i]);
        strbuf_puts(out, !json ? "" : i + 1 < count ? ",\n" : "\n");
    }
    strbuf_puts(out, json ? "  ]\n}\n" : "");
}

/* "17.3M": three digits. */
static void put_short(struct strbuf *out, double value, const char *unit)
{
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P"};
    size_t at = 0;
    char text[32];
    while (value >= 999.5 && at + 1 < COUNT_OF(prefixes)) {
        value /= 1000;
        at++;
    }
    snprintf(text, sizeof text, "%.3g%s%s", value, prefixes[at], unit);
    strbuf_printf(out, " %8s", text);
}

static void put_percent(struct strbuf *out, double share)
{
    if (isnan(share))
        strbuf_printf(out, " %6s", "-");
    else
        strbuf_printf(out, " %6.1f", 100 * share);
}

static void put_seconds(struct strbuf *out, double seconds)
{
    static const struct {
        double unit;
        const char *name;
    } units[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}};
    size_t at = 0;
    char text[32];
    while (at + 1 < COUNT_OF(units) && seconds < units[at].unit)
        at++;
    snprintf(text, sizeof text, "%.3g %s", seconds / units[at].unit, units[at].name);
    strbuf_printf(out, " %8s", text);
}

static void put_row(const struct prediction *p, struct strbuf *out)
{
    const struct model_counts *c = &p->counts;
    uint64_t sector = p->machine.config.l1.sector, fetched = c->l2.main_reads + c->l2.main_writes;
    strbuf_printf(out, "%-11.11s %-16.16s", p->kernel, p->model);
    put_percent(out, ratio(c->l1_read_hits, c->l1_reads));
    put_percent(out, prediction_l2_hits(&c->l2));
    put_percent(out, prediction_l2_hits(&c->l2_bypassed));
    put_short(out, (double)(c->l1_reads + c->l1_writes), "");
    put_short(out, (double)(c->l2.reads + c->l2.writes), "");
    put_short(out, (double)fetched, "");
    put_short(out, (double)(fetched * sector), "B");
    put_seconds(out, p->bound.longest);
    strbuf_printf(out, "  %s", bound_limit_name(p->bound.limit));
    if (p->change)
        strbuf_printf(out, "  (%s=%s)", p->change->key, p->change->value);
    strbuf_puts(out, "\n");
}

static void print_table(const struct prediction *predictions, size_t count, struct strbuf *out)
{
    strbuf_printf(out, "%-11s %-16s %6s %6s %6s %8s %8s %8s %8s %8s  %s\n", "kernel", "model",
                  "L1 rd%", "L2 %", "no L1%", "L1 tx", "L2 tx", "main tx", "main",
                  "time >=", "limited by");
    for (size_t i = 0; i < count; i++)
        put_row(&predictions[i], out);
    for (size_t i = 0; i < count; i++) {
        const struct prediction *p = &predictions[i];
        bool told = false;
        for (size_t k = 0; k < i && !told; k++)
            told = str_equal(p->model, predictions[k].model);
        if (!told && p->machine.assumed[0])
            strbuf_printf(out, "%s: not in the inventory, assumed: %s\n", p->model,
                          p->machine.assumed);
    }
}

void prediction_print(const struct prediction *predictions, size_t count,
                      enum prediction_format format, const char *file, struct strbuf *out_text)
{
    if (format == PREDICTION_TABLE)
        print_table(predictions, count, out_text);
    else
        print_data(predictions, count, format == PREDICTION_JSON, file, out_text);
}
