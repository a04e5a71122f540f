/* Predictions as a page of its own, without scripts, and in the format that was asked for. */
#include "predict/prediction_page.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/portable_math.h"
#include "markup/chart.h"
#include "markup/html.h"
#include "predict/quantity.h"

/* Predictions of one kernel: each model as it is, followed by its changes. */
struct section_kernel {
    const struct prediction *predictions;
    size_t count, number;
};

/* The kernel at predictions[*at], which moves on to the next one. False: none is left. */
static bool section_next(const struct prediction *predictions, size_t count, size_t *at,
                         struct section_kernel *out_kernel)
{
    size_t first = *at;
    if (first == count)
        return false;
    while (*at < count && predictions[*at].program == predictions[first].program)
        ++*at;
    *out_kernel = (struct section_kernel){.predictions = &predictions[first],
                                          .count = *at - first,
                                          .number = predictions[first].program};
    return true;
}

/* True for a prediction that was made for the GPU as it is. */
static bool section_is_plain(const struct prediction *p)
{
    return !p->what_if && !p->reason[0];
}

/* The shortest bound of the kernel on any GPU as it is; NaN if there is none. */
static double section_shortest(const struct section_kernel *kernel)
{
    double shortest = NAN;
    for (size_t i = 0; i < kernel->count; i++)
        if (section_is_plain(&kernel->predictions[i]))
            shortest = fmin(shortest, kernel->predictions[i].bound.longest);
    return shortest;
}

/* The model's id; with its file if there are several inventories. */
static void section_model(struct strbuf *out, const struct prediction *p, bool with_file)
{
    html_text(out, p->model, HTML_NAME);
    if (!with_file)
        return;
    strbuf_puts(out, " <span class=dim>");
    html_text(out, p->inventory, HTML_NAME);
    strbuf_puts(out, "</span>");
}

static void put_cell(struct strbuf *out, const char *text)
{
    strbuf_printf(out, "<td class=n>%s", text);
}

static void put_compared(struct strbuf *out, double seconds, double shortest)
{
    if (seconds == shortest)
        strbuf_puts(out, "<b class=good>shortest</b>");
    else if (shortest > 0)
        strbuf_printf(out, "%.3g &times;", seconds / shortest);
    else
        strbuf_puts(out, "-");
}

static void put_model_row(struct strbuf *out, const struct prediction *p, double shortest,
                          bool with_file)
{
    const struct model_counts *c = &p->counts;
    uint64_t main_sectors = c->l2.main_reads + c->l2.main_writes;
    char text[QUANTITY_MAX];
    strbuf_puts(out, "<tr><th>");
    section_model(out, p, with_file);
    put_cell(out, quantity_percent(prediction_l1_hits(p), text));
    put_cell(out, quantity_percent(prediction_l2_hits(&c->l2), text));
    put_cell(out, quantity_percent(prediction_l2_hits(&c->l2_bypassed), text));
    put_cell(out, quantity_short(prediction_l1_transactions(p), "", text));
    put_cell(out, quantity_short((double)(c->l2.reads + c->l2.writes), "", text));
    put_cell(out, quantity_short((double)main_sectors, "", text));
    put_cell(out, quantity_short((double)(main_sectors * p->machine.config.l1.sector), "B", text));
    put_cell(out, quantity_seconds(p->bound.longest, text));
    strbuf_puts(out, "<td class=n>");
    put_compared(out, p->bound.longest, shortest);
    strbuf_printf(out, "<td>%s</tr>\n", bound_limit_name(p->bound.limit));
}

static void put_model_limits(struct strbuf *out, const struct section_kernel *kernel,
                             bool with_file)
{
    char text[QUANTITY_MAX];
    strbuf_puts(out, "<details class=limits><summary>The time that each limit allows</summary>"
                     "<div class=wide><table><thead><tr><th>Model");
    for (int i = 0; i < BOUND_LIMITS; i++)
        strbuf_printf(out, "<th class=n>%s", bound_limit_name((enum bound_limit)i));
    strbuf_puts(out, "</tr></thead>\n<tbody>");
    for (size_t i = 0; i < kernel->count; i++) {
        const struct prediction *p = &kernel->predictions[i];
        if (!section_is_plain(p))
            continue;
        strbuf_puts(out, "<tr><th>");
        section_model(out, p, with_file);
        for (int k = 0; k < BOUND_LIMITS; k++)
            put_cell(out, quantity_seconds(p->bound.seconds[k], text));
        strbuf_puts(out, "</tr>\n");
    }
    strbuf_puts(out, "</tbody></table></div></details>\n");
}

