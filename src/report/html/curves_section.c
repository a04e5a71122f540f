/* The curves of a model: sweeps with their change points, clock, power and temperatures under load,
 * latency under load, bandwidth by what is in flight, bank conflicts. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "inventory/curves.h"
#include "markup/chart.h"
#include "markup/html.h"
#include "report/html/sections.h"
#include "report/html/sweep_chart.h"

void html_sweeps(struct strbuf *out, const struct inventory_model *model)
{
    bool begun = false;
    for (size_t i = 0; sweep_chart_memories[i]; i++) {
        struct sweep_chart plot;
        if (!sweep_chart_memory(&model->memory, sweep_chart_memories[i], &plot))
            continue;
        if (!begun)
            strbuf_puts(out, "<details open class=sweeps><summary>Sweeps and their change points"
                             "</summary><div class=curves>\n");
        begun = true;
        snprintf(plot.title, sizeof plot.title, "%s", sweep_chart_memories[i]);
        strbuf_puts(out, "<div class=wide>");
        sweep_chart_put_svg(out, &plot, false);
        strbuf_puts(out, "</div>\n");
    }
    if (begun)
        strbuf_puts(out, "</div></details>\n");
}

/* Ticks of the upward axis at each quarter. */
static void chart_put_quarters(struct strbuf *out, const struct chart *chart, bool whole)
{
    for (int k = 0; k <= 4; k++) {
        char label[32];
        snprintf(label, sizeof label, whole ? "%.0f" : "%g", chart->y.high * k / 4);
        chart_y_tick(out, chart, chart->y.high * k / 4, label);
    }
}

static void load_put_line(struct strbuf *out, const struct chart *chart,
                          const struct load_curve *curve, int column, const char *class)
{
    chart_line_begin(out, class);
    for (size_t i = 0; i < curve->count; i++)
        if (curve->points[i][column] > 0)
            chart_line_point(out, chart, curve->points[i][0], curve->points[i][column]);
    chart_line_end(out);
}

/* second: a further column in the same picture; 0: none. */
static void load_put_chart(struct strbuf *out, const struct load_curve *curve, const char *title,
                           int first, int second)
{
    const double end_s = curve->points[curve->count - 1][0];
    double high = 0;
    for (size_t i = 0; i < curve->count; i++)
        high = fmax(high, fmax(curve->points[i][first], second ? curve->points[i][second] : 0));
    if (high <= 0)
        return;
    const struct chart chart = {.width = 720,
                                .height = 220,
                                .left = 64,
                                .right = 690,
                                .top = 40,
                                .bottom = 180,
                                .title_y = 26,
                                .x = {0, end_s},
                                .y = {0, chart_round_end(high)}};
    chart_begin(out, &chart, title, "");
    chart_put_quarters(out, &chart, true);
    for (int k = 0; k <= 4; k++) {
        char label[32];
        snprintf(label, sizeof label, "%.3g s", end_s * k / 4);
        chart_x_tick(out, &chart, end_s * k / 4, false, label);
    }
    chart_frame(out, &chart);
    load_put_line(out, &chart, curve, first, "mark m1");
    if (second)
        load_put_line(out, &chart, curve, second, "mark m0");
    chart_end(out);
}

static void load_put_charts(struct strbuf *out, const struct load_curve *curve)
{
    strbuf_puts(out, "</summary><div class=curves>\n");
    load_put_chart(out, curve, "SM clock under load (MHz)", LOAD_CURVE_MHZ, 0);
    load_put_chart(out, curve, "Power under load (W)", LOAD_CURVE_W, 0);
    load_put_chart(out, curve, "Temperature of GPU (dashed) and memory under load (C)",
                   LOAD_CURVE_C, LOAD_CURVE_MEMORY_C);
    strbuf_puts(out, "</div></details>\n");
}

void html_load(struct strbuf *out, const struct inventory_model *model)
{
    const struct measure *clock = measures_get(&model->memory, LOAD_CURVE_METRIC);
    struct load_curve curve;
    if (!clock || !load_curve_read(&clock->notes, &curve))
        return;
    strbuf_printf(out, "<details class=load open><summary>Under sustained load%s",
                  model->count > 1 ? ": the GPU with the median clock" : "");
    load_put_charts(out, &curve);
}

