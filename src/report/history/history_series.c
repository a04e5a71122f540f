/* One figure of the GPUs of one model over the surveys of a history. */
#include "report/history/history_series.h"

#include <errno.h>
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
static double median_of(const struct history_series *series, const struct history_gpu *gpu)
{
    size_t count = 0;
    for (size_t i = 0; i < gpu->count; i++) {
        double value = history_series_value(series, &gpu->sightings[i]);
        if (isfinite(value))
            series->scratch[count++] = value;
    }
    return count >= 2 ? robust_median(series->scratch, count) : NAN;
}

int history_series_levels(struct history_series *series)
{
    const size_t surveys = series->history->survey_count;
    double *ratios = mem_array(surveys * series->gpu_count, sizeof *ratios);
    size_t *counts = mem_array(surveys, sizeof *counts);
    if (!ratios || !counts) {
        free(ratios);
        free(counts);
        return -ENOMEM;
    }
    for (size_t g = 0; g < series->gpu_count; g++) {
        const struct history_gpu *gpu = series->gpus[g];
        double usual = median_of(series, gpu);
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
    return 0;
}

static size_t add_point(const struct history_series *series, uint32_t survey, double share,
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
    double usual = median_of(series, gpu);
    size_t count = 0;
    for (size_t i = 0; i < gpu->count; i++) {
        uint32_t survey = gpu->sightings[i].survey;
        double level = levelled ? series->levels[survey] : 1;
        double share = history_series_value(series, &gpu->sightings[i]) / usual / level;
        count = add_point(series, survey, share, points, count);
    }
    return count;
}

size_t history_series_level_points(const struct history_series *series,
                                   struct history_point *points)
{
    size_t count = 0;
    for (size_t i = 0; i < series->history->survey_count; i++)
        count = add_point(series, (uint32_t)i, series->levels[i], points, count);
    return count;
}
