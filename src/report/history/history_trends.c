/* Figures that get worse from survey to survey: Theil-Sen slopes against the scatter of all
 * surveys. */
#include "report/history/history_trends.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "judge/robust.h"
#include "judge/student.h"
#include "report/history/history_line.h"

/* Fewer GPUs cannot tell a change of the model from one of a GPU. */
enum { PEERS_MIN = 5 };

/* Differences that a common scatter needs. */
enum { STEPS_MIN = 20 };

/* Degrees of freedom of the scatter of many GPUs: its tails are heavier than normal. */
static const double common_dof = 12;

/* The share of pairs of surveys of which the later one is worse. */
static const double steady_share = 0.75;

static const double day_s = 86400;

/* One metric of one model. */
struct field {
    struct history *history;
    const struct judge_metric *rule;
    uint32_t model, metric;
    const struct history_gpu **gpus; /* of this model */
    size_t gpu_count;
    double *levels;  /* by survey: the usual value of a GPU over its own median */
    double *scratch; /* room for one value of each survey */
    double scatter;  /* common to the GPUs, share; 0: unknown */
    double tail;     /* probability of a false trend */
    size_t room;     /* of history->trends */
};

/* NaN: not measured (again). */
static double value_of(const struct field *field, const struct history_sighting *sighting)
{
    const struct history_value *values = &field->history->values[sighting->value];
    if (sighting->state != HISTORY_FINE && sighting->state != HISTORY_WATCHED &&
        sighting->state != HISTORY_OUTLIER)
        return NAN;
    for (size_t i = 0; i < sighting->value_count; i++)
        if (values[i].metric == field->metric && values[i].value > 0)
            return values[i].value;
    return NAN;
}

/* The median of a GPU over its surveys; NaN if it was measured less than twice. */
static double median_of(const struct field *field, const struct history_gpu *gpu, double *scratch)
{
    size_t count = 0;
    for (size_t i = 0; i < gpu->count; i++) {
        double value = value_of(field, &gpu->sightings[i]);
        if (isfinite(value))
            scratch[count++] = value;
    }
    return count >= 2 ? robust_median(scratch, count) : NAN;
}

/* The level of each survey: what a new driver changes for all GPUs is no trend of one of them. 0 or
 * -ENOMEM. */
static int find_levels(struct field *field)
{
    const size_t surveys = field->history->survey_count;
    double *ratios = mem_array(surveys * field->gpu_count, sizeof *ratios);
    size_t *counts = mem_array(surveys, sizeof *counts);
    if (!ratios || !counts) {
        free(ratios);
        free(counts);
        return -ENOMEM;
    }
    for (size_t g = 0; g < field->gpu_count; g++) {
        const struct history_gpu *gpu = field->gpus[g];
        double usual = median_of(field, gpu, field->scratch);
        for (size_t i = 0; i < gpu->count; i++) {
            uint32_t survey = gpu->sightings[i].survey;
            double ratio = value_of(field, &gpu->sightings[i]) / usual;
            if (isfinite(ratio))
                ratios[survey * field->gpu_count + counts[survey]++] = ratio;
        }
    }
    for (size_t i = 0; i < surveys; i++)
        field->levels[i] =
            counts[i] < PEERS_MIN ? NAN : robust_median(&ratios[i * field->gpu_count], counts[i]);
    free(ratios);
    free(counts);
    return 0;
}

/* The series of a GPU at equal level, as shares of its median. Surveys in which too few GPUs of the
 * model were measured have no level: they are used only if none has one. */
static size_t series_of(const struct field *field, const struct history_gpu *gpu, bool levelled,
                        struct history_point *points)
{
    double usual = median_of(field, gpu, field->scratch);
    size_t count = 0;
    for (size_t i = 0; i < gpu->count; i++) {
        uint32_t survey = gpu->sightings[i].survey;
        double level = levelled ? field->levels[survey] : 1;
        double share = value_of(field, &gpu->sightings[i]) / usual / level;
        double day = (double)field->history->surveys[survey].time_s / day_s;
        if (isfinite(share) && (!count || points[count - 1].day < day))
            points[count++] = (struct history_point){day, share};
    }
    return count;
}

/* From survey to survey, because a trend hardly changes these differences. 0 or -ENOMEM. */
static int find_scatter(struct field *field, bool levelled, struct history_point *points)
{
    size_t room = 0, count = 0;
    for (size_t g = 0; g < field->gpu_count; g++)
        room += field->gpus[g]->count;
    double *steps = mem_array(2 * room, sizeof *steps);
    if (!steps)
        return -ENOMEM;
    for (size_t g = 0; g < field->gpu_count; g++) {
        size_t n = series_of(field, field->gpus[g], levelled, points);
        for (size_t i = 1; i < n; i++)
            steps[count++] = points[i].share - points[i - 1].share;
    }
    field->scatter = 0;
    if (levelled && count >= STEPS_MIN)
        field->scatter = robust_fit(steps, count, steps + room).sigma / sqrt(2);
    free(steps);
    return 0;
}