void html_gpu_load(struct strbuf *out, const struct inventory_gpu *gpu)
{
    const char *throttle = facts_text(&gpu->load, "throttle");
    struct load_curve curve;
    if (!load_curve_read(&gpu->load, &curve))
        return;
    strbuf_puts(out, "<details class=load><summary>Under sustained load");
    if (throttle && *throttle) {
        strbuf_puts(out, ": ");
        html_text(out, throttle, HTML_NAME);
    }
    load_put_charts(out, &curve);
}

static void latency_put_chart(struct strbuf *out, const char *title,
                              const struct latency_curve *curve)
{
    double gbs = 0, cycles = 0;
    for (size_t i = 0; i < curve->count; i++) {
        gbs = fmax(gbs, curve->points[i].gbs);
        cycles = fmax(cycles, curve->points[i].cycles);
    }
    if (!(gbs > 0 && cycles > 0))
        return;
    const struct chart chart = {.width = 720,
                                .height = 260,
                                .left = 64,
                                .right = 690,
                                .top = 40,
                                .bottom = 210,
                                .title_y = 26,
                                .x = {0, chart_round_end(gbs)},
                                .y = {0, chart_round_end(cycles)}};
    chart_begin(out, &chart, title, " (cycles of a load)");
    chart_put_quarters(out, &chart, false);
    for (int k = 0; k <= 4; k++) {
        char label[32];
        snprintf(label, sizeof label, "%g", chart.x.high * k / 4);
        chart_x_tick(out, &chart, chart.x.high * k / 4, false, label);
    }
    chart_frame(out, &chart);
    chart_x_title(out, &chart, 38, "GB/s that other SMs read meanwhile");
    chart_line_begin(out, "curve");
    for (size_t i = 0; i < curve->count; i++)
        chart_line_point(out, &chart, curve->points[i].gbs, curve->points[i].cycles);
    chart_line_end(out);
    for (size_t i = 0; i < curve->count; i++)
        strbuf_printf(out, "<circle class=\"dot\" cx=\"%.1f\" cy=\"%.1f\" r=\"2.2\"/>\n",
                      chart_x(&chart, curve->points[i].gbs),
                      chart_y(&chart, curve->points[i].cycles));
    chart_end(out);
}

/* "main.latency_loaded": main */
static void latencies_put(struct strbuf *out, const struct inventory_model *model)
{
    bool begun = false;
    for (size_t i = 0; i < model->memory.count; i++) {
        const struct measure *m = &model->memory.items[i];
        const char *dot = strchr(m->metric, '.');
        struct latency_curve curve;
        char title[HTML_NAME];
        if (!dot || strcmp(dot, LATENCY_CURVE_METRICS) != 0 ||
            !latency_curve_read(&m->notes, &curve))
            continue;
        if (!begun)
            strbuf_printf(out,
                          "<details class=loaded><summary>Latency under load%s</summary><div "
                          "class=curves>\n",
                          model->count > 1 ? ", of the median GPU" : "");
        begun = true;
        snprintf(title, sizeof title, "%.*s", (int)(dot - m->metric), m->metric);
        latency_put_chart(out, title, &curve);
    }
    if (begun)
        strbuf_puts(out, "</div></details>\n");
}

/* The name of a curve is beside its last point, unless another one is there already. */
static void surface_put_curve(struct strbuf *out, const struct chart *chart,
                              const struct surface_curves *curves, size_t series, double *labels)
{
    enum { LABEL_HEIGHT = 14 };
    double y = NAN;
    char class[32];
    snprintf(class, sizeof class, "series s%zu", series % 4);
    chart_line_begin(out, class);
    for (size_t i = 0; i < curves->x_count; i++) {
        if (isnan(curves->gbs[series][i]))
            continue;
        y = chart_y(chart, curves->gbs[series][i]);
        chart_line_point(out, chart, curves->xs[i], curves->gbs[series][i]);
    }
    chart_line_end(out);
    if (isnan(y))
        return;
    for (size_t i = 0; i < series; i++)
        for (size_t k = 0; k < series; k++)
            if (fabs(y - labels[k]) < LABEL_HEIGHT)
                y = labels[k] + LABEL_HEIGHT;
    labels[series] = y;
    snprintf(class, sizeof class, "t%zu", series % 4);
    chart_text(out, chart->right + 6, y + 4, "start", class, curves->names[series]);
}

