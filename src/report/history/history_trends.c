/* Figures that get worse from survey to survey: Theil-Sen slopes against the scatter of all
 * surveys. */
#include "report/history/history.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/sort.h"
#include "judge/robust.h"
#include "report/history/history_series.h"

/* Differences that a common scatter needs. */
enum { STEPS_MIN = 20 };

/* Degrees of freedom of the scatter of many GPUs: its tails are heavier than normal. */
static const double common_dof = 12;

/* The share of pairs of surveys of which the later one is worse. */
static const double steady_share = 0.75;

/* One metric of one model. */
struct trend_field {
    struct history *history;
    const struct judge_metric *rule;
    struct history_series series;
    uint32_t model;
    double scatter; /* common to the GPUs, share; 0: unknown */
    double tail;    /* probability of a false trend */
    size_t room;    /* of history->trends */
};

/* From survey to survey, because a trend hardly changes these differences. */
static void trend_find_scatter(struct trend_field *field, bool levelled,
                               struct history_point *points)
{
    size_t room = 0, count = 0;
    for (size_t g = 0; g < field->series.gpu_count; g++)
        room += field->series.gpus[g]->count;
    double *steps = mem_array(2 * room, sizeof *steps);
    for (size_t g = 0; g < field->series.gpu_count; g++) {
        size_t n = history_series_points(&field->series, field->series.gpus[g], levelled, points);
        for (size_t i = 1; i < n; i++)
            steps[count++] = points[i].share - points[i - 1].share;
    }
    field->scatter = 0;
    if (levelled && count >= STEPS_MIN)
        field->scatter = robust_fit(steps, count, steps + room).sigma / sqrt(2);
    free(steps);
}

/* Adds the trend if it is a loss that is steady, large enough and beyond the scatter. */
static void trend_judge_line(struct trend_field *field, const struct history_gpu *gpu,
                             struct history_point *points, size_t count)
{
    const double sign = field->rule->worse == JUDGE_LOWER ? -1 : 1;
    if (count < HISTORY_LINE_MIN)
        return;
    const struct history_line line = history_line_fit(points, count);
    const double own = line.scatter, common = field->scatter, least = field->rule->floor / 8;
    const double scatter = fmax(fmax(own, common), least);
    /* A scatter that only this series shows rests on few values. */
    const double dof = gpu && common > 0 && own <= 2 * common ? common_dof : (double)line.count - 2;
    const double error = scatter * line.error_per_scatter;
    if (sign * line.change < field->rule->floor ||
        (sign > 0 ? line.rising : line.falling) < steady_share ||
        fabs(line.change) < error * robust_student_quantile(field->tail, dof))
        return;
    struct history *history = field->history;
    history->trends =
        mem_grow(history->trends, &field->room, history->trend_count + 1, sizeof *history->trends);
    history->trends[history->trend_count++] = (struct history_trend){.gpu = gpu,
                                                                     .model = field->model,
                                                                     .metric = field->series.metric,
                                                                     .change = line.change,
                                                                     .error = error,
                                                                     .scatter = scatter,
                                                                     .first = NAN,
                                                                     .last = NAN,
                                                                     .days = line.days,
                                                                     .surveys = count};
}

/* The values of the first and the last survey that measured the GPU. */
static void trend_set_ends(const struct trend_field *field, struct history_trend *trend)
{
    for (size_t i = 0; i < trend->gpu->count; i++) {
        double value = history_series_value(&field->series, &trend->gpu->sightings[i]);
        if (!isfinite(value))
            continue;
        if (isnan(trend->first))
            trend->first = value;
        trend->last = value;
    }
}

static void trends_judge_field(struct trend_field *field, struct history_point *points)
{
    history_series_levels(&field->series);
    const size_t levels = history_series_level_points(&field->series, points);
    field->scatter = 0;
    trend_judge_line(field, NULL, points, levels);
    trend_find_scatter(field, levels > 0, points);
    for (size_t g = 0; g < field->series.gpu_count; g++) {
        const size_t before = field->history->trend_count;
        size_t count =
            history_series_points(&field->series, field->series.gpus[g], levels > 0, points);
        trend_judge_line(field, field->series.gpus[g], points, count);
        if (field->history->trend_count > before)
            trend_set_ends(field, &field->history->trends[before]);
    }
}

static int gpu_model_order(const void *left, const void *right)
{
    const struct history_gpu *a = *(const struct history_gpu *const *)left;
    const struct history_gpu *b = *(const struct history_gpu *const *)right;
    if (history_series_model(a) != history_series_model(b))
        return history_series_model(a) < history_series_model(b) ? -1 : 1;
    return (a > b) - (a < b);
}

/* Each metric of the model whose GPUs are in the series. */
static void trends_judge_model(struct trend_field *field, const struct judge_config *config,
                               struct history_point *points)
{
    for (size_t i = 0; i < config->metric_count; i++) {
        field->rule = &config->metrics[i];
        field->series.metric = symbols_find(&field->history->symbols, field->rule->metric);
        if (field->series.metric &&
            (field->rule->worse == JUDGE_LOWER || field->rule->worse == JUDGE_HIGHER))
            trends_judge_field(field, points);
    }
}

/* Models first; then the largest change. */
static int trend_order(const void *left, const void *right, void *user)
{
    const struct history_trend *a = left, *b = right;
    const struct symbols *symbols = user;
    if (!a->gpu != !b->gpu)
        return a->gpu ? 1 : -1;
    if (fabs(a->change) != fabs(b->change))
        return fabs(a->change) > fabs(b->change) ? -1 : 1;
    int order = str_order(symbols_data(symbols, a->metric), symbols_data(symbols, b->metric));
    if (order || !a->gpu)
        return order ? order : (a->model > b->model) - (a->model < b->model);
    return str_order(symbols_data(symbols, a->gpu->sightings[0].uuid),
                     symbols_data(symbols, b->gpu->sightings[0].uuid));
}

void history_trends_find(struct history *history, const struct judge_config *config)
{
    const size_t surveys = history->survey_count, count = history->gpu_count;
    const struct history_gpu **gpus = mem_array(count, sizeof *gpus);
    struct history_point *points = mem_array(surveys, sizeof *points);
    struct trend_field field = {
        .history = history,
        .series = {.history = history,
                   .levels = mem_array(surveys, sizeof *field.series.levels),
                   .scratch = mem_array(surveys, sizeof *field.series.scratch)},
        .tail =
            fmin(config->false_alarms / ((double)count * (double)config->metric_count + 1), 0.5)};
    for (size_t i = 0; i < count; i++)
        gpus[i] = &history->gpus[i];
    if (count)
        sort_stable(gpus, count, sizeof *gpus, gpu_model_order);
    for (size_t i = 0, end; i < count && surveys >= HISTORY_LINE_MIN; i = end) {
        for (end = i + 1;
             end < count && history_series_model(gpus[end]) == history_series_model(gpus[i]);)
            end++;
        field.series.gpus = gpus + i;
        field.series.gpu_count = end - i;
        field.model = history_series_model(gpus[i]);
        if (field.model)
            trends_judge_model(&field, config, points);
    }
    if (history->trend_count)
        sort_stable_with(history->trends, history->trend_count, sizeof *history->trends,
                         trend_order, &history->symbols);
    free(gpus);
    free(points);
    free(field.series.levels);
    free(field.series.scratch);
}
