/* Centre, scale and tails of numbers of which some are wrong. All functions but one take linear
 * time. */
#ifndef GPUMEMTOPO_JUDGE_ROBUST_H
#define GPUMEMTOPO_JUDGE_ROBUST_H

#include <stddef.h>
#include <stdint.h>

/* These reorder `values`; n = 0 gives NaN. NaN must not be among the values. */
double robust_median(double *values, size_t n);
double robust_upper_median(double *values, size_t n);       /* the larger of two in the middle */
double robust_quantile(double *values, size_t n, double q); /* Hyndman-Fan type 7 */

/* The quantile of values of which each stands for `weight` equal ones. Sorts `values`, so that it
 * takes n log n; n = 0 gives NaN. */
struct robust_weighted {
    double value;
    uint32_t weight; /* not 0 */
};
double robust_weighted_quantile(struct robust_weighted *values, size_t n, double q);

/* Centre and scale. sigma 0: most values are exactly equal. */
struct robust_fit {
    size_t kept; /* values within four scaled median absolute deviations */
    double center, sigma;
};

/* center = median. sigma = max(s, root mean square of the deviations within 4 s), where s is the
 * scaled median absolute deviation (times 1.4826). This is efficient for few values, and a minority
 * of wrong values does not change it much. `values` is not reordered; `scratch` has room
 * for n. */
struct robust_fit robust_fit(const double *values, size_t n, double *scratch);

/* The same, but with few values those further away count too: the median absolute deviation of six
 * values may be a third of the scale. Healthy values are then hardly ever far out, but two wrong
 * values of six make the scale large. */
struct robust_fit robust_fit_cautious(const double *values, size_t n, double *scratch);

/* Degrees of freedom, from ROBUST_DOF_MIN to ROBUST_DOF_MAX, of the Student distribution that has
 * the kurtosis of `sizes`, plus twice its standard error if `errors` is 1 (the tails may be
 * heavier), less that if it is -1 (they are at least so heavy). sizes: deviations to the better
 * side of the centre, divided by the scale. */
enum { ROBUST_DOF_MIN = 5, ROBUST_DOF_MAX = 30 };
double robust_tail_dof(const double *sizes, size_t n, int errors);

/* Twice the largest of `sizes` (see above) if their distribution ends sharply, as a uniform one
 * does: no healthy figure lies beyond. INFINITY if their kurtosis is nearer to that of a normal
 * distribution. */
double robust_edge(const double *sizes, size_t n);

/* The share d in y(x) = y(1) (1 + d (x - 1)) for positive y, by a resistant line (Tukey). NaN if
 * the medians of the outer thirds of x are less than `apart` from each other. scratch has
 * room for 4 n. */
double robust_share(const double *x, const double *y, size_t n, double apart, double *scratch);

/* The probability of a value above t, for t >= 0. */
double robust_student_tail(double t, double dof);

/* The value that is exceeded with probability `tail`, 0 < tail <= 0.5. */
double robust_student_quantile(double tail, double dof);

/* The same for values whose scale was found from the middle of the distribution as if it were
 * normal. */
double robust_student_bound(double tail, double dof);

#endif
