/* The distribution of a metric as a strip, with one GPU marked. */
#include <math.h>

#include "markup/html_text.h"
#include "report/html/sections.h"

enum {
    WIDTH = 340,
    HEIGHT = 56,
    LEFT = 8,
    RIGHT = 332,
    TOP = 14,
    BASE = 38,
    BINS = 54,
    TICKS_MAX = 64
};

struct scale {
    double low, high;
};

static double x_of(const struct scale *scale, double value)
{
    return LEFT + (value - scale->low) / (scale->high - scale->low) * (RIGHT - LEFT);
}

static void widen(struct scale *scale, double value)
{
    if (!isfinite(value))
        return;
    scale->low = fmin(scale->low, value);
    scale->high = fmax(scale->high, value);
}

/* A tick for each GPU; ticks at the same place are drawn once. */
static void put_ticks(struct strbuf *out, const struct html_series *series,
                      const struct scale *scale)
{
    double last = -1;
    strbuf_puts(out, "<path class=\"all\" d=\"");
    for (size_t i = 0; i < series->count; i++) {
        double x = round(x_of(scale, series->sorted[i]));
        if (x != last)
            strbuf_printf(out, "M%.0f %dv%d", x, TOP + 6, BASE - TOP - 6);
        last = x;
    }
    strbuf_puts(out, "\"/>");
}

/* The square root keeps small bars visible beside large ones. */
static void put_bars(struct strbuf *out, const struct html_series *series,
                     const struct scale *scale)
{
    size_t counts[BINS] = {0}, most = 1;
    for (size_t i = 0; i < series->count; i++) {
        double share = (series->sorted[i] - scale->low) / (scale->high - scale->low);
        size_t bin = (size_t)fmin(share * BINS, BINS - 1);
        most = ++counts[bin] > most ? counts[bin] : most;
    }
    strbuf_puts(out, "<path class=\"bars\" d=\"");
    for (size_t i = 0; i < BINS; i++) {
        double height = (BASE - TOP) * sqrt((double)counts[i] / (double)most);
        if (counts[i])
            strbuf_printf(out, "M%d %dv%.1fh5v%.1fz", LEFT + (int)i * (RIGHT - LEFT) / BINS, BASE,
                          -fmax(height, 2), fmax(height, 2));
    }
    strbuf_puts(out, "\"/>");
}

static void put_label(struct strbuf *out, double x, const char *anchor, double value,
                      const char *unit)
{
    strbuf_printf(out, "<text x=\"%.0f\" y=\"%d\" text-anchor=\"%s\">", x, HEIGHT - 4, anchor);
    html_quantity(out, value, unit);
    strbuf_puts(out, "</text>");
}

void html_strip(struct strbuf *out, const struct html_series *series, double mine, double wanted)
{
    if (!series->count)
        return;
    struct scale scale = {series->sorted[0], series->sorted[series->count - 1]};
    double low = scale.low, high = scale.high;
    widen(&scale, mine);
    widen(&scale, wanted);
    low = scale.low;
    high = scale.high;
    bool flat = !(scale.high > scale.low);
    if (flat) {
        scale.low -= fabs(scale.low) * 0.01 + 1;
        scale.high += fabs(scale.high) * 0.01 + 1;
    }
    strbuf_printf(out,
                  "<svg class=\"strip\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" "
                  "role=\"img\"><title>%zu GPUs of the model</title><path class=\"axis\" "
                  "d=\"M%d %dH%d\"/>",
                  WIDTH, HEIGHT, WIDTH, HEIGHT, series->count, LEFT, BASE, RIGHT);
    if (series->count > TICKS_MAX)
        put_bars(out, series, &scale);
    else
        put_ticks(out, series, &scale);
    if (isfinite(wanted))
        strbuf_printf(out, "<path class=\"want\" d=\"M%.1f %dV%d\"/>", x_of(&scale, wanted),
                      TOP - 4, BASE + 3);
    if (isfinite(mine)) {
        double x = x_of(&scale, mine);
        strbuf_printf(out,
                      "<path class=\"here\" d=\"M%.1f %dV%d\"/>"
                      "<path class=\"mine\" d=\"M%.1f %dl-5 -9h10z\"/>",
                      x, TOP, BASE, x, TOP);
    }
    if (flat)
        put_label(out, (LEFT + RIGHT) / 2.0, "middle", low, series->unit);
    else {
        put_label(out, LEFT, "start", low, series->unit);
        put_label(out, RIGHT, "end", high, series->unit);
    }
    strbuf_puts(out, "</svg>");
}
