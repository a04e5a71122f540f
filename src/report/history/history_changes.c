/* Since when the figures of one GPU are different: the GPU that a user names, and the change points
 * of each of its figures. */
#include "report/history/history_changes.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "cpd/cpd.h"
#include "inventory/results.h"
#include "report/history/history_series.h"

/* "3" is the index, anything else the PCI address or its end ("3b:00.0"). */
static bool sighting_is_at(const struct history *history, const struct history_sighting *sighting,
                           const char *place)
{
    const char *pci = symbols_data(&history->symbols, sighting->pci);
    uint64_t index;
    if (str_parse_u64(place, &index) == 0)
        return sighting->index >= 0 && (uint64_t)sighting->index == index;
    const size_t length = strlen(place), whole = pci ? strlen(pci) : 0;
    return length >= 4 && length <= whole && strcasecmp(pci + whole - length, place) == 0;
}

/* The card that was seen last in a place; NULL: none ever was. */
static const struct history_gpu *history_find_at(const struct history *history, uint32_t node,
                                                 const char *place)
{
    const struct history_gpu *found = NULL;
    uint32_t latest = 0;
    for (size_t g = 0; g < history->gpu_count; g++)
        for (size_t i = history->gpus[g].count; i-- > 0;) {
            const struct history_sighting *sighting = &history->gpus[g].sightings[i];
            if (sighting->node != node || !sighting_is_at(history, sighting, place))
                continue;
            if (!found || sighting->survey > latest) {
                found = &history->gpus[g];
                latest = sighting->survey;
            }
            break;
        }
    return found;
}

/* -ENOENT with the nearest name of a node. */
static int history_no_node(const struct history *history, const char *node, struct err *err)
{
    const char **names = mem_array(history->visit_count, sizeof *names);
    size_t count = 0;
    for (size_t i = 0; i < history->visit_count; i++) /* sorted by node */
        if (!i || history->visits[i].node != history->visits[i - 1].node)
            names[count++] = symbols_data(&history->symbols, history->visits[i].node);
    const char *near = str_nearest(node, names, count);
    int rc = near ? err_set(err, -ENOENT,
                            "no node \"%.60s\" in these inventories; did you mean "
                            "\"%.60s\"?",
                            node, near)
                  : err_set(err, -ENOENT, "no node \"%.60s\" in these inventories", node);
    free(names);
    return rc;
}

static int history_find_by_place(const struct history *history, const char *name,
                                 const struct history_gpu **out_gpu, struct err *err)
{
    const char *colon = strchr(name, ':');
    char *node = str_copy_n(name, (size_t)(colon - name));
    const uint32_t symbol = symbols_find(&history->symbols, node);
    const struct history_gpu *found = symbol ? history_find_at(history, symbol, colon + 1) : NULL;
    int rc = 0;
    if (found)
        *out_gpu = found;
    else if (!symbol)
        rc = history_no_node(history, node, err);
    else
        rc = err_set(err, -ENOENT, "no GPU \"%.60s\" was ever seen on %.60s", colon + 1, node);
    free(node);
    return rc;
}

int history_changes_gpu(const struct history *history, const char *name,
                        const struct history_gpu **out_gpu, struct err *err)
{
    const struct history_gpu *found = NULL;
    size_t count = 0;
    for (size_t g = 0; g < history->gpu_count; g++) {
        const char *uuid = symbols_data(&history->symbols, history->gpus[g].sightings[0].uuid);
        if (!inventory_uuid_matches(uuid, name))
            continue;
        found = &history->gpus[g];
        count++;
        if (strcasecmp(uuid, name) == 0) { /* not only the beginning */
            count = 1;
            break;
        }
    }
    if (count == 1) {
        *out_gpu = found;
        return 0;
    }
    if (count)
        return err_set(err, -ENOTUNIQ, "%zu GPUs begin with \"%.60s\"", count, name);
    if (strchr(name, ':'))
        return history_find_by_place(history, name, out_gpu, err);
    return err_set(err, -ENOENT,
                   "no GPU begins with \"%.60s\"; a GPU is NODE:INDEX, NODE:PCI or a UUID", name);
}

static const double alpha = 0.01;

