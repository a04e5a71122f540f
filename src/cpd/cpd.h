/* Change-point detection on series of numbers (thesis, section 3.3): pure functions.
 *
 * Positions: a split s of a series of n values parts it into [0, s) and [s, n), 0 < s < n.
 * NaN anywhere in an input is -EDOM, unless a function says otherwise; infinities too. */
#ifndef GPUMEMTOPO_CPD_CPD_H
#define GPUMEMTOPO_CPD_CPD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cpd_cost {
    CPD_COST_MEAN, /* squared error around the segment's mean: finds shifts, feels outliers */
    CPD_COST_RANK, /* the same on mid-ranks: insensitive to one wild value */
};

/* The split of least total cost, O(n) for the mean cost and O(n log n) for ranks. gain: share of
 * the series' total cost that the split removes, 0..1; 0 for a constant series (then split is 0:
 * no split). First of equal splits. n below 2: split 0, gain 0. 0, -EDOM or -ENOMEM. */
int cpd_single(const double *series, size_t n, enum cpd_cost cost, size_t *out_split,
               double *out_gain);

/* Two-sample Kolmogorov-Smirnov test of [0, split) against [split, n). statistic: the largest
 * distance of the two empirical distributions, equal values taken together; critical:
 * sqrt(-(n+m)/(2nm) ln(alpha/2)), which exceeds 1 for short sides; p_value: two-sided, asymptotic
 * with Stephens' correction. These hold for a split chosen *before* looking at the data; see
 * cpd_test. -EINVAL for an empty side or alpha outside (0, 1), -EDOM, -ENOMEM. */
struct cpd_ks {
    double statistic;
    double critical;
    double p_value;
    bool rejected; /* statistic > critical: the two sides differ */
};
int cpd_ks_test(const double *series, size_t n, size_t split, double alpha, struct cpd_ks *out_ks);

/* The verdict on one change point, calibrated for a split chosen by the data: the statistic of
 * the best split is compared with its distribution over all orders of the values, counted exactly
 * where the values form two levels, drawn at random (seeded, so deterministic) on mid-ranks
 * otherwise. At most alpha of all flat series get a change point, whatever their distribution and
 * however many ties; below 10 values none can at alpha 0.01, since no order is rare enough.
 *
 * One or two wild values at either end of the order are clipped before anything else, so that they
 * neither make a step nor hide one; nor can at alpha 0.01 a side of fewer than 3 values be found.
 * The step (difference of the two sides' medians) must also be at least step_min, which callers
 * state as a share of the gap between hit and miss. */
struct cpd_options {
    enum cpd_cost cost; /* decides which split is reported, not whether it is one */
    double alpha;       /* of the KS test and of the calibrated test, e.g. 0.01 */
    double step_min;    /* in the series' unit, of either sign; 0: any */
    uint32_t rounds;    /* random orders; 0: 999. Below 1 / alpha - 1 ranks can never decide */
    uint64_t seed;
};
struct cpd_change {
    bool found;   /* p_value and ks.p_value at most alpha, and the step large enough */
    size_t split; /* most likely split, found or not; 0 when there is none */
    double gain;  /* as cpd_single's, of the clipped values */
    double step;  /* median(right) - median(left) */
    struct cpd_ks ks;
    double p_value;    /* calibrated */
    double confidence; /* 1 - p_value, 0 when not found */
};

/* 0, -EDOM, -ENOMEM, or -EINVAL for alpha outside (0, 1) or a negative step_min. Without any split
 * (n below 2; constant but for clipped values) all is 0 except both p-values and ks.critical,
 * which are 1. */
int cpd_test(const double *series, size_t n, const struct cpd_options *options,
             struct cpd_change *out_change);

/* Of a normal distribution: the standard deviation over the median absolute one; the distance of a
 * quartile from the median, in standard deviations; the standard error of the median of many values
 * over that of their mean. What a probe asks for follows from them: with other digits a record no
 * longer has the answers. */
#define CPD_MAD_SIGMA 1.4826
#define CPD_QUARTILE_SIGMA 0.6745
#define CPD_MEDIAN_ERROR 1.2533

/* Order statistics. The input is not changed. They allocate nothing, so they cannot fail; n = 0 and
 * NaN in the input give NaN. Infinities are ordered like numbers; halfway between -inf and inf is
 * NaN. */
double cpd_median(const double *values, size_t n);
double cpd_mad(const double *values, size_t n); /* median absolute deviation, unscaled */

/* Quantile q, linear between order statistics (Hyndman-Fan type 7); NaN for q outside [0, 1]. */
double cpd_quantile(const double *values, size_t n, double q);

/* NaN for n = 0 and for NaN in the input. */
double cpd_mean(const double *values, size_t n);

#endif
