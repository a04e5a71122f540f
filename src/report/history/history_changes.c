/* Since when the figures of one GPU are different: change points of each figure. */
#include "report/history/history_changes.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cpd/cpd.h"
#include "report/history/history_series.h"

static const double alpha = 0.01;

/* Where a series is split, in rising order. */
struct splits {
    size_t *at;
    double *confidence;
    size_t count;
    double *values; /* the series */
    double step_min;
};

bool history_change_is_worse(const struct history_figure *figure,
                             const struct history_change *change)
{
    return figure->rule->worse == JUDGE_LOWER    ? change->change < 0
           : figure->rule->worse == JUDGE_HIGHER ? change->change > 0
                                                 : true;
}

/* Tests windows of values [from, to): the whole, then halves and quarters that overlap, since a
 * figure that fell and rose again has no single split. The number of windows divides alpha.
 * *out_change.split counts from `from`. */
static int find_split(const struct splits *splits, size_t from, size_t to,
                      struct cpd_change *out_change)
{
    const struct cpd_options whole = {
        .cost = CPD_COST_RANK, .alpha = alpha, .step_min = splits->step_min, .seed = 1};
    const size_t count = to - from;
    *out_change = (struct cpd_change){0};
    for (size_t parts = 1; parts <= 4 && count / parts >= HISTORY_CHANGE_VALUES_MIN; parts *= 2) {
        struct cpd_options options = whole;
        const size_t windows = 2 * parts - 1, length = count / parts;
        options.alpha = alpha / (double)windows;
        for (size_t i = 0; i < windows; i++) {
            struct cpd_change change;
            const size_t begin = i * (count - length) / (windows > 1 ? windows - 1 : 1);
            int rc = cpd_test(splits->values + from + begin, length, &options, &change);
            if (rc)
                return rc;
            if (change.found && fabs(change.step) > fabs(out_change->step)) {
                *out_change = change;
                out_change->split += begin;
            }
        }
        if (out_change->found)
            break;
    }
    return 0;
}

/* Splits values [from, to) at every change point: the largest one first, then each side. */
static int split(struct splits *splits, size_t from, size_t to)
{
    struct cpd_change change;
    int rc = find_split(splits, from, to, &change);
    if (rc || !change.found)
        return rc;
    const size_t middle = from + change.split;
    rc = split(splits, from, middle);
    if (rc)
        return rc;
    splits->at[splits->count] = middle;
    splits->confidence[splits->count++] = change.confidence;
    return split(splits, middle, to);
}

/* Finds the splits of `points`; 0 or -ENOMEM. Released with splits_free. */
static int find_splits(const struct history_point *points, size_t count, double step_min,
                       struct splits *out)
{
    *out = (struct splits){.step_min = step_min};
    out->at = mem_array(count + 1, sizeof *out->at);
    out->confidence = mem_array(count, sizeof *out->confidence);
    out->values = mem_array(count, sizeof *out->values);
    if (!out->at || !out->confidence || !out->values)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        out->values[i] = points[i].share;
    int rc = split(out, 0, count);
    out->at[out->count] = count;
    return rc;
}

static void splits_free(struct splits *splits)
{
    free(splits->at);
    free(splits->confidence);
    free(splits->values);
}

/* values: as measured; NULL: of a model, which has none. */
static int make_changes(const struct splits *splits, const struct history_point *points,
                        const double *values, struct history_change **out, size_t *out_count)
{
    struct history_change *made = mem_array(splits->count, sizeof *made);
    if (!made)
        return -ENOMEM;
    for (size_t i = 0; i < splits->count; i++) {
        const size_t from = i ? splits->at[i - 1] : 0, at = splits->at[i], to = splits->at[i + 1];
        const double left = cpd_median(splits->values + from, at - from);
        const double right = cpd_median(splits->values + at, to - at);
        made[i] = (struct history_change){
            .before = points[at - 1].survey,
            .after = points[at].survey,
            .change = right / left - 1,
            .value_before = values ? cpd_median(values + from, at - from) : NAN,
            .value_after = values ? cpd_median(values + at, to - at) : NAN,
            .confidence = splits->confidence[i]};
    }
    *out = made;
    *out_count = splits->count;
    return 0;
}

