/* Centre, scale and tails of numbers of which some are wrong: linear in their count. */
#ifndef GPUMEMTOPO_JUDGE_ROBUST_H
#define GPUMEMTOPO_JUDGE_ROBUST_H

#include <stddef.h>

/* These reorder `values`; n = 0 gives NaN. NaN must not be among the values. */
double robust_median(double *values, size_t n);
double robust_upper_median(double *values, size_t n); /* of two in the middle the larger one */
double robust_quantile(double *values, size_t n, double q); /* Hyndman-Fan type 7 */

/* What most of the values are like. sigma 0: they are equal to the digit. */
struct robust_fit {
    size_t kept; /* values that are not far out */
    double center, sigma;
};

/* Median, and the larger of the scaled median absolute deviation and the root mean square of the
 * values within four of these: efficient for few values, and not fooled by a minority far out. The
 * values stay in order; `scratch` has room for n. */
struct robust_fit robust_fit(const double *values, size_t n, double *scratch);

/* Degrees of freedom of the Student distribution whose tails are those of `sizes`, deviations from
 * the centre to one side in units of the scale: by their kurtosis, between ROBUST_DOF_MIN and
 * ROBUST_DOF_MAX. For the side on which nothing is wrong. */
enum { ROBUST_DOF_MIN = 5, ROBUST_DOF_MAX = 30 };
double robust_tail_dof(const double *sizes, size_t n);

/* How far from the centre nothing healthy lies, where `sizes` as above end sharply, as those of an
 * even distribution do: twice the largest. INFINITY where their kurtosis is nearer to a normal
 * one's.
 */
double robust_edge(const double *sizes, size_t n);

/* A resistant line (Tukey): how y, which is positive, follows x around x = 1, as the share d of
 * y(x) = y(1) (1 + d (x - 1)). NaN where the outer thirds of x lie less than `apart` from each
 * other. Scratch: room for 4 n. */
double robust_share(const double *x, const double *y, size_t n, double apart, double *scratch);

#endif
