/* A sweep for drawing: mean latency by array size, with the sizes that the probes report, as SVG.
 */
#include "report/html/sweep_chart.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "markup/chart.h"
#include "markup/html.h"

enum { METRIC_MAX = 64 };

const char *const sweep_chart_memories[] = {"l1_data",     "texture", "read_only", "constant_l15",
                                            "constant_l1", "l2",      NULL};

static void sweep_add_level(struct sweep_chart *plot, const char *label, double cycles)
{
    plot->levels[plot->level_count++] = (struct sweep_chart_level){label, cycles};
}

static void sweep_add_mark(struct sweep_chart *plot, const char *what, double bytes)
{
    char size[SWEEP_CHART_TEXT_MAX];
    struct sweep_chart_mark *mark = &plot->marks[plot->mark_count++];
    sweep_chart_format_bytes(size, bytes);
    snprintf(mark->label, sizeof mark->label, "%s: %.30s", what, size);
    mark->bytes = bytes;
}

/* Adds a mark for a metric that has a value. */
static void sweep_mark_metric(struct sweep_chart *plot, const struct measures *measures,
                              const char *memory, const char *attribute, const char *what)
{
    char metric[METRIC_MAX];
    double bytes;
    snprintf(metric, sizeof metric, "%s.%s", memory, attribute);
    if (measures_value(measures, metric, &bytes))
        sweep_add_mark(plot, what, bytes);
}

static void sweep_mark_sizes(struct sweep_chart *plot, const struct measures *measures,
                             const char *memory, const struct measure *size)
{
    if (size->bound == MEASURE_AT_LEAST) {
        sweep_add_mark(plot, "no change point up to the end of the memory", size->value);
        return;
    }
    if (strcmp(memory, "l2") == 0) {
        sweep_mark_metric(plot, measures, memory, "part_size", "near part");
        int64_t step = facts_int(&size->notes, "by_sweep", 0);
        if (step > 0)
            sweep_add_mark(plot, "step of the sweep", (double)step);
    } else {
        sweep_mark_metric(plot, measures, memory, "reach", "change point of the sweep");
    }
    int64_t resident = facts_int(&size->notes, "by_residency", 0);
    if (resident > 0)
        sweep_add_mark(plot, "resident share", (double)resident);
}

bool sweep_chart_memory(const struct measures *measures, const char *memory,
                        struct sweep_chart *out_plot)
{
    struct sweep_chart plot = {0};
    char metric[METRIC_MAX];
    snprintf(metric, sizeof metric, "%s.size", memory);
    const struct measure *size = measures_get(measures, metric);
    if (!size || !curve_read(&size->notes, &plot.curve))
        return false;
    sweep_mark_sizes(&plot, measures, memory, size);
    sweep_add_level(&plot, plot.curve.far > 0 ? "near" : "hit", plot.curve.hit);
    if (plot.curve.far > 0)
        sweep_add_level(&plot, "far", plot.curve.far);
    sweep_add_level(&plot, strcmp(memory, "l2") == 0 ? "main" : "miss", plot.curve.miss);
    *out_plot = plot;
    return true;
}

static const double KIB = 1024, MIB = 1024 * 1024;

enum { LEGEND_TOP = 48, LEGEND_LINE = 18, LABEL_HEIGHT = 14, TICKS_X_MAX = 9, TICKS_Y_MAX = 7 };

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

void sweep_chart_format_bytes(char text[SWEEP_CHART_TEXT_MAX], double bytes)
{
    if (bytes >= MIB)
        snprintf(text, SWEEP_CHART_TEXT_MAX, "%.2f MiB", bytes / MIB);
    else
        snprintf(text, SWEEP_CHART_TEXT_MAX, "%.2f KiB", bytes / KIB);
}

/* Sizes to the right, cycles from 0 upwards. */
static struct chart sweep_scales(const struct sweep_chart *plot)
{
    const struct curve_point *first = plot->curve.points, *last = first + plot->curve.count - 1;
    const double margin = 0.02 * (last->bytes - first->bytes);
    struct chart chart = {.width = 720,
                          .height = 400,
                          .left = 64,
                          .right = 620,
                          .top = 104,
                          .bottom = 344,
                          .title_y = 26,
                          .x = {first->bytes - margin, last->bytes + margin}};
    for (size_t i = 0; i < plot->curve.count; i++)
        chart_widen(&chart.y, plot->curve.points[i].cycles);
    for (size_t i = 0; i < plot->level_count; i++)
        chart_widen(&chart.y, plot->levels[i].cycles);
    chart.y.low = 0;
    chart.y.high *= 1.08;
    return chart;
}

