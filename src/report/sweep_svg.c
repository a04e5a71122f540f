/* Draws a plot as SVG, in light or dark colours. */
#include "report/sweep_chart.h"

#include <math.h>
#include <stdio.h>

#include "markup/html_text.h"

static const double KIB = 1024, MIB = 1024 * 1024;

/* Sizes of the picture, and of the frame in it. */
enum {
    WIDTH = 720,
    HEIGHT = 400,
    LEFT = 64,
    RIGHT = 620,
    TOP = 104,
    BOTTOM = 344,
    LEGEND_TOP = 48,
    LEGEND_LINE = 18,
    LABEL_HEIGHT = 14,
    TICKS_X_MAX = 9,
    TICKS_Y_MAX = 7,
};

/* Each colour is given twice, because simple renderers do not support CSS variables. */
static const char STYLE[] =
    "<style>\n"
    "svg { font: 13px sans-serif } .title { font-size: 15px }\n"
    ".ground { fill: #ffffff } text { fill: #1f2328 } .grid { stroke: #d8dee4 }\n"
    ".frame { fill: none; stroke: #1f2328 }\n"
    ".level { stroke: #1f2328; stroke-dasharray: 2 3 }\n"
    ".curve { fill: none; stroke: #0550ae; stroke-opacity: 0.5 } .dot { fill: #0550ae }\n"
    ".mark { stroke-width: 2 } .m0 { stroke: #cf222e }\n"
    ".m1 { stroke: #1a7f37; stroke-dasharray: 7 4 }\n"
    ".m2 { stroke: #8250df; stroke-dasharray: 2 3 }\n"
    "@media (prefers-color-scheme: dark) {\n"
    ".ground { fill: #0d1117 } text { fill: #e6edf3 } .grid { stroke: #30363d }\n"
    ".frame, .level { stroke: #e6edf3 } .curve { stroke: #79c0ff } .dot { fill: #79c0ff }\n"
    ".m0 { stroke: #ff7b72 } .m1 { stroke: #56d364 } .m2 { stroke: #d2a8ff }\n"
    "}\n"
    "</style>\n";

/* The axes: sizes in `unit`; cycles from 0. */
struct axes {
    double low, high, unit, top;
};

void sweep_chart_format_bytes(char text[SWEEP_CHART_TEXT_MAX], double bytes)
{
    if (bytes >= MIB)
        snprintf(text, SWEEP_CHART_TEXT_MAX, "%.2f MiB", bytes / MIB);
    else
        snprintf(text, SWEEP_CHART_TEXT_MAX, "%.2f KiB", bytes / KIB);
}

static double x_of(const struct axes *axes, double bytes)
{
    return LEFT + (bytes - axes->low) / (axes->high - axes->low) * (RIGHT - LEFT);
}

static double y_of(const struct axes *axes, double cycles)
{
    return BOTTOM - cycles / axes->top * (BOTTOM - TOP);
}

/* The smallest step that gives few enough ticks: for sizes a power of two, otherwise 1, 2 or 5
 * times a power of ten. */
static double binary_step(double span)
{
    return exp2(ceil(log2(span / TICKS_X_MAX)));
}

static double decimal_step(double span)
{
    static const double parts[] = {1, 2, 5, 10};
    double power = pow(10, floor(log10(span / TICKS_Y_MAX)));
    size_t i = 0;
    while (i < 3 && span / (parts[i] * power) > TICKS_Y_MAX)
        i++;
    return parts[i] * power;
}

static struct axes make_axes(const struct sweep_chart *plot)
{
    const struct curve_point *first = plot->curve.points, *last = first + plot->curve.count - 1;
    double margin = 0.02 * (last->bytes - first->bytes);
    struct axes axes = {.low = first->bytes - margin, .high = last->bytes + margin, .top = 0};
    for (size_t i = 0; i < plot->curve.count; i++)
        axes.top = fmax(axes.top, plot->curve.points[i].cycles);
    for (size_t i = 0; i < plot->level_count; i++)
        axes.top = fmax(axes.top, plot->levels[i].cycles);
    axes.top *= 1.08;
    axes.unit = axes.high >= MIB ? MIB : KIB;
    return axes;
}