/* Where a series is split, in rising order. */
struct series_splits {
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
 * figure that fell and rose again has no single split. The number of windows divides
 * alpha. *out_change.split counts from `from`. */
static int splits_find_one(const struct series_splits *splits, size_t from, size_t to,
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
static int splits_find_all(struct series_splits *splits, size_t from, size_t to)
{
    struct cpd_change change;
    int rc = splits_find_one(splits, from, to, &change);
    if (rc || !change.found)
        return rc;
    const size_t middle = from + change.split;
    rc = splits_find_all(splits, from, middle);
    if (rc)
        return rc;
    splits->at[splits->count] = middle;
    splits->confidence[splits->count++] = change.confidence;
    return splits_find_all(splits, middle, to);
}

/* Finds the splits of `points`, released with splits_fini. 0 or an error of cpd_test. */
static int splits_find(const struct history_point *points, size_t count, double step_min,
                       struct series_splits *out)
{
    *out = (struct series_splits){.step_min = step_min};
    out->at = mem_array(count + 1, sizeof *out->at);
    out->confidence = mem_array(count, sizeof *out->confidence);
    out->values = mem_array(count, sizeof *out->values);
    for (size_t i = 0; i < count; i++)
        out->values[i] = points[i].share;
    int rc = splits_find_all(out, 0, count);
    out->at[out->count] = count;
    return rc;
}

static void splits_fini(struct series_splits *splits)
{
    free(splits->at);
    free(splits->confidence);
    free(splits->values);
}

/* values: as measured; NULL: of a model, which has none. */
static void splits_to_changes(const struct series_splits *splits,
                              const struct history_point *points, const double *values,
                              struct history_change **out, size_t *out_count)
{
    struct history_change *made = mem_array(splits->count, sizeof *made);
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
}

/* Standard deviation of the values around the medians of the pieces between the splits. */
static double splits_scatter(const struct series_splits *splits, size_t count)
{
    double sum = 0;
    for (size_t i = 0, from = 0; i <= splits->count; from = splits->at[i++])
        for (size_t k = from, to = splits->at[i]; k < to; k++) {
            double rest = splits->values[k] - cpd_median(splits->values + from, to - from);
            sum += rest * rest;
        }
    return sqrt(sum / ((double)count - 2));
}

/* A slow fall has no date. It is reported as such if a line describes it better than the pieces. */
static void figure_check_gradual(struct history_figure *figure, const struct series_splits *splits)
{
    struct history_point *copy = mem_array(figure->count, sizeof *copy);
    memcpy(copy, figure->points, figure->count * sizeof *copy);
    const struct history_line line = history_line_fit(copy, figure->count);
    free(copy);
    if (!(line.scatter < splits_scatter(splits, figure->count)))
        return;
    const size_t last = figure->count - 1;
    figure->course = HISTORY_GRADUAL;
    figure->changes[0] = (struct history_change){.before = figure->points[0].survey,
                                                 .after = figure->points[last].survey,
                                                 .change = line.change,
                                                 .value_before = figure->values[0],
                                                 .value_after = figure->values[last],
                                                 .confidence = figure->changes[0].confidence};
    figure->change_count = 1;
}

static int figure_find_changes(struct history_figure *figure)
{
    struct series_splits splits;
    if (figure->count < HISTORY_CHANGE_VALUES_MIN)
        return 0;
    int rc = splits_find(figure->points, figure->count, figure->rule->floor, &splits);
    if (!rc)
        splits_to_changes(&splits, figure->points, figure->values, &figure->changes,
                          &figure->change_count);
    figure->course = figure->change_count ? HISTORY_STEPS : HISTORY_STEADY;
    if (figure->change_count)
        figure_check_gradual(figure, &splits);
    splits_fini(&splits);
    return rc;
}

/* What all GPUs of the model did, such as after a new driver. points: scratch. */
static int figure_find_model_changes(struct history_figure *figure,
                                     const struct history_series *series,
                                     struct history_point *points)
{
    struct series_splits splits;
    const size_t count = history_series_level_points(series, points);
    if (count < HISTORY_CHANGE_VALUES_MIN)
        return 0;
    int rc = splits_find(points, count, figure->rule->floor, &splits);
    if (!rc)
        splits_to_changes(&splits, points, NULL, &figure->model_changes,
                          &figure->model_change_count);
    splits_fini(&splits);
    return rc;
}

/* The values as measured, beside the points. */
static void figure_take_values(struct history_figure *figure, const struct history_series *series,
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
static void figure_take_levels(struct history_figure *figure, const struct history_series *series)
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
static int changes_add_figure(struct history_changes *changes, struct history_series *series,
                              const struct judge_metric *rule)
{
    const struct history *history = series->history;
    const size_t surveys = history->survey_count;
    struct history_figure *figure = &changes->figures[changes->figure_count];
    series->metric = symbols_find(&history->symbols, rule->metric);
    if (!series->metric)
        return 0;
    history_series_levels(series);
    *figure = (struct history_figure){
        .rule = rule,
        .unit = series->metric < history->unit_room
                    ? symbols_data(&history->symbols, history->units[series->metric])
                    : NULL,
        .points = mem_array(surveys, sizeof *figure->points),
        .values = mem_array(surveys, sizeof *figure->values),
        .levels = mem_array(surveys, sizeof *figure->levels)};
    changes->figure_count++;
    figure->levelled = history_series_level_points(series, figure->points) > 0;
    int rc = figure_find_model_changes(figure, series, figure->points);
    if (rc)
        return rc;
    figure->count = history_series_points(series, changes->gpu, figure->levelled, figure->points);
    figure_take_values(figure, series, changes->gpu);
    rc = figure_find_changes(figure);
    if (!rc)
        figure_take_levels(figure, series);
    return rc;
}

static const struct judge_metric *config_find_rule(const struct judge_config *config,
                                                   const char *metric, struct err *err)
{
    const char **names = mem_array(config->metric_count, sizeof *names);
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

static int changes_analyse(struct history_changes *changes, const struct judge_config *config,
                           const struct judge_metric *only)
{
    const struct history *history = changes->history;
    struct history_series series = {
        .history = history,
        .gpus = mem_array(history->gpu_count, sizeof *series.gpus),
        .levels = mem_array(history->survey_count, sizeof *series.levels),
        .scratch = mem_array(history->survey_count, sizeof *series.scratch)};
    int rc = 0;
    changes->figures = mem_array(config->metric_count, sizeof *changes->figures);
    for (size_t g = 0; g < history->gpu_count; g++)
        if (history_series_model(&history->gpus[g]) == history_series_model(changes->gpu))
            series.gpus[series.gpu_count++] = &history->gpus[g];
    for (size_t i = 0; i < config->metric_count && !rc; i++) {
        const struct judge_metric *rule = &config->metrics[i];
        if (only ? rule == only : rule->worse == JUDGE_LOWER || rule->worse == JUDGE_HIGHER)
            rc = changes_add_figure(changes, &series, rule);
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
    const struct judge_metric *only = metric ? config_find_rule(config, metric, err) : NULL;
    if (metric && !only)
        return err->code;
    int rc = changes_analyse(&changes, config, only);
    if (rc) {
        history_changes_fini(&changes);
        return err_set(err, rc, "cannot analyse the figures");
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