static bool has_plain(const struct section_kernel *kernel)
{
    for (size_t i = 0; i < kernel->count; i++)
        if (section_is_plain(&kernel->predictions[i]))
            return true;
    return false;
}

static void section_models(struct strbuf *out, const struct section_kernel *kernel, bool with_file)
{
    double shortest = section_shortest(kernel);
    if (!has_plain(kernel)) {
        strbuf_puts(out, "<p>Not predicted; see the <a href=#absent>reasons</a>.</p>\n");
        return;
    }
    strbuf_puts(out, "<h3>Models side by side</h3>\n<div class=wide><table class=models><thead><tr>"
                     "<th>Model<th class=n>L1 hits %<th class=n>L2 hits %"
                     "<th class=n>L2 hits %<br>without L1<th class=n>L1 trans-<br>actions"
                     "<th class=n>L2 trans-<br>actions<th class=n>main trans-<br>actions"
                     "<th class=n>main<br>bytes<th class=n>Time<br>at least<th class=n>Compared"
                     "<th>Limited by</tr></thead>\n<tbody>");
    for (size_t i = 0; i < kernel->count; i++)
        if (section_is_plain(&kernel->predictions[i]))
            put_model_row(out, &kernel->predictions[i], shortest, with_file);
    strbuf_puts(out, "</tbody></table></div>\n");
    put_model_limits(out, kernel, with_file);
}

/* The plain prediction of the same model for another kernel; NULL: not made. */
static const struct prediction *find_same(const struct section_kernel *kernel,
                                          const struct prediction *model)
{
    for (size_t i = 0; i < kernel->count; i++) {
        const struct prediction *p = &kernel->predictions[i];
        if (section_is_plain(p) && strcmp(p->model, model->model) == 0 &&
            strcmp(p->inventory, model->inventory) == 0)
            return p;
    }
    return NULL;
}

static void put_times(struct strbuf *out, const struct section_kernel *kernel,
                      const struct section_kernel *first)
{
    double shortest = section_shortest(kernel);
    char text[QUANTITY_MAX];
    strbuf_printf(out, "<tr><th><a href=#k%zu>", kernel->number);
    html_text(out, kernel->predictions->kernel, HTML_NAME);
    strbuf_puts(out, "</a>");
    for (size_t i = 0; i < first->count; i++) {
        if (first->predictions[i].what_if)
            continue;
        const struct prediction *p = find_same(kernel, &first->predictions[i]);
        strbuf_puts(out, "<td class=n>");
        if (!p) {
            strbuf_puts(out, "-");
            continue;
        }
        strbuf_printf(out, "%s<br>", quantity_seconds(p->bound.longest, text));
        put_compared(out, p->bound.longest, shortest);
    }
    strbuf_puts(out, "</tr>\n");
}

/* The geometric mean of a model's times, each compared with the shortest of its kernel. NaN: one is
 * missing, so that the mean could not be compared. */
static double mean_ratio(const struct prediction *predictions, size_t count,
                         const struct prediction *model)
{
    struct section_kernel kernel;
    double sum = 0;
    size_t kernels = 0;
    for (size_t at = 0; section_next(predictions, count, &at, &kernel);) {
        const struct prediction *p = find_same(&kernel, model);
        if (!has_plain(&kernel))
            continue; /* no model has it: the others can be compared without it */
        kernels++;
        sum += p ? portable_log(p->bound.longest / section_shortest(&kernel)) : NAN;
    }
    return portable_exp(sum / (double)kernels);
}

static void put_means(struct strbuf *out, const struct prediction *predictions, size_t count,
                      const struct section_kernel *first)
{
    strbuf_puts(out, "<tr class=mean><th>Geometric mean");
    for (size_t i = 0; i < first->count; i++) {
        if (first->predictions[i].what_if)
            continue;
        double ratio = mean_ratio(predictions, count, &first->predictions[i]);
        if (isfinite(ratio))
            strbuf_printf(out, "<td class=n>%.3g &times;", ratio);
        else
            strbuf_puts(out, "<td class=n>-");
    }
    strbuf_puts(out, "</tr>\n");
}

