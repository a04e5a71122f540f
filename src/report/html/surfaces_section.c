/* Bandwidth by blocks, threads, accesses in flight and size, as curves; the table of bank
 * conflicts.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inventory/surface_curves.h"
#include "markup/html_text.h"
#include "report/html/sections.h"

enum { WIDTH = 720, HEIGHT = 260, LEFT = 64, RIGHT = 580, TOP = 40, BOTTOM = 210 };
enum { TICK_WIDTH = 44, LABEL_HEIGHT = 14, TABLE_COLUMNS_MAX = 16 };

struct axes {
    double low, high, top;
    bool logarithmic; /* threads and sizes double from point to point */
};

static double x_of(const struct axes *axes, double x)
{
    double share = axes->logarithmic ? log(x / axes->low) / log(axes->high / axes->low)
                                     : (x - axes->low) / (axes->high - axes->low);
    return LEFT + share * (RIGHT - LEFT);
}

static double y_of(const struct axes *axes, double gbs)
{
    return BOTTOM - gbs / axes->top * (BOTTOM - TOP);
}

static struct axes make_axes(const struct surface_curves *curves)
{
    struct axes axes = {.low = curves->xs[0],
                        .high = curves->xs[curves->x_count - 1],
                        .logarithmic = strcmp(curves->axis, "blocks") != 0};
    double high = 0;
    for (size_t s = 0; s < curves->count; s++)
        for (size_t i = 0; i < curves->x_count; i++)
            high = fmax(high, curves->gbs[s][i]);
    double step = high > 0 ? pow(10, floor(log10(high))) : 1;
    axes.top = fmax(ceil(high * 1.02 / step * 5) * step / 5, step);
    return axes;
}

static void put_axes(struct strbuf *out, const struct surface_curves *curves,
                     const struct axes *axes)
{
    double free_from = 0;
    for (int k = 0; k <= 4; k++) {
        double value = axes->top * k / 4, y = y_of(axes, value);
        strbuf_printf(out, "<line class=\"grid\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>",
                      LEFT, y, RIGHT, y);
        strbuf_printf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n", LEFT - 6,
                      y + 4, value);
    }
    for (size_t i = 0; i < curves->x_count; i++) {
        double x = x_of(axes, curves->xs[i]);
        if (x < free_from)
            continue;
        free_from = x + TICK_WIDTH;
        strbuf_printf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.0f</text>\n", x,
                      BOTTOM + 18, curves->xs[i]);
    }
    strbuf_printf(out, "<rect class=\"frame\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n",
                  LEFT, TOP, RIGHT - LEFT, BOTTOM - TOP);
    strbuf_printf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">", (LEFT + RIGHT) / 2,
                  BOTTOM + 38);
    html_text(out, curves->axis, SURFACE_CURVES_NAME_MAX);
    strbuf_puts(out, "</text>\n");
}

/* The name of a curve is beside its last point, unless another one is there already. */
static void put_curve(struct strbuf *out, const struct surface_curves *curves,
                      const struct axes *axes, size_t series, double *labels)
{
    double y = NAN;
    strbuf_printf(out, "<polyline class=\"series s%zu\" points=\"", series % 4);
    for (size_t i = 0; i < curves->x_count; i++) {
        double gbs = curves->gbs[series][i];
        if (isnan(gbs))
            continue;
        y = y_of(axes, gbs);
        strbuf_printf(out, "%.1f,%.1f ", x_of(axes, curves->xs[i]), y);
    }
    strbuf_puts(out, "\"/>\n");
    if (isnan(y))
        return;
    for (size_t i = 0; i < series; i++)
        for (size_t k = 0; k < series; k++)
            if (fabs(y - labels[k]) < LABEL_HEIGHT)
                y = labels[k] + LABEL_HEIGHT;
    labels[series] = y;
    strbuf_printf(out, "<text class=\"t%zu\" x=\"%d\" y=\"%.1f\">", series % 4, RIGHT + 6, y + 4);
    html_text(out, curves->names[series], SURFACE_CURVES_NAME_MAX);
    strbuf_puts(out, "</text>\n");
}