/* Standard deviation of the values around the medians of the pieces between the splits. */
static double piece_scatter(const struct splits *splits, size_t count)
{
    double sum = 0;
    for (size_t i = 0, from = 0; i <= splits->count; from = splits->at[i++])
        for (size_t k = from, to = splits->at[i]; k < to; k++) {
            double rest = splits->values[k] - cpd_median(splits->values + from, to - from);
            sum += rest * rest;
        }
    return sqrt(sum / ((double)count - 2));
}

/* A slow fall has no date. It is told as such if a line describes it better than the pieces. */
static int check_gradual(struct history_figure *figure, const struct splits *splits)
{
    struct history_line line;
    struct history_point *copy = mem_array(figure->count, sizeof *copy);
    if (!copy)
        return -ENOMEM;
    memcpy(copy, figure->points, figure->count * sizeof *copy);
    int rc = history_line_fit(copy, figure->count, &line);
    free(copy);
    if (rc || !(line.scatter < piece_scatter(splits, figure->count)))
        return rc;
    const size_t last = figure->count - 1;
    figure->course = HISTORY_GRADUAL;
    figure->changes[0] = (struct history_change){.before = figure->points[0].survey,
                                                 .after = figure->points[last].survey,
                                                 .change = line.change,
                                                 .value_before = figure->values[0],
                                                 .value_after = figure->values[last],
                                                 .confidence = figure->changes[0].confidence};
    figure->change_count = 1;
    return 0;
}

static int find_changes(struct history_figure *figure)
{
    struct splits splits;
    if (figure->count < HISTORY_CHANGE_VALUES_MIN)
        return 0;
    int rc = find_splits(figure->points, figure->count, figure->rule->floor, &splits);
    if (!rc)
        rc = make_changes(&splits, figure->points, figure->values, &figure->changes,
                          &figure->change_count);
    figure->course = figure->change_count ? HISTORY_STEPS : HISTORY_STEADY;
    if (!rc && figure->change_count)
        rc = check_gradual(figure, &splits);
    splits_free(&splits);
    return rc;
}

/* What all GPUs of the model did, such as after a new driver. points: scratch. */
static int find_model_changes(struct history_figure *figure, const struct history_series *series,
                              struct history_point *points)
{
    struct splits splits;
    const size_t count = history_series_level_points(series, points);
    if (count < HISTORY_CHANGE_VALUES_MIN)
        return 0;
    int rc = find_splits(points, count, figure->rule->floor, &splits);
    if (!rc)
        rc = make_changes(&splits, points, NULL, &figure->model_changes,
                          &figure->model_change_count);
    splits_free(&splits);
    return rc;
}

static const char *unit_of(const struct history *history, uint32_t metric)
{
    return metric < history->unit_room ? symbols_data(&history->symbols, history->units[metric])
                                       : NULL;
}

/* The values as measured, beside the points. */
static void take_values(struct history_figure *figure, const struct history_series *series,
                        const struct history_gpu *gpu)
{
    size_t at = 0;
    for (size_t i = 0; i < gpu->count && at < figure->count; i++) {
        if (gpu->sightings[i].survey != figure->points[at].survey)
            continue;
        figure->values[at] = history_series_value(series, &gpu->sightings[i]);
        at++;
    }
}

/* Where the GPU would be if it had followed its model since before its first change. */
static void take_levels(struct history_figure *figure, const struct history_series *series)
{
    const bool steps = figure->course == HISTORY_STEPS;
    size_t first = 0; /* values before the first change */
    while (first < figure->count &&
           (!steps || figure->points[first].survey <= figure->changes[0].before)) {
        figure->levels[first] =
            figure->values[first] / series->levels[figure->points[first].survey];
        first++;
    }
    const double usual = cpd_median(figure->levels, first); /* NaN if a level is unknown */
    for (size_t i = 0; i < figure->count; i++)
        figure->levels[i] = usual * series->levels[figure->points[i].survey];
}

