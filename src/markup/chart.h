/* Drawings as SVG: scales, a frame with ticks, lines and labels. The style of the page has the
 * colours. */
#ifndef GPUMEMTOPO_MARKUP_CHART_H
#define GPUMEMTOPO_MARKUP_CHART_H

#include <stdbool.h>

#include "base/str.h"

/* The values at both ends of an axis. */
struct chart_scale {
    double low, high;
    bool logarithmic;
};

/* A picture of width by height pixels, with a frame in it. */
struct chart {
    int width, height, left, right, top, bottom;
    int title_y;             /* baseline of the title */
    struct chart_scale x, y; /* y grows upwards */
};

/* The pixel of a value. A scale of which both ends are equal has all values at its beginning. */
double chart_x(const struct chart *chart, double value);
double chart_y(const struct chart *chart, double value);

/* Widens the scale to a value that is not NaN; begin with {INFINITY, -INFINITY}. */
void chart_widen(struct chart_scale *scale, double value);

/* A round end for an axis from 0 that has room for `high`. */
double chart_round_end(double high);

/* The smallest step of 1, 2 or 5 times a power of ten that gives at most `ticks_max` ticks; the
 * smallest power of two. */
double chart_decimal_step(double span, double ticks_max);
double chart_binary_step(double span, double ticks_max);

/* A picture with a title above its frame, `title` followed by `after`, in a box that scrolls. */
void chart_begin(struct strbuf *out, const struct chart *chart, const char *title,
                 const char *after);
void chart_end(struct strbuf *out);

void chart_frame(struct strbuf *out, const struct chart *chart);

/* The label at a value of the axis; `grid`: with a line through the frame. */
void chart_x_tick(struct strbuf *out, const struct chart *chart, double value, bool grid,
                  const char *label);
void chart_y_tick(struct strbuf *out, const struct chart *chart, double value, const char *label);

/* What the axis shows, `below` pixels under the frame. */
void chart_x_title(struct strbuf *out, const struct chart *chart, int below, const char *title);

/* A line through the frame at a value. class: of the style. */
void chart_vertical(struct strbuf *out, const struct chart *chart, double x, const char *class);
void chart_horizontal(struct strbuf *out, const struct chart *chart, double y, const char *class);

/* A line through points, which come one by one. */
void chart_line_begin(struct strbuf *out, const char *class);
void chart_line_point(struct strbuf *out, const struct chart *chart, double x, double y);
void chart_line_end(struct strbuf *out);

/* A text at a place in pixels; anchor: "start", "middle" or "end"; class NULL: none. */
void chart_text(struct strbuf *out, double x, double y, const char *anchor, const char *class,
                const char *text);

#endif