static void put_chart(struct strbuf *out, const char *title, const struct surface_curves *curves)
{
    const struct axes axes = make_axes(curves);
    double labels[SURFACE_CURVES_MAX];
    if (!(axes.high > axes.low))
        return;
    for (size_t s = 0; s < SURFACE_CURVES_MAX; s++)
        labels[s] = -HEIGHT;
    strbuf_printf(out,
                  "<div class=wide><svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\" "
                  "width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" role=\"img\"><title>",
                  WIDTH, HEIGHT, WIDTH, HEIGHT);
    html_text(out, title, HTML_NAME);
    strbuf_printf(out, "</title><text class=\"title\" x=\"%d\" y=\"26\">", LEFT);
    html_text(out, title, HTML_NAME);
    strbuf_puts(out, " (GB/s)</text>\n");
    put_axes(out, curves, &axes);
    for (size_t s = 0; s < curves->count; s++)
        put_curve(out, curves, &axes, s, labels);
    strbuf_puts(out, "</svg></div>\n");
}

/* "surface.stream_size.copy.largest" -> "stream_size" */
static void title_of(const char *metric, char title[HTML_NAME])
{
    const char *name = metric + strlen(SURFACE_CURVES_METRICS);
    snprintf(title, HTML_NAME, "%.*s", (int)strcspn(name, "."), name);
}

static void put_surfaces(struct strbuf *out, const struct inventory_model *model)
{
    bool begun = false;
    for (size_t i = 0; i < model->memory.count; i++) {
        const struct measure *m = &model->memory.items[i];
        size_t length = strlen(SURFACE_CURVES_METRICS);
        const char *text = strncmp(m->metric, SURFACE_CURVES_METRICS, length) == 0
                               ? facts_text(&m->notes, SURFACE_CURVES_KEY)
                               : NULL;
        struct surface_curves curves;
        char title[HTML_NAME];
        if (!text || !surface_curves_read(text, &curves))
            continue;
        if (!begun)
            strbuf_printf(out,
                          "<details class=surfaces><summary>Bandwidth by what is in "
                          "flight%s</summary><div class=curves>\n",
                          model->count > 1 ? ", of the median GPU" : "");
        begun = true;
        title_of(m->metric, title);
        put_chart(out, title, &curves);
    }
    if (begun)
        strbuf_puts(out, "</div></details>\n");
}

/* A row of the note: "32 23.0 25.0 ...". Returns its end. */
static const char *put_row(struct strbuf *out, const char *at)
{
    strbuf_puts(out, "<tr>");
    for (int i = 0; i < TABLE_COLUMNS_MAX; i++) {
        char *end;
        double value = strtod(at, &end);
        if (end == at || !isfinite(value))
            break;
        strbuf_printf(out, i ? "<td>%.1f</td>" : "<th>%.0f</th>", value);
        at = end;
    }
    strbuf_puts(out, "</tr>\n");
    return at;
}

static void put_banks(struct strbuf *out, const struct inventory_model *model)
{
    const struct measure *m = measures_get(&model->memory, "shared.conflict.latency");
    const char *text = m ? facts_text(&m->notes, "table") : NULL;
    const char *at = text ? strchr(text, ';') : NULL;
    if (!at)
        return;
    strbuf_puts(out, "<details class=banks><summary>Bank conflicts of shared memory: cycles per "
                     "load</summary><div class=wide><table class=links><tr><th>threads");
    for (int stride = 1; stride <= 32; stride *= 2)
        strbuf_printf(out, "</th><th>stride %d", stride);
    strbuf_puts(out, "</th></tr>\n");
    while (at && *at == ';')
        at = strchr(put_row(out, at + 1), ';');
    strbuf_puts(out, "</table></div></details>\n");
}

void html_surfaces(struct strbuf *out, const struct inventory_model *model)
{
    put_surfaces(out, model);
    put_banks(out, model);
}
