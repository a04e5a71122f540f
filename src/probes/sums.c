/* Compares figures of one GPU that must add up. */
#include "probes/sums.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/portable_math.h"
#include "probes/caches/cache_report.h"
#include "probes/method/repeats.h"

enum { REASON_MAX = 160 };

/* Two ways to the same figure may differ by this share. */
static const double AGREEMENT = 0.025;

static struct measure *measure_of(struct measures *measures, const char *metric)
{
    for (size_t i = 0; i < measures->count; i++)
        if (strcmp(measures->items[i].metric, metric) == 0)
            return &measures->items[i];
    return NULL;
}

/* NULL unless the metric is a number and not a bound. */
static struct measure *sums_number_of(struct measures *measures, const char *metric)
{
    struct measure *m = measure_of(measures, metric);
    return m && m->kind == MEASURE_NUMBER && measure_status_valued(m->status) &&
                   m->bound == MEASURE_EXACT
               ? m
               : NULL;
}

/* Mean hit of L2 if every line has its home in one of its parts, the same number in each; NaN if
 * that is not known. */
static double hit_at_home(struct measures *measures)
{
    const struct measure *near = sums_number_of(measures, "l2.latency");
    const struct measure *far = sums_number_of(measures, "l2.latency_far");
    const struct measure *parts = sums_number_of(measures, "l2.parts");
    if (!near || !parts || (parts->value > 1 && !far))
        return NAN;
    return parts->value > 1 ? (near->value + (parts->value - 1) * far->value) / parts->value
                            : near->value;
}

/* The difference shows how far off either figure may be. */
static void sums_note_doubt(struct measure *m, double difference, const char *reason)
{
    m->confidence = fmin(m->confidence, repeats_confidence(m->value, difference));
    measure_round(m);
    if (m->status == MEASURE_OK)
        measure_set_status(m, MEASURE_NOISY, reason);
}

static void check_miss(struct measures *measures)
{
    struct measure *main = sums_number_of(measures, "main.latency");
    struct measure *penalty = sums_number_of(measures, "l2.miss_penalty");
    double hit = hit_at_home(measures);
    char reason[REASON_MAX];
    if (!main || !penalty || isnan(hit))
        return;
    double sum = hit + penalty->value, difference = fabs(sum - main->value);
    double error = portable_hypot(main->spread, penalty->spread);
    if (difference <= fmax(AGREEMENT * penalty->value, error))
        return;
    snprintf(reason, sizeof reason,
             "main.latency is %.1f cycles, a hit of L2 and l2.miss_penalty together are %.1f",
             main->value, sum);
    sums_note_doubt(penalty, difference, reason);
    /* main.latency is the larger figure: the difference must be too large for it as well. */
    if (difference > fmax(AGREEMENT * main->value, error))
        sums_note_doubt(main, difference, reason);
}

/* A line is found by what stays resident, as the size is, so it cannot be more certain than the
 * size. */
static void check_line(struct measures *measures, const char *memory)
{
    char name[CACHE_METRIC_MAX], reason[REASON_MAX];
    const struct measure *size = measure_of(measures, cache_metric(name, memory, "size"));
    struct measure *line = sums_number_of(measures, cache_metric(name, memory, "line"));
    bool doubtful = size && (size->status == MEASURE_NOISY || size->status == MEASURE_FAILED);
    if (!line || !doubtful)
        return;
    snprintf(reason, sizeof reason, "it rests on what stays resident, as %s.size does, which is %s",
             memory, size->status == MEASURE_NOISY ? "noisy" : "failed");
    sums_note_doubt(line, line->value, reason);
}

void sums_check(struct measures *measures)
{
    static const char *const memories[] = {"l1_data",     "texture",      "read_only",
                                           "constant_l1", "constant_l15", "l2"};
    check_miss(measures);
    for (size_t i = 0; i < COUNT_OF(memories); i++)
        check_line(measures, memories[i]);
}