static void surface_put_chart(struct strbuf *out, const char *title,
                              const struct surface_curves *curves)
{
    enum { TICK_WIDTH = 44 };
    double labels[SURFACE_CURVES_MAX], high = 0, free_from = 0;
    for (size_t s = 0; s < curves->count; s++)
        for (size_t i = 0; i < curves->x_count; i++)
            high = fmax(high, curves->gbs[s][i]);
    const struct chart chart = {
        .width = 720,
        .height = 260,
        .left = 64,
        .right = 580,
        .top = 40,
        .bottom = 210,
        .title_y = 26,
        .x = {curves->xs[0], curves->xs[curves->x_count - 1],
              strcmp(curves->axis, "blocks") != 0}, /* others double from point to point */
        .y = {0, chart_round_end(high)}};
    if (!(chart.x.high > chart.x.low))
        return;
    chart_begin(out, &chart, title, " (GB/s)");
    chart_put_quarters(out, &chart, false);
    for (size_t i = 0; i < curves->x_count; i++) {
        const double x = chart_x(&chart, curves->xs[i]);
        char label[32];
        if (x < free_from)
            continue;
        free_from = x + TICK_WIDTH;
        snprintf(label, sizeof label, "%.0f", curves->xs[i]);
        chart_x_tick(out, &chart, curves->xs[i], false, label);
    }
    chart_frame(out, &chart);
    chart_x_title(out, &chart, 38, curves->axis);
    for (size_t s = 0; s < SURFACE_CURVES_MAX; s++)
        labels[s] = -chart.height;
    for (size_t s = 0; s < curves->count; s++)
        surface_put_curve(out, &chart, curves, s, labels);
    chart_end(out);
}

static void surfaces_put(struct strbuf *out, const struct inventory_model *model)
{
    const size_t length = strlen(SURFACE_CURVES_METRICS);
    bool begun = false;
    for (size_t i = 0; i < model->memory.count; i++) {
        const struct measure *m = &model->memory.items[i];
        struct surface_curves curves;
        char title[HTML_NAME];
        if (strncmp(m->metric, SURFACE_CURVES_METRICS, length) != 0 ||
            !surface_curves_read(&m->notes, &curves))
            continue;
        if (!begun)
            strbuf_printf(out,
                          "<details class=surfaces><summary>Bandwidth by what is in "
                          "flight%s</summary><div class=curves>\n",
                          model->count > 1 ? ", of the median GPU" : "");
        begun = true;
        /* "surface.stream_size.copy.largest" -> "stream_size" */
        snprintf(title, sizeof title, "%.*s", (int)strcspn(m->metric + length, "."),
                 m->metric + length);
        surface_put_chart(out, title, &curves);
    }
    if (begun)
        strbuf_puts(out, "</div></details>\n");
}

static void banks_put(struct strbuf *out, const struct inventory_model *model)
{
    const struct measure *m = measures_get(&model->memory, "shared.conflict.latency");
    size_t threads_count = 0, strides_count = 0, rows = 0, columns = 0;
    if (!m)
        return;
    const double *threads = facts_numbers(&m->notes, "table_threads", &threads_count);
    const double *strides = facts_numbers(&m->notes, "table_strides", &strides_count);
    const double *cycles = facts_rows(&m->notes, "table", &rows, &columns);
    if (!threads || !strides || !cycles || threads_count != rows || strides_count != columns)
        return;
    strbuf_puts(out, "<details class=banks><summary>Bank conflicts of shared memory: cycles per "
                     "load</summary><div class=wide><table class=links><tr><th>threads");
    for (size_t c = 0; c < columns; c++)
        strbuf_printf(out, "</th><th>stride %.0f", strides[c]);
    strbuf_puts(out, "</th></tr>\n");
    for (size_t r = 0; r < rows; r++) {
        strbuf_printf(out, "<tr><th>%.0f</th>", threads[r]);
        for (size_t c = 0; c < columns; c++)
            strbuf_printf(out, "<td>%.1f</td>", cycles[r * columns + c]);
        strbuf_puts(out, "</tr>\n");
    }
    strbuf_puts(out, "</table></div></details>\n");
}

void html_surfaces(struct strbuf *out, const struct inventory_model *model)
{
    latencies_put(out, model);
    surfaces_put(out, model);
    banks_put(out, model);
}