static void section_all_kernels(struct strbuf *out, const struct prediction *predictions,
                                size_t count, bool with_file)
{
    struct section_kernel kernel, first = {0};
    size_t at = 0, models = 0;
    section_next(predictions, count, &at, &first);
    for (size_t i = 0; i < first.count; i++)
        models += !first.predictions[i].what_if;
    if (models < 2 || first.count == count)
        return;
    strbuf_puts(out,
                "<section id=all><h2>All kernels</h2>\n<p class=dim>The shortest possible time "
                "of each kernel, and how many times the shortest of all models that is."
                "</p>\n<div class=wide><table class=times><thead><tr><th>Kernel");
    for (size_t i = 0; i < first.count; i++) {
        if (first.predictions[i].what_if)
            continue;
        strbuf_puts(out, "<th class=n>");
        section_model(out, &first.predictions[i], with_file);
    }
    strbuf_puts(out, "</tr></thead>\n<tbody>");
    for (at = 0; section_next(predictions, count, &at, &kernel);)
        put_times(out, &kernel, &first);
    put_means(out, predictions, count, &first);
    strbuf_puts(out, "</tbody></table></div></section>\n");
}

enum kind { SHARE, COUNT, BYTES, TIME };

/* A model as it is and its changes. */
struct columns {
    const struct prediction *items;
    size_t count;
};

static double page_value(const struct prediction *p, size_t row)
{
    const struct model_counts *c = &p->counts;
    uint64_t main_sectors = c->l2.main_reads + c->l2.main_writes;
    const double values[] = {
        prediction_l1_hits(p), prediction_l2_hits(&c->l2), (double)(c->l2.reads + c->l2.writes),
        (double)(main_sectors * p->machine.config.l1.sector), p->bound.longest};
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

static void put_change_row(struct strbuf *out, const struct columns *columns, size_t row)
{
    const struct prediction *plain = columns->items;
    char text[QUANTITY_MAX];
    strbuf_printf(out, "<tr><th>%s", rows[row].name);
    for (size_t i = 0; i < columns->count; i++) {
        const struct prediction *p = &columns->items[i];
        double value = p->reason[0] ? NAN : page_value(p, row);
        strbuf_printf(out, "<td class=n>%s", text_of(rows[row].kind, value, text));
        if (i && !p->reason[0] && !plain->reason[0])
            put_difference(out, rows[row].kind, page_value(plain, row), value);
    }
    strbuf_puts(out, "</tr>\n");
}

static void section_what_if(struct strbuf *out, const struct section_kernel *kernel, bool with_file)
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
        char text[WHAT_IF_TEXT_MAX];
        strbuf_puts(out,
                    "<div class=wide><table class=whatif><thead><tr><th><th class=n>as measured");
        for (size_t i = 1; i < columns.count; i++) {
            what_if_text(columns.items[i].what_if, text);
            strbuf_puts(out, "<th class=n>");
            html_text(out, text, HTML_NAME);
        }
        strbuf_puts(out, "</tr></thead>\n<tbody>");
        for (size_t row = 0; row < COUNT_OF(rows); row++)
            put_change_row(out, &columns, row);
        strbuf_puts(out, "<tr><th>Limited by");
        for (size_t i = 0; i < columns.count; i++)
            strbuf_printf(out, "<td class=n>%s",
                          columns.items[i].reason[0]
                              ? "not possible"
                              : bound_limit_name(columns.items[i].bound.limit));
        strbuf_puts(out, "</tr>\n</tbody></table></div>\n");
    }
}

enum { TICKS_X_MAX = 9, LABELS_MAX = 12 };

/* Shares from 0 to 1 upwards. */
static const struct chart share_chart = {.width = 720,
                                         .height = 280,
                                         .left = 56,
                                         .right = 700,
                                         .top = 56,
                                         .bottom = 232,
                                         .title_y = 20,
                                         .y = {0, 1}};

