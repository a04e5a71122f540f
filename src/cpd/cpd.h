/* Change-point detection on series of numbers (thesis, section 3.3): pure functions.
 *
 * Positions: a split s of a series of n values parts it into [0, s) and [s, n), 0 < s < n.
 * NaN anywhere in an input is -EDOM, unless a function says otherwise; infinities too. */
#ifndef GPUMEMTOPO_CPD_CPD_H
#define GPUMEMTOPO_CPD_CPD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Geometric mapping (thesis 3.3.2): rows of `dimension` values each become two numbers, the
 * distance to the reference vector (reference, ..., reference) and the angle (radians) between
 * row and reference. A zero row has angle 0. 0, -EDOM, or -EINVAL when dimension is 0. Either out
 * array (row_count values) may be NULL. */
int cpd_map_geometric(const double *rows, size_t row_count, size_t dimension, double reference,
                      double *out_distance, double *out_angle);

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
 * distance of the two empirical distributions, ties handled; critical: sqrt(-(n+m)/(2nm)
 * ln(alpha/2)); p_value: the asymptotic two-sided one. These hold for a split chosen *before*
 * looking at the data; see cpd_test. -EINVAL for an empty side or alpha outside (0, 1). */
struct cpd_ks {
    double statistic;
    double critical;
    double p_value;
    bool rejected; /* statistic > critical: the two sides differ */
};
int cpd_ks_test(const double *series, size_t n, size_t split, double alpha, struct cpd_ks *out_ks);

/* The verdict on one change point, calibrated for a split chosen by the data: the statistic of
 * the best split is compared with its distribution under random permutation of the series (seeded,
 * so deterministic), or with a precomputed table where that is exact. The step (difference of the
 * two sides' medians) must also be at least step_min, which callers state as a share of the gap
 * between hit and miss. */
struct cpd_options {
    enum cpd_cost cost;
    double alpha;    /* of the KS test and of the calibrated test, e.g. 0.01 */
    double step_min; /* in the series' unit; 0: any */
    uint32_t rounds; /* permutations; 0: 999 for short series, fewer for long ones */
    uint64_t seed;
};
struct cpd_change {
    bool found;   /* all tests passed */
    size_t split; /* most likely split, found or not; 0 when there is none */
    double gain;
    double step; /* median(right) - median(left) */
    struct cpd_ks ks;
    double p_value;    /* calibrated */
    double confidence; /* 1 - p_value, 0 when not found */
};
int cpd_test(const double *series, size_t n, const struct cpd_options *options,
             struct cpd_change *out_change);

/* Several change points: optimal partitioning with pruning (PELT), mean cost. penalty: cost a
 * further change point must save; 0: 3 sigma^2 ln n with sigma from the differences of
 * neighbours (robust). min_length: of a segment, at least 1. Gives the splits, ascending;
 * freed with free(). 0, -EDOM, -ENOMEM. */
int cpd_multiple(const double *series, size_t n, double penalty, size_t min_length,
                 size_t **out_splits, size_t *out_count);

/* Order statistics. The input is not changed; n = 0 gives NaN; NaN in the input gives NaN. */
double cpd_median(const double *values, size_t n);
double cpd_mad(const double *values, size_t n); /* median absolute deviation, unscaled */

/* Quantile q in [0, 1], linear between order statistics (Hyndman-Fan type 7). */
double cpd_quantile(const double *values, size_t n, double q);
double cpd_mean(const double *values, size_t n);

#endif