static void sweep_put_axes(struct strbuf *out, const struct chart *chart)
{
    const double unit = chart->x.high >= MIB ? MIB : KIB;
    const double x_step =
        chart_binary_step((chart->x.high - chart->x.low) / unit, TICKS_X_MAX) * unit;
    const double y_step = chart_decimal_step(chart->y.high, TICKS_Y_MAX);
    char label[32];
    for (double at = ceil(chart->x.low / x_step) * x_step; at <= chart->x.high; at += x_step) {
        snprintf(label, sizeof label, "%g", at / unit);
        chart_x_tick(out, chart, at, true, label);
    }
    for (double at = 0; at <= chart->y.high; at += y_step) {
        snprintf(label, sizeof label, "%g", at);
        chart_y_tick(out, chart, at, label);
    }
    chart_frame(out, chart);
    chart_x_title(out, chart, 42, unit == MIB ? "array size (MiB)" : "array size (KiB)");
    strbuf_printf(out,
                  "<text transform=\"translate(18 %d) rotate(-90)\" text-anchor=\"middle\">"
                  "mean latency (cycles)</text>\n",
                  (chart->top + chart->bottom) / 2);
}

/* Labels are to the right of the frame, moved up if they would overlap. */
static void sweep_put_levels(struct strbuf *out, const struct sweep_chart *plot,
                             const struct chart *chart)
{
    double free_below = INFINITY;
    for (size_t i = 0; i < plot->level_count; i++) {
        const struct sweep_chart_level *level = &plot->levels[i];
        const double label = fmin(chart_y(chart, level->cycles), free_below);
        char text[SWEEP_CHART_TEXT_MAX];
        snprintf(text, sizeof text, "%s %.1f", level->label, level->cycles);
        chart_horizontal(out, chart, level->cycles, "level");
        chart_text(out, chart->right + 6, label + 4, "start", NULL, text);
        free_below = label - LABEL_HEIGHT;
    }
}

static void sweep_put_marks(struct strbuf *out, const struct sweep_chart *plot,
                            const struct chart *chart)
{
    for (size_t i = 0; i < plot->mark_count; i++) {
        const int y = LEGEND_TOP + (int)i * LEGEND_LINE;
        char class[16];
        snprintf(class, sizeof class, "mark m%zu", i);
        chart_vertical(out, chart, plot->marks[i].bytes, class);
        strbuf_printf(out, "<line class=\"%s\" x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\"/>\n", class,
                      chart->left, y, chart->left + 30, y);
        chart_text(out, chart->left + 38, y + 4, "start", NULL, plot->marks[i].label);
    }
}

static void sweep_put_curve(struct strbuf *out, const struct sweep_chart *plot,
                            const struct chart *chart)
{
    const struct curve_point *points = plot->curve.points;
    chart_line_begin(out, "curve");
    for (size_t i = 0; i < plot->curve.count; i++)
        chart_line_point(out, chart, points[i].bytes, points[i].cycles);
    chart_line_end(out);
    for (size_t i = 0; i < plot->curve.count; i++)
        strbuf_printf(out, "<circle class=\"dot\" cx=\"%.1f\" cy=\"%.1f\" r=\"2.2\"/>\n",
                      chart_x(chart, points[i].bytes), chart_y(chart, points[i].cycles));
}

void sweep_chart_put_svg(struct strbuf *out, const struct sweep_chart *plot, bool standalone)
{
    const struct chart chart = sweep_scales(plot);
    strbuf_printf(out,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" %swidth=\"%d\" height=\"%d\" "
                  "viewBox=\"0 0 %d %d\" role=\"img\">\n<title>",
                  standalone ? "" : "class=\"plot\" ", chart.width, chart.height, chart.width,
                  chart.height);
    html_text(out, plot->title, SWEEP_CHART_TEXT_MAX);
    strbuf_printf(out, "</title>\n%s<rect class=\"ground\" width=\"%d\" height=\"%d\"/>\n",
                  standalone ? STYLE : "", chart.width, chart.height);
    strbuf_printf(out, "<text class=\"title\" x=\"%d\" y=\"%d\">", chart.left, chart.title_y);
    html_text(out, plot->title, SWEEP_CHART_TEXT_MAX);
    strbuf_puts(out, "</text>\n");
    sweep_put_axes(out, &chart);
    sweep_put_levels(out, plot, &chart);
    sweep_put_curve(out, plot, &chart);
    sweep_put_marks(out, plot, &chart);
    strbuf_puts(out, "</svg>\n");
}