static void shares_begin(struct strbuf *out, const struct prediction *p, const char *what)
{
    char name[QUANTITY_MAX * 4];
    snprintf(name, sizeof name, "%.60s: %.60s", p->model, what);
    chart_begin(out, &share_chart, name, "");
    for (int k = 0; k <= 4; k++) {
        char label[16];
        snprintf(label, sizeof label, "%d %%", k * 25);
        chart_y_tick(out, &share_chart, k / 4.0, label);
    }
    chart_frame(out, &share_chart);
}

static void shares_end(struct strbuf *out, const char *axis)
{
    chart_x_title(out, &share_chart, 40, axis);
    chart_end(out);
}

/* The size that the cache has, and what the model found for it: a dot beside the curve means that
 * ways, policy or stores matter. */
static void hits_put_own(struct strbuf *out, const struct chart *chart,
                         const struct model_curve *curve, double own_bytes, double hits)
{
    char size[QUANTITY_MAX], here[QUANTITY_MAX], whole[QUANTITY_MAX];
    const double full = prediction_ratio(curve->own_hits, curve->accesses);
    chart_vertical(out, chart, own_bytes, "mark m0");
    if (!isnan(hits))
        strbuf_printf(out, "<circle class=\"dot\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>\n",
                      chart_x(chart, own_bytes), chart_y(chart, hits));
    strbuf_printf(out,
                  "<text class=\"own\" x=\"%d\" y=\"40\">its size %s: %s %% predicted, %s %% if "
                  "fully associative LRU</text>\n",
                  chart->left, quantity_bytes(own_bytes, size), quantity_percent(hits, here),
                  quantity_percent(full, whole));
}

/* Hits over the size, on a logarithmic axis. */
static void hits_put_chart(struct strbuf *out, const struct prediction *p, const char *what,
                           const struct model_curve *curve, uint64_t line, double hits)
{
    if (!curve->count || !curve->accesses)
        return;
    const double line_bytes = (double)line, own = (double)curve->own_lines * line_bytes;
    const double last = (double)curve->lines[curve->count - 1] * line_bytes;
    struct chart chart = share_chart;
    chart.x = (struct chart_scale){
        line_bytes, fmax(fmax(last, own), 2 * line_bytes) * portable_exp2(0.25), true};
    const double low = portable_log2(chart.x.low), high = portable_log2(chart.x.high);
    shares_begin(out, p, what);
    for (double at = ceil(low); at <= high; at += ceil((high - low) / TICKS_X_MAX)) {
        char text[QUANTITY_MAX];
        chart_x_tick(out, &chart, portable_exp2(at), true, quantity_bytes(portable_exp2(at), text));
    }
    chart_line_begin(out, "series s0");
    for (size_t i = 0; i < curve->count; i++)
        chart_line_point(out, &chart, (double)curve->lines[i] * line_bytes,
                         prediction_ratio(curve->hits[i], curve->accesses));
    chart_line_end(out);
    hits_put_own(out, &chart, curve, own, hits);
    shares_end(out, "size, if fully associative LRU");
}

static void distance_label(const struct prediction_distance *d, char text[QUANTITY_MAX])
{
    char from[QUANTITY_MAX];
    if (d->to < d->from)
        snprintf(text, QUANTITY_MAX, "new");
    else if (d->to == d->from)
        snprintf(text, QUANTITY_MAX, "%llu", (unsigned long long)d->from);
    else
        snprintf(text, QUANTITY_MAX, "%.20s+", quantity_short((double)d->from, "", from));
}

static void distances_put_chart(struct strbuf *out, const struct prediction *p, const char *what,
                                const struct model_curve *curve)
{
    struct prediction_distance all[PREDICTION_DISTANCES_MAX];
    const size_t count = prediction_distances(curve, all), every = 1 + count / (LABELS_MAX + 1);
    if (!count || !curve->accesses)
        return;
    struct chart chart = share_chart;
    chart.x = (struct chart_scale){0, (double)count, false};
    const double wide = chart_x(&chart, 1) - chart_x(&chart, 0);
    shares_begin(out, p, what);
    for (size_t i = 0; i < count; i++) {
        const double share = prediction_ratio(all[i].accesses, curve->accesses);
        const double y = chart_y(&chart, share);
        strbuf_printf(out,
                      "<rect class=\"dot\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
                      "height=\"%.1f\"><title>%llu</title></rect>\n",
                      chart_x(&chart, (double)i) + 1, y, wide - 2, chart.bottom - y,
                      (unsigned long long)all[i].accesses);
        if (i % every == 0 || i + 1 == count) {
            char text[QUANTITY_MAX];
            distance_label(&all[i], text);
            chart_x_tick(out, &chart, (double)i + 0.5, false, text);
        }
    }
    shares_end(out, "different lines between two uses; new: never used before, or farther");
}

