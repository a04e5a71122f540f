/* Since when the figures of one GPU are different, as a page with drawings. */
#include <math.h>

#include "markup/html_text.h"
#include "markup/page.h"
#include "report/history/history_changes.h"

/* Sizes of a drawing, and of the frame in it. */
enum { WIDTH = 860, HEIGHT = 230, LEFT = 90, RIGHT = 840, TOP = 14, BOTTOM = 200, TEXT_Y = 222 };

struct axes {
    double first, last, low, high;
};

static double x_of(const struct axes *axes, double day)
{
    const double span = axes->last - axes->first;
    return span > 0 ? LEFT + (day - axes->first) / span * (RIGHT - LEFT) : LEFT;
}

static double y_of(const struct axes *axes, double value)
{
    return BOTTOM - (value - axes->low) / (axes->high - axes->low) * (BOTTOM - TOP);
}

/* From the smallest value to the largest, and at least 4 % of them: noise should look small. */
static struct axes axes_of(const struct history_figure *figure)
{
    struct axes axes = {figure->points[0].day, figure->points[figure->count - 1].day, INFINITY,
                        -INFINITY};
    for (size_t i = 0; i < figure->count; i++) {
        axes.low = fmin(axes.low, fmin(figure->values[i], figure->levels[i]));
        axes.high = fmax(axes.high, fmax(figure->values[i], figure->levels[i]));
    }
    const double least = 0.04 * fabs(axes.high), span = axes.high - axes.low;
    const double margin = 0.05 * span + (span < least ? (least - span) / 2 : 0) + 1e-9;
    axes.low -= margin;
    axes.high += margin;
    return axes;
}

static double day_of(const struct history_changes *changes, uint32_t survey)
{
    return (double)changes->history->surveys[survey].time_s / 86400;
}

/* A band from the last survey before a change to the first one after it. */
static void put_bands(struct strbuf *out, const struct history_changes *changes,
                      const struct history_figure *figure, const struct axes *axes)
{
    for (size_t i = 0; i < figure->change_count; i++) {
        const struct history_change *change = &figure->changes[i];
        const double from = x_of(axes, day_of(changes, change->before));
        const double to = x_of(axes, day_of(changes, change->after));
        strbuf_printf(out,
                      "<rect class=\"%s\" fill-opacity=\"0.2\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" "
                      "height=\"%d\"/>\n",
                      history_change_is_worse(figure, change) ? "t2" : "t1", from, TOP,
                      fmax(to - from, 1), BOTTOM - TOP);
    }
}

/* The usual values between the changes. */
static void put_pieces(struct strbuf *out, const struct history_changes *changes,
                       const struct history_figure *figure, const struct axes *axes)
{
    for (size_t i = 0; i <= figure->change_count && figure->course == HISTORY_STEPS; i++) {
        const struct history_change *before = i ? &figure->changes[i - 1] : NULL;
        const struct history_change *after = i < figure->change_count ? &figure->changes[i] : NULL;
        const double from = before ? day_of(changes, before->after) : axes->first;
        const double to = after ? day_of(changes, after->before) : axes->last;
        const double y = y_of(axes, after ? after->value_before : before->value_after);
        strbuf_printf(
            out, "<line class=\"series s0\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n",
            x_of(axes, from), y, x_of(axes, to), y);
    }
}

static void put_usual(struct strbuf *out, const struct history_figure *figure,
                      const struct axes *axes)
{
    strbuf_puts(out, "<polyline class=level fill=\"none\" points=\"");
    for (size_t i = 0; i < figure->count; i++)
        if (isfinite(figure->levels[i]))
            strbuf_printf(out, "%.1f,%.1f ", x_of(axes, figure->points[i].day),
                          y_of(axes, figure->levels[i]));
    strbuf_puts(out, "\"/>\n");
}

static void put_label(struct strbuf *out, double x, double y, const char *anchor, const char *text)
{
    strbuf_printf(out, "<text x=\"%.0f\" y=\"%.0f\" text-anchor=%s>", x, y, anchor);
    html_text(out, text, HTML_NAME);
    strbuf_puts(out, "</text>\n");
}

static void put_scale(struct strbuf *out, const struct history_figure *figure,
                      const struct axes *axes)
{
    for (int top = 0; top < 2; top++) {
        strbuf_printf(out, "<text x=\"%d\" y=\"%d\" text-anchor=end>", LEFT - 6,
                      top ? TOP + 10 : BOTTOM);
        html_quantity(out, top ? axes->high : axes->low, figure->unit);
        strbuf_puts(out, "</text>\n");
    }
}