static void write_axes(struct strbuf *out, const struct axes *axes)
{
    double step = binary_step((axes->high - axes->low) / axes->unit) * axes->unit;
    for (double at = ceil(axes->low / step) * step; at <= axes->high; at += step) {
        double x = x_of(axes, at);
        strbuf_printf(out, "<line class=\"grid\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\"/>\n",
                      x, TOP, x, BOTTOM);
        strbuf_printf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%g</text>\n", x,
                      BOTTOM + 18, at / axes->unit);
    }
    step = decimal_step(axes->top);
    for (double at = 0; at <= axes->top; at += step) {
        double y = y_of(axes, at);
        strbuf_printf(out, "<line class=\"grid\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>\n",
                      LEFT, y, RIGHT, y);
        strbuf_printf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n", LEFT - 6,
                      y + 4, at);
    }
    strbuf_printf(out, "<rect class=\"frame\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n",
                  LEFT, TOP, RIGHT - LEFT, BOTTOM - TOP);
    strbuf_printf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">array size (%s)</text>\n",
                  (LEFT + RIGHT) / 2, BOTTOM + 42, axes->unit == MIB ? "MiB" : "KiB");
    strbuf_printf(out,
                  "<text transform=\"translate(18 %d) rotate(-90)\" text-anchor=\"middle\">"
                  "mean latency (cycles)</text>\n",
                  (TOP + BOTTOM) / 2);
}

/* Labels are to the right of the frame, moved up if they would overlap. */
static void write_levels(struct strbuf *out, const struct sweep_chart *plot,
                         const struct axes *axes)
{
    double free_below = INFINITY;
    for (size_t i = 0; i < plot->level_count; i++) {
        const struct sweep_chart_level *level = &plot->levels[i];
        double y = y_of(axes, level->cycles), label = fmin(y, free_below);
        strbuf_printf(out, "<line class=\"level\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>\n",
                      LEFT, y, RIGHT, y);
        strbuf_printf(out, "<text x=\"%d\" y=\"%.1f\">%s %.1f</text>\n", RIGHT + 6, label + 4,
                      level->label, level->cycles);
        free_below = label - LABEL_HEIGHT;
    }
}

static void write_marks(struct strbuf *out, const struct sweep_chart *plot, const struct axes *axes)
{
    for (size_t i = 0; i < plot->mark_count; i++) {
        double x = x_of(axes, plot->marks[i].bytes);
        int y = LEGEND_TOP + (int)i * LEGEND_LINE;
        strbuf_printf(out,
                      "<line class=\"mark m%zu\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\"/>\n",
                      i, x, TOP, x, BOTTOM);
        strbuf_printf(out, "<line class=\"mark m%zu\" x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\"/>\n",
                      i, LEFT, y, LEFT + 30, y);
        strbuf_printf(out, "<text x=\"%d\" y=\"%d\">%s</text>\n", LEFT + 38, y + 4,
                      plot->marks[i].label);
    }
}

static void write_curve(struct strbuf *out, const struct sweep_chart *plot, const struct axes *axes)
{
    strbuf_printf(out, "<polyline class=\"curve\" points=\"");
    for (size_t i = 0; i < plot->curve.count; i++)
        strbuf_printf(out, "%s%.1f,%.1f", i ? " " : "", x_of(axes, plot->curve.points[i].bytes),
                      y_of(axes, plot->curve.points[i].cycles));
    strbuf_printf(out, "\"/>\n");
    for (size_t i = 0; i < plot->curve.count; i++)
        strbuf_printf(out, "<circle class=\"dot\" cx=\"%.1f\" cy=\"%.1f\" r=\"2.2\"/>\n",
                      x_of(axes, plot->curve.points[i].bytes),
                      y_of(axes, plot->curve.points[i].cycles));
}

void sweep_chart_put_svg(struct strbuf *out, const struct sweep_chart *plot, bool standalone)
{
    const struct axes axes = make_axes(plot);
    strbuf_printf(out,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" %swidth=\"%d\" height=\"%d\" "
                  "viewBox=\"0 0 %d %d\" role=\"img\">\n<title>",
                  standalone ? "" : "class=\"plot\" ", WIDTH, HEIGHT, WIDTH, HEIGHT);
    html_text(out, plot->title, SWEEP_CHART_TEXT_MAX);
    strbuf_printf(out, "</title>\n%s<rect class=\"ground\" width=\"%d\" height=\"%d\"/>\n",
                  standalone ? STYLE : "", WIDTH, HEIGHT);
    strbuf_printf(out, "<text class=\"title\" x=\"%d\" y=\"26\">", LEFT);
    html_text(out, plot->title, SWEEP_CHART_TEXT_MAX);
    strbuf_puts(out, "</text>\n");
    write_axes(out, &axes);
    write_levels(out, plot, &axes);
    write_curve(out, plot, &axes);
    write_marks(out, plot, &axes);
    strbuf_printf(out, "</svg>\n");
}
