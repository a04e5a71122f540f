/* Change-point detection on series of numbers (thesis, section 3.3): pure functions.
 *
 * A split s divides a series of n values into [0, s) and [s, n), 0 < s < n. NaN or infinity in an
 * input is -EDOM, unless a function says otherwise. */
#ifndef GPUMEMTOPO_CPD_CPD_H
#define GPUMEMTOPO_CPD_CPD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cpd_cost {
    CPD_COST_MEAN, /* squared error around the mean of each side: sensitive to outliers */
    CPD_COST_RANK, /* the same on mid-ranks: insensitive to one wild value */
};

/* The split of least total cost, O(n) for the mean cost and O(n log n) for ranks; the first of
 * equal ones. gain: share of the total cost that the split removes, 0..1. A constant series or n
 * below 2 gives split 0 (no split) and gain 0. 0 or -EDOM. */
int cpd_single(const double *series, size_t n, enum cpd_cost cost, size_t *out_split,
               double *out_gain);

/* Two-sample Kolmogorov-Smirnov test of [0, split) against [split, n). statistic: the largest
 * distance of the two empirical distributions, equal values taken together; critical:
 * sqrt(-(n+m)/(2nm) ln(alpha/2)), which exceeds 1 for short sides; p_value: two-sided, asymptotic
 * with Stephens' correction. These hold for a split chosen *before* looking at the data; see
 * cpd_test. -EINVAL for an empty side or alpha outside (0, 1), -EDOM. */
struct cpd_ks {
    double statistic;
    double critical;
    double p_value;
    bool rejected; /* statistic > critical: the two sides differ */
};
int cpd_ks_test(const double *series, size_t n, size_t split, double alpha, struct cpd_ks *out_ks);

/* Tests one change point. The p-value is calibrated for a split chosen by the data: the statistic
 * of the best split is compared with its distribution over all orders of the values. That
 * distribution is counted exactly if the values form two levels, else sampled on mid-ranks (seeded,
 * so deterministic). At most a share alpha of all flat series get a change point, for any
 * distribution and any number of ties. At alpha 0.01, series below 10 values never get one, since
 * no order is rare enough.
 *
 * First of all, one or two wild values at either end of the order are clipped, so that they neither
 * make a step nor hide one. At alpha 0.01 a side of fewer than 3 values is never found. The step
 * (difference of the two sides' medians) must also be at least step_min, which callers choose as a
 * share of the gap between hit and miss. */
struct cpd_options {
    enum cpd_cost cost; /* affects which split is reported, not whether one is found */
    double alpha;       /* of the KS test and of the calibrated test, e.g. 0.01 */
    double step_min;    /* in the unit of the series, absolute; 0: any */
    uint32_t rounds;    /* random orders; 0: 999. With fewer than 1 / alpha - 1 the rank test never
                           decides */
    uint64_t seed;
};
struct cpd_change {
    bool found;   /* p_value and ks.p_value at most alpha, and the step large enough */
    size_t split; /* most likely split, found or not; 0 when there is none */
    double gain;  /* as in cpd_single, of the clipped values */
    double step;  /* median(right) - median(left) */
    struct cpd_ks ks;
    double p_value;    /* calibrated */
    double confidence; /* 1 - p_value, 0 when not found */
};

/* 0, -EDOM, or -EINVAL for alpha outside (0, 1) or a negative step_min. If there is no
 * split (n below 2, or constant after clipping), all fields are 0 except both p-values and
 * ks.critical, which are 1. */
int cpd_test(const double *series, size_t n, const struct cpd_options *options,
             struct cpd_change *out_change);

/* Of a normal distribution: standard deviation / median absolute deviation; distance of a quartile
 * from the median in standard deviations; standard error of the median / standard error of the
 * mean, for many values. Probes choose their requests with these numbers: with other digits, a
 * replay would make requests that are not in the record. */
#define CPD_MAD_SIGMA 1.4826
#define CPD_QUARTILE_SIGMA 0.6745
#define CPD_MEDIAN_ERROR 1.2533

/* Order statistics. The input is not changed. They allocate nothing, so they cannot fail; n = 0 and
 * NaN in the input give NaN. Infinities are ordered like numbers; the mean of -inf and inf is
 * NaN. */
double cpd_median(const double *values, size_t n);
double cpd_mad(const double *values, size_t n); /* median absolute deviation, unscaled */

/* Quantile q, linear between order statistics (Hyndman-Fan type 7); NaN for q outside [0, 1]. */
double cpd_quantile(const double *values, size_t n, double q);

/* The same for values without NaN that are sorted, rising: two of them are read. */
double cpd_quantile_sorted(const double *sorted, size_t n, double q);

/* For values without NaN whose order does not matter, in linear time: the k-th smallest of them,
 * k from 0 and below n, and a quantile. Afterwards no value before place k is larger than the one
 * there, and none behind it is smaller. */
double cpd_select_reorder(double *values, size_t n, size_t k);
double cpd_quantile_reorder(double *values, size_t n, double q);

/* NaN for n = 0 and for NaN in the input. */
double cpd_mean(const double *values, size_t n);

#endif
