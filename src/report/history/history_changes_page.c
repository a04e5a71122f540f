/* Since when the figures of one GPU are different, as a page with drawings. */
#include <math.h>

#include "markup/chart.h"
#include "markup/html.h"
#include "report/history/history_changes.h"

enum { TEXT_Y = 222 };

/* From the smallest value to the largest, and at least 4 % of them: noise should look small. */
static struct chart figure_scales(const struct history_figure *figure)
{
    struct chart chart = {.width = 860,
                          .height = 230,
                          .left = 90,
                          .right = 840,
                          .top = 14,
                          .bottom = 200,
                          .x = {figure->points[0].day, figure->points[figure->count - 1].day},
                          .y = {INFINITY, -INFINITY}};
    for (size_t i = 0; i < figure->count; i++) {
        chart_widen(&chart.y, figure->values[i]);
        chart_widen(&chart.y, figure->levels[i]);
    }
    const double least = 0.04 * fabs(chart.y.high), span = chart.y.high - chart.y.low;
    const double margin = 0.05 * span + (span < least ? (least - span) / 2 : 0) + 1e-9;
    chart.y.low -= margin;
    chart.y.high += margin;
    return chart;
}

static double survey_day(const struct history_changes *changes, uint32_t survey)
{
    return (double)changes->history->surveys[survey].time_s / 86400;
}

/* A band from the last survey before a change to the first one after it. */
static void figure_put_bands(struct strbuf *out, const struct history_changes *changes,
                             const struct history_figure *figure, const struct chart *chart)
{
    for (size_t i = 0; i < figure->change_count; i++) {
        const struct history_change *change = &figure->changes[i];
        const double from = chart_x(chart, survey_day(changes, change->before));
        const double to = chart_x(chart, survey_day(changes, change->after));
        strbuf_printf(out,
                      "<rect class=\"%s\" fill-opacity=\"0.2\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" "
                      "height=\"%d\"/>\n",
                      history_change_is_worse(figure, change) ? "t2" : "t1", from, chart->top,
                      fmax(to - from, 1), chart->bottom - chart->top);
    }
}

/* The usual values between the changes. */
static void figure_put_pieces(struct strbuf *out, const struct history_changes *changes,
                              const struct history_figure *figure, const struct chart *chart)
{
    for (size_t i = 0; i <= figure->change_count && figure->course == HISTORY_STEPS; i++) {
        const struct history_change *before = i ? &figure->changes[i - 1] : NULL;
        const struct history_change *after = i < figure->change_count ? &figure->changes[i] : NULL;
        const double from = before ? survey_day(changes, before->after) : chart->x.low;
        const double to = after ? survey_day(changes, after->before) : chart->x.high;
        const double y = chart_y(chart, after ? after->value_before : before->value_after);
        strbuf_printf(
            out, "<line class=\"series s0\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n",
            chart_x(chart, from), y, chart_x(chart, to), y);
    }
}

static void figure_put_drawing(struct strbuf *out, const struct history_changes *changes,
                               const struct history_figure *figure)
{
    const struct chart chart = figure_scales(figure);
    const struct history_survey *surveys = changes->history->surveys;
    strbuf_printf(out, "<svg class=plot viewBox=\"0 0 %d %d\" role=img aria-label=\"", chart.width,
                  chart.height);
    html_text(out, figure->rule->metric, HTML_NAME);
    strbuf_puts(out, " over time\">\n");
    chart_frame(out, &chart);
    figure_put_bands(out, changes, figure, &chart);
    chart_line_begin(out, "level"); /* the usual GPU */
    for (size_t i = 0; i < figure->count; i++)
        if (isfinite(figure->levels[i]))
            chart_line_point(out, &chart, figure->points[i].day, figure->levels[i]);
    chart_line_end(out);
    figure_put_pieces(out, changes, figure, &chart);
    for (size_t i = 0; i < figure->count; i++) {
        strbuf_printf(out, "<circle class=dot cx=\"%.1f\" cy=\"%.1f\" r=\"3\"><title>",
                      chart_x(&chart, figure->points[i].day), chart_y(&chart, figure->values[i]));
        html_text(out, surveys[figure->points[i].survey].generated, HTML_NAME);
        strbuf_puts(out, ": ");
        html_quantity(out, figure->values[i], figure->unit);
        strbuf_puts(out, "</title></circle>\n");
    }
    chart_text(out, chart.left, TEXT_Y, "start", NULL, surveys[figure->points[0].survey].generated);
    chart_text(out, chart.right, TEXT_Y, "end", NULL,
               surveys[figure->points[figure->count - 1].survey].generated);
    for (int top = 0; top < 2; top++) {
        strbuf_printf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">", chart.left - 6,
                      top ? chart.top + 10 : chart.bottom);
        html_quantity(out, top ? chart.y.high : chart.y.low, figure->unit);
        strbuf_puts(out, "</text>\n");
    }
    strbuf_puts(out, "</svg>\n");
}

static void figure_put_change(struct strbuf *out, const struct history_changes *changes,
                              const struct history_figure *figure,
                              const struct history_change *change)
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

static void changes_page_put_figure(struct strbuf *out, const struct history_changes *changes,
                                    const struct history_figure *figure)
{
    strbuf_puts(out, "<h2>");
    html_text(out, figure->rule->metric, HTML_NAME);
    strbuf_puts(out, "</h2>\n");
    for (size_t i = 0; i < figure->change_count; i++)
        figure_put_change(out, changes, figure, &figure->changes[i]);
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
        figure_put_drawing(out, changes, figure);
}

static void changes_page_put_states(struct strbuf *out, const struct history_changes *changes)
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
    html_page_begin(out_page, "History of a GPU", NULL);
    strbuf_puts(out_page, "<main>\n<h1>");
    html_text(out_page, symbols_data(symbols, last->node), HTML_NAME);
    if (last->index >= 0)
        strbuf_printf(out_page, ":%d", (int)last->index);
    strbuf_puts(out_page, "</h1>\n<p>");
    html_text(out_page, symbols_data(symbols, last->uuid), HTML_NAME);
    strbuf_puts(out_page, ", ");
    html_text(out_page, symbols_data(symbols, last->model), HTML_NAME);
    strbuf_puts(out_page, "</p>\n");
    changes_page_put_states(out_page, changes);
    /* Those that changed come first. */
    for (int changed = 1; changed >= 0; changed--)
        for (size_t i = 0; i < changes->figure_count; i++)
            if ((changes->figures[i].change_count > 0) == changed)
                changes_page_put_figure(out_page, changes, &changes->figures[i]);
    if (!changes->figure_count)
        strbuf_puts(out_page, "<p>No figure of this GPU was measured.</p>\n");
    strbuf_puts(out_page, "</main>\n");
    html_page_end(out_page, NULL);
}