static int add(struct field *field, const struct history_trend *trend)
{
    struct history *history = field->history;
    struct history_trend *grown =
        mem_grow(history->trends, &field->room, history->trend_count + 1, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    history->trends = grown;
    grown[history->trend_count++] = *trend;
    return 0;
}

/* Adds the trend if it is a loss that is steady, large enough and beyond the scatter. */
static int judge_line(struct field *field, const struct history_gpu *gpu,
                      struct history_point *points, size_t count)
{
    const double sign = field->rule->worse == JUDGE_LOWER ? -1 : 1;
    struct history_line line;
    if (count < HISTORY_LINE_MIN || history_line_fit(points, count, &line))
        return count < HISTORY_LINE_MIN ? 0 : -ENOMEM;
    const double own = line.scatter, common = field->scatter, least = field->rule->floor / 8;
    const double scatter = fmax(fmax(own, common), least);
    /* A scatter that only this series shows rests on few values. */
    const double dof = gpu && common > 0 && own <= 2 * common ? common_dof : (double)line.count - 2;
    const double error = scatter * line.error_per_scatter;
    if (sign * line.change < field->rule->floor ||
        (sign > 0 ? line.rising : line.falling) < steady_share ||
        fabs(line.change) < error * student_quantile(field->tail, dof))
        return 0;
    return add(field, &(struct history_trend){.gpu = gpu,
                                              .model = field->model,
                                              .metric = field->metric,
                                              .change = line.change,
                                              .error = error,
                                              .scatter = scatter,
                                              .first = NAN,
                                              .last = NAN,
                                              .days = line.days,
                                              .surveys = count});
}

/* The values of the first and the last survey that measured the GPU. */
static void set_ends(const struct field *field, struct history_trend *trend)
{
    for (size_t i = 0; i < trend->gpu->count; i++) {
        double value = value_of(field, &trend->gpu->sightings[i]);
        if (!isfinite(value))
            continue;
        if (isnan(trend->first))
            trend->first = value;
        trend->last = value;
    }
}

static int judge_gpus(struct field *field, bool levelled, struct history_point *points)
{
    for (size_t g = 0; g < field->gpu_count; g++) {
        const size_t before = field->history->trend_count;
        size_t count = series_of(field, field->gpus[g], levelled, points);
        if (judge_line(field, field->gpus[g], points, count))
            return -ENOMEM;
        if (field->history->trend_count > before)
            set_ends(field, &field->history->trends[before]);
    }
    return 0;
}

static int judge_field(struct field *field, struct history_point *points)
{
    size_t levels = 0;
    int rc = find_levels(field);
    if (rc)
        return rc;
    for (size_t i = 0; i < field->history->survey_count; i++) {
        double day = (double)field->history->surveys[i].time_s / day_s;
        if (isfinite(field->levels[i]) && (!levels || points[levels - 1].day < day))
            points[levels++] = (struct history_point){day, field->levels[i]};
    }
    field->scatter = 0;
    rc = judge_line(field, NULL, points, levels);
    if (!rc)
        rc = find_scatter(field, levels > 0, points);
    return rc ? rc : judge_gpus(field, levels > 0, points);
}

/* The model in which a GPU was measured last. */
static uint32_t model_of(const struct history_gpu *gpu)
{
    return gpu->sightings[gpu->count - 1].model;
}

static int by_model(const void *left, const void *right)
{
    const struct history_gpu *a = *(const struct history_gpu *const *)left;
    const struct history_gpu *b = *(const struct history_gpu *const *)right;
    if (model_of(a) != model_of(b))
        return model_of(a) < model_of(b) ? -1 : 1;
    return (a > b) - (a < b);
}

/* Each metric of the model whose GPUs are gpus[0 .. count - 1]. */
static int judge_model(struct field *field, const struct judge_config *config,
                       struct history_point *points)
{
    for (size_t i = 0; i < config->metric_count; i++) {
        const struct judge_metric *rule = &config->metrics[i];
        field->metric = symbols_find(&field->history->symbols, rule->metric);
        field->rule = rule;
        if (!field->metric || (rule->worse != JUDGE_LOWER && rule->worse != JUDGE_HIGHER))
            continue;
        if (judge_field(field, points))
            return -ENOMEM;
    }
    return 0;
}

/* Models first; then the largest change. */
static int by_size(const void *left, const void *right, void *user)
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

static int judge_models(struct field *field, const struct judge_config *config,
                        const struct history_gpu **gpus, struct history_point *points)
{
    const size_t count = field->history->gpu_count;
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && model_of(gpus[end]) == model_of(gpus[i]);)
            end++;
        field->gpus = gpus + i;
        field->gpu_count = end - i;
        field->model = model_of(gpus[i]);
        if (field->model && judge_model(field, config, points))
            return -ENOMEM;
    }
    return 0;
}

int history_trends_find(struct history *history, const struct judge_config *config)
{
    const size_t surveys = history->survey_count, gpu_count = history->gpu_count;
    const struct history_gpu **gpus = mem_array(gpu_count, sizeof *gpus);
    struct history_point *points = mem_array(surveys, sizeof *points);
    struct field field = {.history = history};
    int rc = -ENOMEM;
    field.levels = mem_array(surveys, sizeof *field.levels);
    field.scratch = mem_array(surveys, sizeof *field.scratch);
    if (!gpus || !points || !field.levels || !field.scratch)
        goto out;
    for (size_t i = 0; i < gpu_count; i++)
        gpus[i] = &history->gpus[i];
    if (gpu_count)
        qsort(gpus, gpu_count, sizeof *gpus, by_model);
    field.tail = config->false_alarms / ((double)gpu_count * (double)config->metric_count + 1);
    field.tail = fmin(field.tail, 0.5);
    rc = surveys < HISTORY_LINE_MIN ? 0 : judge_models(&field, config, gpus, points);
    if (!rc && history->trend_count)
        qsort_r(history->trends, history->trend_count, sizeof *history->trends, by_size,
                &history->symbols);
out:
    free(gpus);
    free(points);
    free(field.levels);
    free(field.scratch);
    return rc;
}
