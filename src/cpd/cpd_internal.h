/* Shared by the files of src/cpd; no other folder includes this. Internal names begin with
 * cpd__. */
#ifndef GPUMEMTOPO_CPD_CPD_INTERNAL_H
#define GPUMEMTOPO_CPD_CPD_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "cpd/cpd.h"

/* Sums that are equal in exact arithmetic differ by rounding; within this share they count as
 * equal. */
#define CPD__TIE 1e-9

struct cpd__item {
    double value;
    size_t index; /* position in the series */
};

/* A series, its sorted order, and the range to which its values are clipped. */
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

/* Maps doubles to unsigned numbers of the same order: IEEE 754 bits compare like sign and
 * magnitude. -0 comes directly before +0, which is enough for values that compare equal. */
static inline uint64_t cpd__key(double value)
{
    const uint64_t sign = UINT64_C(1) << 63;
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits & sign ? ~bits : bits | sign;
}

/* True if no value is NaN or infinite. */
bool cpd__finite(const double *values, size_t n);

/* The values in ascending order with their positions; freed with free(). The
 * input may have infinities but no NaN. O(n). */
struct cpd__item *cpd__sort(const double *values, size_t n);

/* Centred scores of the clipped values. mean: scaled by hi - lo; rank: 2 * mid-rank - (n + 1),
 * whole numbers. lo < hi. */
void cpd__scores_mean(const struct cpd__view *view, double *out_scores);
void cpd__scores_rank(const struct cpd__view *view, double *out_scores);

/* First split that removes the largest share of the centred scores' sum of squares. */
void cpd__best_split(const double *scores, size_t n, size_t *out_split, double *out_gain);

/* The shortest side of a split that the calibrated tests consider. */
size_t cpd__side_min(size_t n);

/* KS test at a split, 0 < split < n, from the sorted order of the whole series. */
void cpd__ks(const struct cpd__item *items, size_t n, size_t split, double alpha,
             struct cpd_ks *out_ks);

/* The p-value of the best split of centred scores under random permutation (see permute.c). */
double cpd__permutation_p(const double *scores, size_t n, const struct cpd_options *options);

/* True if the clipped values form two groups with a clear gap; *out_threshold is then the least
 * value of the upper group. Depends only on the values, not on their order in the series. */
bool cpd__two_levels(const struct cpd__view *view, double *out_threshold);

/* The p-value of the best split of the series read as zeros (below threshold) and ones, over all
 * orders of it (see two_level.c). */
double cpd__two_level_p(const struct cpd__view *view, double threshold);

#endif