static void section_curves(struct strbuf *out, const struct section_kernel *kernel)
{
    bool begun = false;
    for (size_t i = 0; i < kernel->count; i++) {
        const struct prediction *p = &kernel->predictions[i];
        const struct model_counts *c = &p->counts;
        if (!section_is_plain(p) || !c->l2_curve.count)
            continue;
        if (!begun)
            strbuf_puts(out, "<details class=reuse open><summary>Hits by size, and reuse distances"
                             "</summary><div class=curves>\n");
        begun = true;
        hits_put_chart(out, p, "L1 hits by size of L1", &c->l1_curve, p->machine.config.l1.line,
                       prediction_l1_hits(p));
        hits_put_chart(out, p, "L2 hits by size of L2", &c->l2_curve, p->machine.config.l2.line,
                       prediction_ratio(c->l2.read_hits, c->l2.reads));
        distances_put_chart(out, p, "reuse distances of L1", &c->l1_curve);
        distances_put_chart(out, p, "reuse distances of L2", &c->l2_curve);
    }
    strbuf_puts(out, begun ? "</div></details>\n" : "");
}

/* The first prediction of each model speaks for all. */
static bool is_first(const struct prediction *predictions, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (section_is_plain(&predictions[i]) &&
            strcmp(predictions[i].model, predictions[at].model) == 0 &&
            strcmp(predictions[i].inventory, predictions[at].inventory) == 0)
            return false;
    return section_is_plain(&predictions[at]);
}

static void section_assumed(struct strbuf *out, const struct prediction *predictions, size_t count,
                            bool with_file)
{
    strbuf_puts(out,
                "<section id=assumed><h2>What was assumed</h2>\n"
                "<p>Arithmetic is not modelled: a kernel takes at least the time that is shown, "
                "and may take longer. Figures are those that the survey measured, except:</p>\n"
                "<div class=wide><table><thead><tr><th>Model<th>Not in the inventory, assumed"
                "<th>Uncertain in the inventory</tr></thead>\n<tbody>");
    for (size_t i = 0; i < count; i++) {
        const struct machine *machine = &predictions[i].machine;
        if (!is_first(predictions, i))
            continue;
        strbuf_puts(out, "<tr><th>");
        section_model(out, &predictions[i], with_file);
        strbuf_puts(out, "<td class=t>");
        html_text(out, machine->assumed[0] ? machine->assumed : "nothing", MACHINE_NOTE_MAX);
        if (machine->config.no_l1)
            strbuf_printf(out, "; %s", prediction_no_l1);
        strbuf_puts(out, "<td class=t>");
        html_text(out, machine->uncertain[0] ? machine->uncertain : "nothing", MACHINE_NOTE_MAX);
        strbuf_puts(out, "</tr>\n");
    }
    strbuf_puts(out, "</tbody></table></div></section>\n");
}

static bool was_said(const struct prediction *predictions, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (strcmp(predictions[i].reason, predictions[at].reason) == 0)
            return true;
    return false;
}

static void section_absent(struct strbuf *out, const struct prediction *predictions, size_t count)
{
    bool begun = false;
    for (size_t i = 0; i < count; i++) {
        if (!predictions[i].reason[0] || was_said(predictions, i))
            continue;
        strbuf_puts(out, begun ? "" : "<section id=absent><h2>Not predicted</h2>\n<ul>");
        begun = true;
        strbuf_puts(out, "<li>");
        html_text(out, predictions[i].reason, ERR_TEXT_MAX);
        strbuf_puts(out, "</li>\n");
    }
    strbuf_puts(out, begun ? "</ul></section>\n" : "");
}

static const char title[] = "Predicted cache behaviour";

