/* What a model does under sustained load: clock, power and temperatures over time. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "report/html/markup.h"
#include "report/html/sections.h"

enum { POINTS_MAX = 200, COLUMNS = 5 };
enum { WIDTH = 720, HEIGHT = 220, LEFT = 64, RIGHT = 690, TOP = 40, BOTTOM = 180 };

struct points {
    double values[POINTS_MAX][COLUMNS]; /* seconds, MHz, W, C, C of the memory; 0: not known */
    size_t count;
};

/* Reads "s MHz W C C; 0.25 1980 690 45 50; ..."; false if the text is not that. */
static bool read_points(const char *text, struct points *out)
{
    out->count = 0;
    for (text = strchr(text, ';'); text && out->count < POINTS_MAX; text = strchr(text, ';')) {
        double *row = out->values[out->count++];
        text++;
        for (int c = 0; c < COLUMNS; c++) {
            char *end;
            row[c] = strtod(text, &end);
            if (end == text || !isfinite(row[c]) || row[c] < 0)
                return false;
            text = end;
        }
    }
    return !text && out->count > 1 && out->values[out->count - 1][0] > 0;
}

static double highest(const struct points *points, int column)
{
    double high = 0;
    for (size_t i = 0; i < points->count; i++)
        high = fmax(high, points->values[i][column]);
    return high;
}

static double y_of(double value, double top)
{
    return BOTTOM - value / top * (BOTTOM - TOP);
}

static void put_line(struct strbuf *out, const struct points *points, int column, double top,
                     const char *class)
{
    double end_s = points->values[points->count - 1][0];
    strbuf_printf(out, "<polyline class=\"%s\" fill=\"none\" points=\"", class);
    for (size_t i = 0; i < points->count; i++)
        if (points->values[i][column] > 0)
            strbuf_printf(out, "%.1f,%.1f ", LEFT + points->values[i][0] / end_s * (RIGHT - LEFT),
                          y_of(points->values[i][column], top));
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
static void put_chart(struct strbuf *out, const struct points *points, const char *title, int first,
                      int second)
{
    double high = fmax(highest(points, first), second ? highest(points, second) : 0);
    if (high <= 0)
        return;
    double step = pow(10, floor(log10(high))), top = ceil(high * 1.02 / step * 5) * step / 5;
    strbuf_printf(out,
                  "<div class=wide><svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\" "
                  "width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" role=\"img\"><title>%s</title>"
                  "<text class=\"title\" x=\"%d\" y=\"26\">%s</text>\n",
                  WIDTH, HEIGHT, WIDTH, HEIGHT, title, LEFT, title);
    put_axes(out, points->values[points->count - 1][0], top);
    put_line(out, points, first, top, "mark m1");
    if (second)
        put_line(out, points, second, top, "mark m0");
    strbuf_puts(out, "</svg></div>\n");
}

void html_load(struct strbuf *out, const struct inventory_model *model)
{
    const struct measure *clock = measures_get(&model->memory, "load.clock.steady");
    const char *text = clock ? facts_text(&clock->notes, "curve") : NULL;
    struct points points;
    if (!text || !read_points(text, &points))
        return;
    strbuf_printf(out,
                  "<details open><summary>Under sustained load%s</summary><div class=curves>\n",
                  model->count > 1 ? ": the GPU with the median clock" : "");
    put_chart(out, &points, "SM clock under load (MHz)", 1, 0);
    put_chart(out, &points, "Power under load (W)", 2, 0);
    put_chart(out, &points, "Temperature of GPU (dashed) and memory under load (C)", 3, 4);
    strbuf_puts(out, "</div></details>\n");
}
