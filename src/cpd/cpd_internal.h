/* What the files of src/cpd share; nobody else includes this. Internal names begin with cpd__. */
#ifndef GPUMEMTOPO_CPD_CPD_INTERNAL_H
#define GPUMEMTOPO_CPD_CPD_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "cpd/cpd.h"

/* Sums that are equal in exact arithmetic differ by rounding; they count as ties within this. */
#define CPD__TIE 1e-9

struct cpd__item {
    double value;
    size_t index; /* where the value stood in the series */
};

/* A series with its order and the range its values are clipped to. */
struct cpd__view {
    const double *series;
    const struct cpd__item *items; /* ascending by value */
    size_t n;
    double lo, hi;
};

static inline double cpd__clip(const struct cpd__view *view, double value)
{
    return value < view->lo ? view->lo : value > view->hi ? view->hi : value;
}

/* An unsigned number in the order of the doubles: IEEE 754 bits compare like sign and magnitude.
 * -0 comes before +0, beside it, which is enough for values that compare equal. */
static inline uint64_t cpd__key(double value)
{
    const uint64_t sign = UINT64_C(1) << 63;
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits & sign ? ~bits : bits | sign;
}

/* Neither NaN nor infinite, all of them. */
bool cpd__finite(const double *values, size_t n);

/* The values in ascending order with their places; freed with free(). NULL when out of memory. No
 * NaN in the input; infinities are fine. O(n). */
struct cpd__item *cpd__sort(const double *values, size_t n);

/* Centred scores of the clipped values: scaled by hi - lo, or twice the mid-rank less n + 1
 * (whole numbers). lo < hi. */
void cpd__scores_mean(const struct cpd__view *view, double *out_scores);
void cpd__scores_rank(const struct cpd__view *view, double *out_scores);

/* First split that removes the largest share of the centred scores' sum of squares. */
void cpd__best_split(const double *scores, size_t n, size_t *out_split, double *out_gain);

/* The shortest side of a split that the calibrated tests look at. */
size_t cpd__side_min(size_t n);

/* KS test at a split, 0 < split < n, by the order of the whole series. */
void cpd__ks(const struct cpd__item *items, size_t n, size_t split, double alpha,
             struct cpd_ks *out_ks);

/* The p-value of the best split of centred scores under random permutation (see permute.c). 0 or
 * -ENOMEM. */
int cpd__permutation_p(const double *scores, size_t n, const struct cpd_options *options,
                       double *out_p);

/* Whether the clipped values fall into two groups with a clear gap; then the least value of the
 * upper group. Depends on the values alone, not on their order in the series. */
bool cpd__two_levels(const struct cpd__view *view, double *out_threshold);

/* The p-value of the best split of the series of zeros (below threshold) and ones, among all
 * orders of it (see two_level.c). 0 or -ENOMEM. */
int cpd__two_level_p(const struct cpd__view *view, double threshold, double *out_p);

#endif
