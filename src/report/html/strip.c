/* The distribution of a metric as a strip, with one GPU marked. */
#include <math.h>

#include "markup/chart.h"
#include "markup/html.h"
#include "report/html/sections.h"

enum { HEIGHT = 56, BINS = 54, TICKS_MAX = 64 };

/* A tick for each GPU; ticks at the same place are drawn once. */
static void strip_put_ticks(struct strbuf *out, const struct html_series *series,
                            const struct chart *chart)
{
    double last = -1;
    strbuf_puts(out, "<path class=\"all\" d=\"");
    for (size_t i = 0; i < series->count; i++) {
        double x = round(chart_x(chart, series->sorted[i]));
        if (x != last)
            strbuf_printf(out, "M%.0f %dv%d", x, chart->top + 6, chart->bottom - chart->top - 6);
        last = x;
    }
    strbuf_puts(out, "\"/>");
}

/* The square root keeps small bars visible beside large ones. */
static void strip_put_bars(struct strbuf *out, const struct html_series *series,
                           const struct chart *chart)
{
    size_t counts[BINS] = {0}, most = 1;
    for (size_t i = 0; i < series->count; i++) {
        double share = (series->sorted[i] - chart->x.low) / (chart->x.high - chart->x.low);
        size_t bin = (size_t)fmin(share * BINS, BINS - 1);
        most = ++counts[bin] > most ? counts[bin] : most;
    }
    strbuf_puts(out, "<path class=\"bars\" d=\"");
    for (size_t i = 0; i < BINS; i++) {
        double height = (chart->bottom - chart->top) * sqrt((double)counts[i] / (double)most);
        if (counts[i])
            strbuf_printf(out, "M%d %dv%.1fh5v%.1fz",
                          chart->left + (int)i * (chart->right - chart->left) / BINS, chart->bottom,
                          -fmax(height, 2), fmax(height, 2));
    }
    strbuf_puts(out, "\"/>");
}

static void strip_put_label(struct strbuf *out, double x, const char *anchor, double value,
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
    struct chart chart = {.width = 340,
                          .height = HEIGHT,
                          .left = 8,
                          .right = 332,
                          .top = 14,
                          .bottom = 38,
                          .x = {series->sorted[0], series->sorted[series->count - 1]}};
    chart_widen(&chart.x, mine);
    chart_widen(&chart.x, wanted);
    const double low = chart.x.low, high = chart.x.high;
    const bool flat = !(high > low);
    if (flat) {
        chart.x.low -= fabs(low) * 0.01 + 1;
        chart.x.high += fabs(high) * 0.01 + 1;
    }
    strbuf_printf(out,
                  "<svg class=\"strip\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" "
                  "role=\"img\"><title>%zu GPUs of the model</title><path class=\"axis\" "
                  "d=\"M%d %dH%d\"/>",
                  chart.width, chart.height, chart.width, chart.height, series->count, chart.left,
                  chart.bottom, chart.right);
    if (series->count > TICKS_MAX)
        strip_put_bars(out, series, &chart);
    else
        strip_put_ticks(out, series, &chart);
    if (isfinite(wanted))
        strbuf_printf(out, "<path class=\"want\" d=\"M%.1f %dV%d\"/>", chart_x(&chart, wanted),
                      chart.top - 4, chart.bottom + 3);
    if (isfinite(mine)) {
        const double x = chart_x(&chart, mine);
        strbuf_printf(out,
                      "<path class=\"here\" d=\"M%.1f %dV%d\"/>"
                      "<path class=\"mine\" d=\"M%.1f %dl-5 -9h10z\"/>",
                      x, chart.top, chart.bottom, x, chart.top);
    }
    if (flat)
        strip_put_label(out, (chart.left + chart.right) / 2.0, "middle", low, series->unit);
    else {
        strip_put_label(out, chart.left, "start", low, series->unit);
        strip_put_label(out, chart.right, "end", high, series->unit);
    }
    strbuf_puts(out, "</svg>");
}
