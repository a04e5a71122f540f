/* Tests one change point: split, KS test, step, and a p-value calibrated for the choice of the
 * split. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cpd/cpd_internal.h"

/* From this length on both calibrated tests are used: three values against the rest keep a p-value
 * below 0.01 even when it is doubled. */
enum { BOTH_TESTS_MIN = 16 };

/* A p-value below this share of alpha is accepted without the second test, which could only lower
 * it. */
static const double clear_share = 1e-3;

/* How many values at each end of the order are clipped to the next one. One or two wild values can
 * then neither attract the split nor make one; three at a new level still can. */
static size_t clip_count(size_t n)
{
    if (n < 12)
        return n < 6 ? 0 : 1;
    return 2;
}

static double middle_of(double a, double b)
{
    return a / 2.0 + b / 2.0;
}

/* Median of one side, from the sorted order of the whole series. */
static double side_median(const struct cpd__view *view, size_t split, bool right)
{
    size_t count = right ? view->n - split : split;
    size_t seen = 0;
    double lower = 0.0;
    for (size_t i = 0; i < view->n; i++) {
        if ((view->items[i].index >= split) != right)
            continue;
        if (seen == (count - 1) / 2)
            lower = view->items[i].value;
        if (seen == count / 2)
            return middle_of(lower, view->items[i].value);
        seen++;
    }
    return lower;
}

struct calibrated {
    double p;
    bool by_levels; /* the two-level test decided, with this threshold */
    double threshold;
};

/* Both tests condition on the values without their order. Which of them run depends only on the
 * values, so that choice needs no correction. Taking the smaller of two p-values does
 * (Bonferroni). */
static struct calibrated calibrate(const struct cpd__view *view, const double *ranks,
                                   const struct cpd_options *options)
{
    struct calibrated result = {.p = 1.0};
    bool two_levels = cpd__two_levels(view, &result.threshold);
    double p_levels = 1.0;
    if (two_levels) {
        p_levels = cpd__two_level_p(view, result.threshold);
        bool clear = 2.0 * p_levels <= clear_share * options->alpha;
        if (view->n < BOTH_TESTS_MIN || clear) {
            result.by_levels = true;
            result.p = clear ? 2.0 * p_levels : p_levels;
            return result;
        }
    }
    double p_ranks = cpd__permutation_p(ranks, view->n, options);
    result.by_levels = two_levels && (2.0 * p_levels <= options->alpha || p_levels <= p_ranks);
    result.p = fmin(1.0, two_levels ? 2.0 * fmin(p_levels, p_ranks) : p_ranks);
    return result;
}

/* Ranks ignore distances, so their best split is unreliable if one side is short. If the two-level
 * test decided, the split is found on the two levels. */
static void scores_for_split(const struct cpd__view *view, enum cpd_cost cost,
                             const struct calibrated *calibrated, double *scores)
{
    if (cost == CPD_COST_MEAN) {
        cpd__scores_mean(view, scores);
    } else if (calibrated->by_levels) {
        double share = 0.0;
        for (size_t i = 0; i < view->n; i++)
            share += (view->series[i] >= calibrated->threshold) / (double)view->n;
        for (size_t i = 0; i < view->n; i++)
            scores[i] = (view->series[i] >= calibrated->threshold) - share;
    }
}

static struct cpd_change judge(const struct cpd__view *view, const struct cpd_options *options,
                               double *scores)
{
    cpd__scores_rank(view, scores);
    struct calibrated calibrated = calibrate(view, scores, options);
    struct cpd_change change = {.p_value = calibrated.p};
    scores_for_split(view, options->cost, &calibrated, scores);
    cpd__best_split(scores, view->n, &change.split, &change.gain);
    cpd__ks(view->items, view->n, change.split, options->alpha, &change.ks);
    change.step = side_median(view, change.split, true) - side_median(view, change.split, false);
    /* Not by ks.rejected: the critical value exceeds 1 if a side has only three values. */
    change.found = change.p_value <= options->alpha && change.ks.p_value <= options->alpha &&
                   fabs(change.step) >= options->step_min;
    change.confidence = change.found ? 1.0 - change.p_value : 0.0;
    return change;
}

int cpd_test(const double *series, size_t n, const struct cpd_options *options,
             struct cpd_change *out_change)
{
    if (!(options->alpha > 0.0 && options->alpha < 1.0) || !(options->step_min >= 0.0))
        return -EINVAL;
    if (!cpd__finite(series, n))
        return -EDOM;
    double *scores = mem_array(n, sizeof *scores);
    struct cpd__item *items = cpd__sort(series, n);
    struct cpd__view view = {.series = series, .items = items, .n = n};
    if (n > 0) {
        view.lo = items[clip_count(n)].value;
        view.hi = items[n - 1 - clip_count(n)].value;
    }
    if (view.lo < view.hi) {
        *out_change = judge(&view, options, scores);
    } else {
        *out_change = (struct cpd_change){
            .p_value = 1.0,
            .ks = {.critical = 1.0, .p_value = 1.0},
        };
    }
    free(items);
    free(scores);
    return 0;
}
