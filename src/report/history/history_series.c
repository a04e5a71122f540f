/* Figures over time: one figure of the GPUs of one model over the surveys of a history, and a
 * robust line through it. */
#include "report/history/history_series.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "judge/robust.h"

/* Fewer GPUs cannot tell a change of the model from one of a GPU. */
enum { PEERS_MIN = 5 };

static const double day_s = 86400;

uint32_t history_series_model(const struct history_gpu *gpu)
{
    return gpu->sightings[gpu->count - 1].model;
}

double history_series_value(const struct history_series *series,
                            const struct history_sighting *sighting)
{
    const struct history_value *values = &series->history->values[sighting->value];
    if (sighting->state != HISTORY_FINE && sighting->state != HISTORY_WATCHED &&
        sighting->state != HISTORY_OUTLIER)
        return NAN;
    for (size_t i = 0; i < sighting->value_count; i++)
        if (values[i].metric == series->metric && values[i].value > 0)
            return values[i].value;
    return NAN;
}

/* The median of a GPU over its surveys; NaN if it was measured less than twice. */
static double series_median(const struct history_series *series, const struct history_gpu *gpu)
{
    size_t count = 0;
    for (size_t i = 0; i < gpu->count; i++) {
        double value = history_series_value(series, &gpu->sightings[i]);
        if (isfinite(value))
            series->scratch[count++] = value;
    }
    return count >= 2 ? robust_median(series->scratch, count) : NAN;
}

void history_series_levels(struct history_series *series)
{
    const size_t surveys = series->history->survey_count;
    double *ratios = mem_array(surveys * series->gpu_count, sizeof *ratios);
    size_t *counts = mem_array(surveys, sizeof *counts);
    for (size_t g = 0; g < series->gpu_count; g++) {
        const struct history_gpu *gpu = series->gpus[g];
        double usual = series_median(series, gpu);
        for (size_t i = 0; i < gpu->count; i++) {
            uint32_t survey = gpu->sightings[i].survey;
            double ratio = history_series_value(series, &gpu->sightings[i]) / usual;
            if (isfinite(ratio))
                ratios[survey * series->gpu_count + counts[survey]++] = ratio;
        }
    }
    for (size_t i = 0; i < surveys; i++)
        series->levels[i] =
            counts[i] < PEERS_MIN ? NAN : robust_median(&ratios[i * series->gpu_count], counts[i]);
    free(ratios);
    free(counts);
}

static size_t series_add_point(const struct history_series *series, uint32_t survey, double share,
                               struct history_point *points, size_t count)
{
    double day = (double)series->history->surveys[survey].time_s / day_s;
    if (isfinite(share) && (!count || points[count - 1].day < day))
        points[count++] = (struct history_point){day, share, survey};
    return count;
}

size_t history_series_points(const struct history_series *series, const struct history_gpu *gpu,
                             bool levelled, struct history_point *points)
{
    double usual = series_median(series, gpu);
    size_t count = 0;
    for (size_t i = 0; i < gpu->count; i++) {
        uint32_t survey = gpu->sightings[i].survey;
        double level = levelled ? series->levels[survey] : 1;
        double share = history_series_value(series, &gpu->sightings[i]) / usual / level;
        count = series_add_point(series, survey, share, points, count);
    }
    return count;
}

size_t history_series_level_points(const struct history_series *series,
                                   struct history_point *points)
{
    size_t count = 0;
    for (size_t i = 0; i < series->history->survey_count; i++)
        count = series_add_point(series, (uint32_t)i, series->levels[i], points, count);
    return count;
}

/* The number of pairs grows with the square. */
enum { POINTS_MAX = 48 };

/* Replaces neighbours by their medians; returns how many points remain. */
static size_t points_thin(struct history_point *points, size_t count, double *scratch)
{
    if (count <= POINTS_MAX)
        return count;
    for (size_t i = 0; i < POINTS_MAX; i++) {
        size_t from = i * count / POINTS_MAX, to = (i + 1) * count / POINTS_MAX;
        struct history_point middle;
        for (size_t k = from; k < to; k++)
            scratch[k - from] = points[k].day;
        middle.day = robust_median(scratch, to - from);
        for (size_t k = from; k < to; k++)
            scratch[k - from] = points[k].share;
        middle.share = robust_median(scratch, to - from);
        points[i] = middle;
    }
    return POINTS_MAX;
}

/* Returns the slope, and counts the pairs that rise and fall. */
static double points_slope(const struct history_point *points, size_t count, double *slopes,
                           struct history_line *out)
{
    size_t pairs = 0, rising = 0, falling = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t k = i + 1; k < count; k++) {
            double slope = (points[k].share - points[i].share) / (points[k].day - points[i].day);
            rising += slope > 0;
            falling += slope < 0;
            slopes[pairs++] = slope;
        }
    out->rising = (double)rising / (double)pairs;
    out->falling = (double)falling / (double)pairs;
    return robust_median(slopes, pairs);
}

struct history_line history_line_fit(struct history_point *points, size_t count)
{
    struct history_line line = {.days = points[count - 1].day - points[0].day};
    const size_t most = count < POINTS_MAX ? count : POINTS_MAX, pairs = most * (most - 1) / 2;
    double *scratch = mem_array(count > pairs ? count : pairs, sizeof *scratch);
    double mean = 0, spread = 0, squares = 0;
    const size_t n = points_thin(points, count, scratch);
    const double slope = points_slope(points, n, scratch, &line);
    for (size_t i = 0; i < n; i++) {
        mean += points[i].day / (double)n;
        scratch[i] = points[i].share - slope * (points[i].day - points[0].day);
    }
    const double start = robust_median(scratch, n);
    for (size_t i = 0; i < n; i++) {
        double rest = points[i].share - start - slope * (points[i].day - points[0].day);
        squares += rest * rest;
        spread += (points[i].day - mean) * (points[i].day - mean);
    }
    line.change = slope * line.days / start;
    line.scatter = sqrt(squares / (double)(n - 2));
    line.error_per_scatter = line.days / sqrt(spread) / start;
    line.count = n;
    free(scratch);
    return line;
}
