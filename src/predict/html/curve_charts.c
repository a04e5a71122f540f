/* Charts: hits over the size of L1 and L2, and how far apart the uses of a line are. */
#include <math.h>
#include <stdio.h>

#include "markup/html_text.h"
#include "predict/html/sections.h"
#include "predict/quantity.h"

enum {
    WIDTH = 720,
    HEIGHT = 280,
    LEFT = 56,
    RIGHT = 700,
    TOP = 56,
    BOTTOM = 232,
    TICKS_X_MAX = 9,
    LABELS_MAX = 12
};

static double y_of(double share)
{
    return BOTTOM - share * (BOTTOM - TOP);
}

static void begin_chart(struct strbuf *out, const struct prediction *p, const char *what)
{
    char name[QUANTITY_MAX * 4];
    snprintf(name, sizeof name, "%.60s: %.60s", p->model, what);
    strbuf_printf(out,
                  "<div class=wide><svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\" "
                  "width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" role=\"img\"><title>",
                  WIDTH, HEIGHT, WIDTH, HEIGHT);
    html_text(out, name, HTML_NAME);
    strbuf_printf(out, "</title><text class=\"title\" x=\"%d\" y=\"20\">", LEFT);
    html_text(out, name, HTML_NAME);
    strbuf_puts(out, "</text>\n");
    for (int k = 0; k <= 4; k++) {
        double y = y_of(k / 4.0);
        strbuf_printf(out,
                      "<line class=\"grid\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>"
                      "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%d %%</text>\n",
                      LEFT, y, RIGHT, y, LEFT - 6, y + 4, k * 25);
    }
    strbuf_printf(out, "<rect class=\"frame\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n",
                  LEFT, TOP, RIGHT - LEFT, BOTTOM - TOP);
}

static void end_chart(struct strbuf *out, const char *axis)
{
    strbuf_printf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s</text>\n</svg></div>\n",
                  (LEFT + RIGHT) / 2, BOTTOM + 40, axis);
}

/* A curve with its logarithmic axis of sizes. */
struct plot {
    const struct model_curve *curve;
    double line; /* bytes */
    double low, high;
};

static double x_of(const struct plot *plot, double lines)
{
    double at = log2(lines * plot->line);
    return LEFT + (at - plot->low) / (plot->high - plot->low) * (RIGHT - LEFT);
}

static void put_sizes(struct strbuf *out, const struct plot *plot)
{
    double step = ceil((plot->high - plot->low) / TICKS_X_MAX);
    char text[QUANTITY_MAX];
    for (double at = ceil(plot->low); at <= plot->high; at += step) {
        double x = x_of(plot, exp2(at) / plot->line);
        strbuf_printf(out,
                      "<line class=\"grid\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\"/>"
                      "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
                      x, TOP, x, BOTTOM, x, BOTTOM + 18, quantity_bytes(exp2(at), text));
    }
}

/* The size that the cache has, and what the model found for it: a dot beside the curve means that
 * ways, policy or stores matter. */
static void put_own(struct strbuf *out, const struct plot *plot, double hits)
{
    const struct model_curve *curve = plot->curve;
    double x = x_of(plot, (double)curve->own_lines);
    char size[QUANTITY_MAX], here[QUANTITY_MAX], whole[QUANTITY_MAX];
    strbuf_printf(out, "<line class=\"mark m0\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\"/>\n", x,
                  TOP, x, BOTTOM);
    if (!isnan(hits))
        strbuf_printf(out, "<circle class=\"dot\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>\n", x,
                      y_of(hits));
    double full = prediction_ratio(curve->own_hits, curve->accesses);
    strbuf_printf(out,
                  "<text class=\"own\" x=\"%d\" y=\"40\">its size %s: %s %% predicted, %s %% if "
                  "fully associative LRU</text>\n",
                  LEFT, quantity_bytes((double)curve->own_lines * plot->line, size),
                  quantity_percent(hits, here), quantity_percent(full, whole));
}

static void put_curve(struct strbuf *out, const struct prediction *p, const char *what,
                      const struct model_curve *curve, uint64_t line, double hits)
{
    struct plot plot = {.curve = curve, .line = (double)line};
    if (!curve->count || !curve->accesses)
        return;
    double last = (double)curve->lines[curve->count - 1], own = (double)curve->own_lines;
    plot.low = log2(plot.line);
    plot.high = log2(fmax(fmax(last, own), 2) * plot.line) + 0.25;
    begin_chart(out, p, what);
    put_sizes(out, &plot);
    strbuf_puts(out, "<polyline class=\"series s0\" points=\"");
    for (size_t i = 0; i < curve->count; i++)
        strbuf_printf(out, "%s%.1f,%.1f", i ? " " : "", x_of(&plot, (double)curve->lines[i]),
                      y_of(prediction_ratio(curve->hits[i], curve->accesses)));
    strbuf_puts(out, "\"/>\n");
    put_own(out, &plot, hits);
    end_chart(out, "size, if fully associative LRU");
}

static void put_distance_label(struct strbuf *out, const struct prediction_distance *d, double x)
{
    char text[QUANTITY_MAX];
    strbuf_printf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">", x, BOTTOM + 18);
    if (d->to < d->from)
        strbuf_puts(out, "new");
    else if (d->to == d->from)
        strbuf_printf(out, "%llu", (unsigned long long)d->from);
    else
        strbuf_printf(out, "%s+", quantity_short((double)d->from, "", text));
    strbuf_puts(out, "</text>\n");
}

static void put_distances(struct strbuf *out, const struct prediction *p, const char *what,
                          const struct model_curve *curve)
{
    struct prediction_distance all[PREDICTION_DISTANCES_MAX];
    size_t count = prediction_distances(curve, all), every = 1 + count / (LABELS_MAX + 1);
    if (!count || !curve->accesses)
        return;
    double wide = (double)(RIGHT - LEFT) / (double)count;
    begin_chart(out, p, what);
    for (size_t i = 0; i < count; i++) {
        double share = prediction_ratio(all[i].accesses, curve->accesses);
        double x = LEFT + wide * (double)i;
        strbuf_printf(out,
                      "<rect class=\"dot\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
                      "height=\"%.1f\"><title>%llu</title></rect>\n",
                      x + 1, y_of(share), wide - 2, share * (BOTTOM - TOP),
                      (unsigned long long)all[i].accesses);
        if (i % every == 0 || i + 1 == count)
            put_distance_label(out, &all[i], x + wide / 2);
    }
    end_chart(out, "different lines between two uses; new: never used before, or farther");
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
        put_curve(out, p, "L1 hits by size of L1", &c->l1_curve, p->machine.config.l1.line,
                  prediction_l1_hits(p));
        put_curve(out, p, "L2 hits by size of L2", &c->l2_curve, p->machine.config.l2.line,
                  prediction_ratio(c->l2.read_hits, c->l2.reads));
        put_distances(out, p, "reuse distances of L1", &c->l1_curve);
        put_distances(out, p, "reuse distances of L2", &c->l2_curve);
    }
    strbuf_puts(out, begun ? "</div></details>\n" : "");
}
