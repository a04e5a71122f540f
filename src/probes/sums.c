/* Figures of one GPU that must add up, held against each other. */
#include "probes/sums.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "probes/repeats.h"

enum { REASON_MAX = 160 };

/* Two ways to the same figure differ by no more than this share. */
static const double AGREEMENT = 0.025;

/* NULL unless it is a number of its own, no bound. */
static struct measure *number_of(struct measures *measures, const char *metric)
{
    for (size_t i = 0; i < measures->count; i++) {
        struct measure *m = &measures->items[i];
        if (strcmp(m->metric, metric) == 0 && m->kind == MEASURE_NUMBER &&
            measure_status_valued(m->status) && m->bound == MEASURE_EXACT)
            return m;
    }
    return NULL;
}

/* Mean hit of L2 where each line is at home in one of its parts, as many in each; NaN where that is
 * not known. */
static double hit_at_home(struct measures *measures)
{
    const struct measure *near = number_of(measures, "l2.latency");
    const struct measure *far = number_of(measures, "l2.latency_far");
    const struct measure *parts = number_of(measures, "l2.parts");
    if (!near || !parts || (parts->value > 1 && !far))
        return NAN;
    return parts->value > 1 ? (near->value + (parts->value - 1) * far->value) / parts->value
                            : near->value;
}

/* The difference says how far off either may be. */
static int doubt(struct measure *m, double difference, const char *reason)
{
    m->confidence = fmin(m->confidence, repeats_confidence(m->value, difference));
    measure_round(m);
    return m->status == MEASURE_OK ? measure_set_status(m, MEASURE_NOISY, reason) : 0;
}

int sums_check(struct measures *measures)
{
    struct measure *main = number_of(measures, "main.latency");
    struct measure *penalty = number_of(measures, "l2.miss_penalty");
    double hit = hit_at_home(measures);
    char reason[REASON_MAX];
    if (!main || !penalty || isnan(hit))
        return 0;
    double sum = hit + penalty->value, difference = fabs(sum - main->value);
    if (difference <= fmax(AGREEMENT * main->value, hypot(main->spread, penalty->spread)))
        return 0;
    snprintf(reason, sizeof reason,
             "main.latency is %.1f cycles, a hit of L2 and l2.miss_penalty together are %.1f",
             main->value, sum);
    int rc = doubt(main, difference, reason);
    return rc ? rc : doubt(penalty, difference, reason);
}
