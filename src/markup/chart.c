/* Drawings as SVG. */
#include "markup/chart.h"

#include <math.h>

#include "base/portable_math.h"
#include "markup/html.h"

static double scale_share(const struct chart_scale *scale, double value)
{
    if (!(scale->high > scale->low))
        return 0;
    return scale->logarithmic
               ? portable_log(value / scale->low) / portable_log(scale->high / scale->low)
               : (value - scale->low) / (scale->high - scale->low);
}

double chart_x(const struct chart *chart, double value)
{
    return chart->left + scale_share(&chart->x, value) * (chart->right - chart->left);
}

double chart_y(const struct chart *chart, double value)
{
    return chart->bottom - scale_share(&chart->y, value) * (chart->bottom - chart->top);
}

void chart_widen(struct chart_scale *scale, double value)
{
    scale->low = fmin(scale->low, value);
    scale->high = fmax(scale->high, value);
}

double chart_round_end(double high)
{
    double power = high > 0 ? portable_pow(10, floor(portable_log10(high))) : 1;
    return fmax(ceil(high * 1.02 / power * 5) * power / 5, power);
}

double chart_decimal_step(double span, double ticks_max)
{
    static const double parts[] = {1, 2, 5, 10};
    double power = portable_pow(10, floor(portable_log10(span / ticks_max)));
    size_t i = 0;
    while (i < 3 && span / (parts[i] * power) > ticks_max)
        i++;
    return parts[i] * power;
}

double chart_binary_step(double span, double ticks_max)
{
    return portable_exp2(ceil(portable_log2(span / ticks_max)));
}

void chart_begin(struct strbuf *out, const struct chart *chart, const char *title,
                 const char *after)
{
    strbuf_printf(out,
                  "<div class=wide><svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\" "
                  "width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" role=\"img\"><title>",
                  chart->width, chart->height, chart->width, chart->height);
    html_text(out, title, HTML_NAME);
    strbuf_printf(out, "</title><text class=\"title\" x=\"%d\" y=\"%d\">", chart->left,
                  chart->title_y);
    html_text(out, title, HTML_NAME);
    strbuf_printf(out, "%s</text>\n", after);
}

void chart_end(struct strbuf *out)
{
    strbuf_puts(out, "</svg></div>\n");
}

void chart_frame(struct strbuf *out, const struct chart *chart)
{
    strbuf_printf(out, "<rect class=\"frame\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n",
                  chart->left, chart->top, chart->right - chart->left, chart->bottom - chart->top);
}

void chart_text(struct strbuf *out, double x, double y, const char *anchor, const char *class,
                const char *text)
{
    strbuf_puts(out, "<text");
    if (class)
        strbuf_printf(out, " class=\"%s\"", class);
    strbuf_printf(out, " x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    html_text(out, text, HTML_NAME);
    strbuf_puts(out, "</text>\n");
}

void chart_x_tick(struct strbuf *out, const struct chart *chart, double value, bool grid,
                  const char *label)
{
    if (grid)
        chart_vertical(out, chart, value, "grid");
    chart_text(out, chart_x(chart, value), chart->bottom + 18, "middle", NULL, label);
}

void chart_y_tick(struct strbuf *out, const struct chart *chart, double value, const char *label)
{
    chart_horizontal(out, chart, value, "grid");
    chart_text(out, chart->left - 6, chart_y(chart, value) + 4, "end", NULL, label);
}

void chart_x_title(struct strbuf *out, const struct chart *chart, int below, const char *title)
{
    chart_text(out, (chart->left + chart->right) / 2, chart->bottom + below, "middle", NULL, title);
}

void chart_vertical(struct strbuf *out, const struct chart *chart, double x, const char *class)
{
    const double at = chart_x(chart, x);
    strbuf_printf(out, "<line class=\"%s\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\"/>\n", class,
                  at, chart->top, at, chart->bottom);
}

void chart_horizontal(struct strbuf *out, const struct chart *chart, double y, const char *class)
{
    const double at = chart_y(chart, y);
    strbuf_printf(out, "<line class=\"%s\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>\n", class,
                  chart->left, at, chart->right, at);
}

void chart_line_begin(struct strbuf *out, const char *class)
{
    strbuf_printf(out, "<polyline class=\"%s\" fill=\"none\" points=\"", class);
}

void chart_line_point(struct strbuf *out, const struct chart *chart, double x, double y)
{
    strbuf_printf(out, "%.1f,%.1f ", chart_x(chart, x), chart_y(chart, y));
}

void chart_line_end(struct strbuf *out)
{
    strbuf_puts(out, "\"/>\n");
}
