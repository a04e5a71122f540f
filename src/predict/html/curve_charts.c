/* Charts: hits over the size of L1 and L2, and how far apart the uses of a line are. */
#include <math.h>
#include <stdio.h>

#include "markup/chart.h"
#include "predict/html/sections.h"
#include "predict/quantity.h"

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
    chart.x =
        (struct chart_scale){line_bytes, fmax(fmax(last, own), 2 * line_bytes) * exp2(0.25), true};
    const double low = log2(chart.x.low), high = log2(chart.x.high);
    shares_begin(out, p, what);
    for (double at = ceil(low); at <= high; at += ceil((high - low) / TICKS_X_MAX)) {
        char text[QUANTITY_MAX];
        chart_x_tick(out, &chart, exp2(at), true, quantity_bytes(exp2(at), text));
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

void section_curves(struct strbuf *out, const struct section_kernel *kernel)
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