/* Adds the figure if the GPU has it in two surveys. */
static int add_figure(struct history_changes *changes, struct history_series *series,
                      const struct judge_metric *rule)
{
    const size_t surveys = series->history->survey_count;
    struct history_figure *figure = &changes->figures[changes->figure_count];
    series->metric = symbols_find(&series->history->symbols, rule->metric);
    if (!series->metric)
        return 0;
    int rc = history_series_levels(series);
    if (rc)
        return rc;
    *figure = (struct history_figure){.rule = rule,
                                      .unit = unit_of(series->history, series->metric),
                                      .points = mem_array(surveys, sizeof *figure->points),
                                      .values = mem_array(surveys, sizeof *figure->values),
                                      .levels = mem_array(surveys, sizeof *figure->levels)};
    changes->figure_count++;
    if (!figure->points || !figure->values || !figure->levels)
        return -ENOMEM;
    figure->levelled = history_series_level_points(series, figure->points) > 0;
    rc = find_model_changes(figure, series, figure->points);
    if (rc)
        return rc;
    figure->count = history_series_points(series, changes->gpu, figure->levelled, figure->points);
    take_values(figure, series, changes->gpu);
    rc = find_changes(figure);
    if (!rc)
        take_levels(figure, series);
    return rc;
}

static const struct judge_metric *find_rule(const struct judge_config *config, const char *metric,
                                            struct err *err)
{
    const char **names = mem_array(config->metric_count, sizeof *names);
    if (!names) {
        err_no_memory(err);
        return NULL;
    }
    for (size_t i = 0; i < config->metric_count; i++)
        names[i] = config->metrics[i].metric;
    const char *near = str_nearest(metric, names, config->metric_count);
    free(names);
    for (size_t i = 0; i < config->metric_count; i++)
        if (str_equal(config->metrics[i].metric, metric))
            return &config->metrics[i];
    if (near)
        err_set(err, -EINVAL, "no metric \"%.60s\"; did you mean \"%s\"?", metric, near);
    else
        err_set(err, -EINVAL, "no metric \"%.60s\" in judge.metrics of the configuration", metric);
    return NULL;
}

static int analyse(struct history_changes *changes, const struct judge_config *config,
                   const struct judge_metric *only)
{
    const struct history *history = changes->history;
    struct history_series series = {.history = history};
    int rc = -ENOMEM;
    series.gpus = mem_array(history->gpu_count, sizeof *series.gpus);
    series.levels = mem_array(history->survey_count, sizeof *series.levels);
    series.scratch = mem_array(history->survey_count, sizeof *series.scratch);
    changes->figures = mem_array(config->metric_count, sizeof *changes->figures);
    if (series.gpus && series.levels && series.scratch && changes->figures) {
        for (size_t g = 0; g < history->gpu_count; g++)
            if (history_series_model(&history->gpus[g]) == history_series_model(changes->gpu))
                series.gpus[series.gpu_count++] = &history->gpus[g];
        rc = 0;
    }
    for (size_t i = 0; i < config->metric_count && !rc; i++) {
        const struct judge_metric *rule = &config->metrics[i];
        if (only ? rule == only : rule->worse == JUDGE_LOWER || rule->worse == JUDGE_HIGHER)
            rc = add_figure(changes, &series, rule);
    }
    free(series.gpus);
    free(series.levels);
    free(series.scratch);
    return rc;
}

int history_changes_find(const struct history *history, const struct history_gpu *gpu,
                         const struct judge_config *config, const char *metric,
                         struct history_changes *out_changes, struct err *err)
{
    struct history_changes changes = {.history = history, .gpu = gpu};
    const struct judge_metric *only = metric ? find_rule(config, metric, err) : NULL;
    if (metric && !only)
        return err->code;
    int rc = analyse(&changes, config, only);
    if (rc) {
        history_changes_fini(&changes);
        return rc == -ENOMEM ? err_no_memory(err) : err_set(err, rc, "cannot analyse the figures");
    }
    *out_changes = changes;
    return 0;
}

void history_changes_fini(struct history_changes *changes)
{
    for (size_t i = 0; i < changes->figure_count; i++) {
        free(changes->figures[i].points);
        free(changes->figures[i].values);
        free(changes->figures[i].levels);
        free(changes->figures[i].changes);
        free(changes->figures[i].model_changes);
    }
    free(changes->figures);
    *changes = (struct history_changes){0};
}