static void put_drawing(struct strbuf *out, const struct history_changes *changes,
                        const struct history_figure *figure)
{
    const struct axes axes = axes_of(figure);
    const struct history_survey *surveys = changes->history->surveys;
    strbuf_printf(out, "<svg class=plot viewBox=\"0 0 %d %d\" role=img aria-label=\"", WIDTH,
                  HEIGHT);
    html_text(out, figure->rule->metric, HTML_NAME);
    strbuf_printf(out,
                  " over time\">\n<rect class=frame x=\"%d\" y=\"%d\" width=\"%d\" "
                  "height=\"%d\"/>\n",
                  LEFT, TOP, RIGHT - LEFT, BOTTOM - TOP);
    put_bands(out, changes, figure, &axes);
    put_usual(out, figure, &axes);
    put_pieces(out, changes, figure, &axes);
    for (size_t i = 0; i < figure->count; i++) {
        strbuf_printf(out, "<circle class=dot cx=\"%.1f\" cy=\"%.1f\" r=\"3\"><title>",
                      x_of(&axes, figure->points[i].day), y_of(&axes, figure->values[i]));
        html_text(out, surveys[figure->points[i].survey].generated, HTML_NAME);
        strbuf_puts(out, ": ");
        html_quantity(out, figure->values[i], figure->unit);
        strbuf_puts(out, "</title></circle>\n");
    }
    put_label(out, LEFT, TEXT_Y, "start", surveys[figure->points[0].survey].generated);
    put_label(out, RIGHT, TEXT_Y, "end",
              surveys[figure->points[figure->count - 1].survey].generated);
    put_scale(out, figure, &axes);
    strbuf_puts(out, "</svg>\n");
}

static void put_sentence(struct strbuf *out, const struct history_changes *changes,
                         const struct history_figure *figure, const struct history_change *change)
{
    const struct history_survey *surveys = changes->history->surveys;
    const bool worse = history_change_is_worse(figure, change);
    strbuf_printf(out, "<p%s>%+.1f %%%s between ", worse ? " class=bad" : "", 100 * change->change,
                  figure->course == HISTORY_GRADUAL ? ", slowly," : "");
    html_text(out, surveys[change->before].generated, HTML_NAME);
    strbuf_puts(out, " and ");
    html_text(out, surveys[change->after].generated, HTML_NAME);
    strbuf_puts(out, ": from ");
    html_quantity(out, change->value_before, figure->unit);
    strbuf_puts(out, " to ");
    html_quantity(out, change->value_after, figure->unit);
    strbuf_printf(out, " (confidence %s%.3f).</p>\n", change->confidence > 0.999 ? "over " : "",
                  fmin(change->confidence, 0.999));
}

static void put_figure(struct strbuf *out, const struct history_changes *changes,
                       const struct history_figure *figure)
{
    strbuf_puts(out, "<h2>");
    html_text(out, figure->rule->metric, HTML_NAME);
    strbuf_puts(out, "</h2>\n");
    for (size_t i = 0; i < figure->change_count; i++)
        put_sentence(out, changes, figure, &figure->changes[i]);
    if (figure->course == HISTORY_STEADY)
        strbuf_puts(out, "<p>No change beyond the floor of the metric.</p>\n");
    if (figure->course == HISTORY_FEW)
        strbuf_printf(out, "<p>Too few values to tell: %zu, %d are needed.</p>\n", figure->count,
                      HISTORY_CHANGE_VALUES_MIN);
    if (figure->model_change_count)
        strbuf_printf(
            out, "<p>The usual GPU of its model changed %zu time%s as well (dotted line).</p>\n",
            figure->model_change_count, figure->model_change_count == 1 ? "" : "s");
    if (figure->count)
        put_drawing(out, changes, figure);
}

static void put_states(struct strbuf *out, const struct history_changes *changes)
{
    strbuf_puts(out, "<p class=mono>");
    for (size_t i = 0; i < changes->history->survey_count; i++) {
        char letter = history_letter(history_state_at(changes->history, changes->gpu, (uint32_t)i));
        strbuf_append(out, &letter, 1);
    }
    strbuf_puts(out,
                "</p>\n<p class=dim>One letter per survey, the last one on the right: O outlier, "
                "w watched, u not measured, x missing on its node, b busy, . fine, = not "
                "measured again, - node not surveyed. In the drawings: dots are surveys, the "
                "dotted line is where the GPU would be if it had followed the usual GPU of its "
                "model, a band lies between the last survey before a change and the first one "
                "after it.</p>\n");
}

void history_changes_put_page(const struct history_changes *changes, struct strbuf *out_page)
{
    const struct symbols *symbols = &changes->history->symbols;
    const struct history_sighting *last = &changes->gpu->sightings[changes->gpu->count - 1];
    page_begin(out_page, "History of a GPU", NULL);
    strbuf_puts(out_page, "<main>\n<h1>");
    html_text(out_page, symbols_data(symbols, last->node), HTML_NAME);
    if (last->index >= 0)
        strbuf_printf(out_page, ":%d", (int)last->index);
    strbuf_puts(out_page, "</h1>\n<p>");
    html_text(out_page, symbols_data(symbols, last->uuid), HTML_NAME);
    strbuf_puts(out_page, ", ");
    html_text(out_page, symbols_data(symbols, last->model), HTML_NAME);
    strbuf_puts(out_page, "</p>\n");
    put_states(out_page, changes);
    /* Those that changed come first. */
    for (int changed = 1; changed >= 0; changed--)
        for (size_t i = 0; i < changes->figure_count; i++)
            if ((changes->figures[i].change_count > 0) == changed)
                put_figure(out_page, changes, &changes->figures[i]);
    if (!changes->figure_count)
        strbuf_puts(out_page, "<p>No figure of this GPU was measured.</p>\n");
    strbuf_puts(out_page, "</main>\n");
    page_end(out_page, NULL);
}
