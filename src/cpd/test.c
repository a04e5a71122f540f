/* The verdict on one change point: split, KS test, step and a p-value calibrated for the choice of
 * the split. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cpd/internal.h"

/* From this length on both calibrated tests can be afforded: three values against the rest keep a
 * p-value below 0.01 even when doubled. */
enum { BOTH_TESTS_MIN = 16 };

/* A p-value this far below alpha is taken without the second test, which could only lower it. */
static const double clear_share = 1e-3;

/* Values on each end of the order that are clipped to the next one: one or two wild values can
 * then neither attract the split nor make one, while three at a new level still can. */
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

/* Median of one side, by the order of the whole series. */
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

/* Both tests condition on the values without their order, so which of them run depends on the
 * values alone and needs no correction; that the better of two counts does (Bonferroni). */
static int calibrated_p(const struct cpd__view *view, const double *ranks,
                        const struct cpd_options *options, double *out_p)
{
    double p_levels = 1.0;
    double threshold;
    bool two_levels = cpd__two_levels(view, &threshold);
    if (two_levels) {
        int result = cpd__two_level_p(view, threshold, &p_levels);
        if (result < 0)
            return result;
        bool clear = 2.0 * p_levels <= clear_share * options->alpha;
        if (view->n < BOTH_TESTS_MIN || clear) {
            *out_p = clear ? 2.0 * p_levels : p_levels;
            return 0;
        }
    }
    double p_ranks;
    int result = cpd__permutation_p(ranks, view->n, options, &p_ranks);
    if (result < 0)
        return result;
    double p = two_levels ? 2.0 * fmin(p_levels, p_ranks) : p_ranks;
    *out_p = p < 1.0 ? p : 1.0;
    return 0;
}

static int judge(const struct cpd__view *view, const struct cpd_options *options, double *ranks,
                 double *scores, struct cpd_change *out_change)
{
    struct cpd_change change = {0};
    cpd__scores_rank(view, ranks);
    if (options->cost == CPD_COST_MEAN)
        cpd__scores_mean(view, scores);
    const double *by = options->cost == CPD_COST_MEAN ? scores : ranks;
    cpd__best_split(by, view->n, &change.split, &change.gain);
    cpd__ks(view->items, view->n, change.split, options->alpha, &change.ks);
    change.step = side_median(view, change.split, true) - side_median(view, change.split, false);
    int result = calibrated_p(view, ranks, options, &change.p_value);
    if (result < 0)
        return result;
    /* By its p-value, since the critical value exceeds 1 where a side has only three values. */
    change.found = change.p_value <= options->alpha && change.ks.p_value <= options->alpha &&
                   fabs(change.step) >= options->step_min;
    change.confidence = change.found ? 1.0 - change.p_value : 0.0;
    *out_change = change;
    return 0;
}

int cpd_test(const double *series, size_t n, const struct cpd_options *options,
             struct cpd_change *out_change)
{
    if (!(options->alpha > 0.0 && options->alpha < 1.0) || !(options->step_min >= 0.0))
        return -EINVAL;
    if (!cpd__finite(series, n))
        return -EDOM;
    int result = -ENOMEM;
    double *ranks = mem_array(n, sizeof *ranks);
    double *scores = mem_array(n, sizeof *scores);
    struct cpd__item *items = cpd__sort(series, n);
    if (!ranks || !scores || !items)
        goto out;
    struct cpd__view view = {.series = series, .items = items, .n = n};
    if (n > 0) {
        view.lo = items[clip_count(n)].value;
        view.hi = items[n - 1 - clip_count(n)].value;
    }
    if (view.lo < view.hi) {
        result = judge(&view, options, ranks, scores, out_change);
    } else {
        *out_change = (struct cpd_change){
            .p_value = 1.0,
            .ks = {.critical = 1.0, .p_value = 1.0},
        };
        result = 0;
    }
out:
    free(items);
    free(scores);
    free(ranks);
    return result;
}
