/* What a model does under sustained load: clock, power and temperatures over time. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "inventory/load_curve.h"
#include "markup/html_text.h"
#include "report/html/sections.h"

enum { WIDTH = 720, HEIGHT = 220, LEFT = 64, RIGHT = 690, TOP = 40, BOTTOM = 180 };

static double highest(const struct load_curve *curve, int column)
{
    double high = 0;
    for (size_t i = 0; i < curve->count; i++)
        high = fmax(high, curve->points[i][column]);
    return high;
}

static double y_of(double value, double top)
{
    return BOTTOM - value / top * (BOTTOM - TOP);
}

static void put_line(struct strbuf *out, const struct load_curve *curve, int column, double top,
                     const char *class)
{
    double end_s = curve->points[curve->count - 1][0];
    strbuf_printf(out, "<polyline class=\"%s\" fill=\"none\" points=\"", class);
    for (size_t i = 0; i < curve->count; i++)
        if (curve->points[i][column] > 0)
            strbuf_printf(out, "%.1f,%.1f ", LEFT + curve->points[i][0] / end_s * (RIGHT - LEFT),
                          y_of(curve->points[i][column], top));
    strbuf_puts(out, "\"/>\n");
}

static void put_axes(struct strbuf *out, double end_s, double top)
{
    for (int k = 0; k <= 4; k++) {
        double value = top * k / 4, y = y_of(value, top), x = LEFT + (RIGHT - LEFT) * k / 4.0;
        strbuf_printf(out, "<line class=\"grid\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>",
                      LEFT, y, RIGHT, y);
        strbuf_printf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.0f</text>", LEFT - 6,
                      y + 4, value);
        strbuf_printf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.3g s</text>\n", x,
                      BOTTOM + 18, end_s * k / 4);
    }
    strbuf_printf(out, "<rect class=\"frame\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n",
                  LEFT, TOP, RIGHT - LEFT, BOTTOM - TOP);
}

/* second: a further column in the same picture; 0: none. */
static void put_chart(struct strbuf *out, const struct load_curve *curve, const char *title,
                      int first, int second)
{
    double high = fmax(highest(curve, first), second ? highest(curve, second) : 0);
    if (high <= 0)
        return;
    double step = pow(10, floor(log10(high))), top = ceil(high * 1.02 / step * 5) * step / 5;
    strbuf_printf(out,
                  "<div class=wide><svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\" "
                  "width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" role=\"img\"><title>%s</title>"
                  "<text class=\"title\" x=\"%d\" y=\"26\">%s</text>\n",
                  WIDTH, HEIGHT, WIDTH, HEIGHT, title, LEFT, title);
    put_axes(out, curve->points[curve->count - 1][0], top);
    put_line(out, curve, first, top, "mark m1");
    if (second)
        put_line(out, curve, second, top, "mark m0");
    strbuf_puts(out, "</svg></div>\n");
}

static void put_charts(struct strbuf *out, const struct load_curve *curve)
{
    put_chart(out, curve, "SM clock under load (MHz)", LOAD_CURVE_MHZ, 0);
    put_chart(out, curve, "Power under load (W)", LOAD_CURVE_W, 0);
    put_chart(out, curve, "Temperature of GPU (dashed) and memory under load (C)", LOAD_CURVE_C,
              LOAD_CURVE_MEMORY_C);
}

void html_load(struct strbuf *out, const struct inventory_model *model)
{
    const struct measure *clock = measures_get(&model->memory, LOAD_CURVE_METRIC);
    const char *text = clock ? facts_text(&clock->notes, LOAD_CURVE_KEY) : NULL;
    struct load_curve curve;
    if (!text || !load_curve_read(text, &curve))
        return;
    strbuf_printf(out,
                  "<details class=load open><summary>Under sustained load%s</summary>"
                  "<div class=curves>\n",
                  model->count > 1 ? ": the GPU with the median clock" : "");
    put_charts(out, &curve);
    strbuf_puts(out, "</div></details>\n");
}

void html_gpu_load(struct strbuf *out, const struct inventory_gpu *gpu)
{
    const char *text = facts_text(&gpu->load, LOAD_CURVE_KEY);
    const char *throttle = facts_text(&gpu->load, "throttle");
    struct load_curve curve;
    if (!text || !load_curve_read(text, &curve))
        return;
    strbuf_puts(out, "<details class=load><summary>Under sustained load");
    if (throttle && *throttle) {
        strbuf_puts(out, ": ");
        html_text(out, throttle, HTML_NAME);
    }
    strbuf_puts(out, "</summary><div class=curves>\n");
    put_charts(out, &curve);
    strbuf_puts(out, "</div></details>\n");
}