static void put_tile(struct strbuf *out, size_t count, const char *one, const char *many, bool bad)
{
    strbuf_printf(out, "<li><b%s>%zu</b>%s</li>", bad && count ? " class=bad" : "", count,
                  count == 1 ? one : many);
}

static void put_headline(struct strbuf *out, const struct prediction *predictions, size_t count)
{
    struct section_kernel kernel;
    size_t kernels = 0, models = 0, what_ifs = 0, absent = 0;
    for (size_t at = 0; section_next(predictions, count, &at, &kernel); kernels++) {
    }
    for (size_t i = 0; i < count; i++) {
        models += !predictions[i].program && !predictions[i].what_if;
        what_ifs += !predictions[i].program && predictions[i].what_if;
        absent += predictions[i].reason[0] != 0;
    }
    strbuf_printf(out, "<header><h1>%s</h1>\n<ul class=tiles>", title);
    put_tile(out, kernels, "kernel", "kernels", false);
    put_tile(out, models, "GPU model", "GPU models", false);
    if (what_ifs)
        put_tile(out, models ? what_ifs / models : 0, "change", "changes", false);
    put_tile(out, absent, "not predicted", "not predicted", true);
    strbuf_puts(out, "</ul>\n");
}

static void put_navigation(struct strbuf *out, const struct prediction *predictions, size_t count)
{
    struct section_kernel kernel;
    strbuf_puts(out, "<nav>");
    for (size_t at = 0; section_next(predictions, count, &at, &kernel);) {
        strbuf_printf(out, "<a href=#k%zu>", kernel.number);
        html_text(out, kernel.predictions->kernel, HTML_NAME);
        strbuf_puts(out, "</a>");
    }
    strbuf_puts(out, "<a href=#assumed>What was assumed</a></nav></header>\n<main>\n");
}

static void page_put_launch(struct strbuf *out, const struct prediction *p)
{
    char text[QUANTITY_MAX];
    strbuf_puts(out, "<p class=dim>");
    html_text(out, p->summary, HTML_SENTENCE);
    if (p->size)
        strbuf_printf(out, "; N = %llu", (unsigned long long)p->size);
    strbuf_printf(out, "; blocks of %u &times; %u threads", p->block_x, p->block_y);
    if (p->footprint_bytes)
        strbuf_printf(out, "; arrays of %s", quantity_bytes((double)p->footprint_bytes, text));
    strbuf_puts(out, "</p>\n");
}

static void put_kernel(struct strbuf *out, const struct section_kernel *kernel, bool with_file)
{
    strbuf_printf(out, "<section id=k%zu><h2>", kernel->number);
    html_text(out, kernel->predictions->kernel, HTML_NAME);
    strbuf_puts(out, "</h2>\n");
    page_put_launch(out, kernel->predictions);
    section_models(out, kernel, with_file);
    section_what_if(out, kernel, with_file);
    section_curves(out, kernel);
    strbuf_puts(out, "</section>\n");
}

void prediction_page(const struct prediction *predictions, size_t count, struct strbuf *out)
{
    struct section_kernel kernel;
    bool with_file = false;
    for (size_t i = 0; i < count; i++)
        with_file |= strcmp(predictions[i].inventory, predictions[0].inventory) != 0;
    html_page_begin(out, title, NULL);
    put_headline(out, predictions, count);
    put_navigation(out, predictions, count);
    section_absent(out, predictions, count);
    section_all_kernels(out, predictions, count, with_file);
    for (size_t at = 0; section_next(predictions, count, &at, &kernel);)
        put_kernel(out, &kernel, with_file);
    section_assumed(out, predictions, count, with_file);
    strbuf_puts(out, "</main>\n");
    html_page_end(out, NULL);
}

void prediction_print(const struct prediction *predictions, size_t count,
                      enum prediction_format format, struct strbuf *out_text)
{
    switch (format) {
    case PREDICTION_TABLE:
        prediction_put_table(predictions, count, out_text);
        break;
    case PREDICTION_YAML:
    case PREDICTION_JSON:
        prediction_put_data(predictions, count, format == PREDICTION_JSON, out_text);
        break;
    case PREDICTION_HTML:
        prediction_page(predictions, count, out_text);
        break;
    }
}
