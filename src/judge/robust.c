/* Centre, scale and tails of numbers of which some are wrong. */
#include "judge/robust.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/portable_math.h"
#include "base/sort.h"
#include "cpd/cpd.h"

/* Values further than FAR * sigma from the centre are left out of the scale, in a cautious fit
 * those further than (FAR + FAR_FEW / n) * sigma. */
static const double FAR = 4, FAR_FEW = 17;

/* Larger deviations are faults, not tails: they are left out of the kurtosis. */
static const double TAIL_MAX = 8;

/* A distribution with a smaller kurtosis ends sharply. A normal one has 3, a uniform one 1.8. */
static const double SHARP = 2.2;

/* The kurtosis may be larger than it seems, by this many standard errors. */
static const double ERRORS = 2;

/* The end of the distribution is at EDGE * the largest healthy deviation. */
static const double EDGE = 2;

double robust_quantile(double *values, size_t n, double q)
{
    return cpd_quantile_reorder(values, n, q);
}

double robust_median(double *values, size_t n)
{
    return robust_quantile(values, n, 0.5);
}

double robust_upper_median(double *values, size_t n)
{
    return n ? cpd_select_reorder(values, n, n / 2) : NAN;
}

static int weighted_order(const void *a, const void *b)
{
    const struct robust_weighted *left = a, *right = b;
    return (left->value > right->value) - (left->value < right->value);
}

double robust_weighted_quantile(struct robust_weighted *values, size_t n, double q)
{
    uint64_t total = 0, passed = 0;
    size_t at = 0;
    if (!n)
        return NAN;
    sort_stable(values, n, sizeof *values, weighted_order);
    for (size_t i = 0; i < n; i++)
        total += values[i].weight;
    const double place = q * (double)(total - 1);
    const uint64_t below = (uint64_t)place;
    while (at + 1 < n && passed + values[at].weight <= below)
        passed += values[at++].weight;
    const double share = place - (double)below, lower = values[at].value;
    bool is_last = below + 1 == passed + values[at].weight;
    return share > 0 && is_last && at + 1 < n ? lower + share * (values[at + 1].value - lower)
                                              : lower;
}

/* The scale if more than half of the values are equal, from the 75 % quantile of the deviations. 0
 * if three quarters are equal. */
static double sigma_of_ties(double *sizes, size_t n)
{
    const double quartile = 0.75, normal_size = 1.1503;
    return cpd_select_reorder(sizes, n, (size_t)(quartile * (double)(n - 1))) / normal_size;
}

static struct robust_fit fit_within(const double *values, size_t n, double far, double *scratch)
{
    struct robust_fit fit = {0, NAN, NAN};
    if (!n)
        return fit;
    for (size_t i = 0; i < n; i++)
        scratch[i] = values[i];
    fit.center = robust_median(scratch, n);
    for (size_t i = 0; i < n; i++)
        scratch[i] = fabs(values[i] - fit.center);
    fit.sigma = CPD_MAD_SIGMA * robust_median(scratch, n);
    if (fit.sigma == 0)
        fit.sigma = sigma_of_ties(scratch, n);
    const double limit = far * fit.sigma;
    double squares = 0;
    for (size_t i = 0; i < n; i++) {
        double size = fabs(values[i] - fit.center);
        if (size > limit)
            continue;
        squares += size * size;
        fit.kept++;
    }
    if (fit.kept > 1)
        fit.sigma = fmax(fit.sigma, sqrt(squares / (double)(fit.kept - 1)));
    return fit;
}

struct robust_fit robust_fit(const double *values, size_t n, double *scratch)
{
    return fit_within(values, n, FAR, scratch);
}

struct robust_fit robust_fit_cautious(const double *values, size_t n, double *scratch)
{
    return fit_within(values, n, FAR + FAR_FEW / (double)n, scratch);
}

/* NaN if all sizes are 0. */
static double robust_kurtosis(const double *sizes, size_t n)
{
    double squares = 0, fourths = 0, count = 0;
    for (size_t i = 0; i < n; i++) {
        double square = sizes[i] * sizes[i];
        if (sizes[i] > TAIL_MAX)
            continue;
        squares += square;
        fourths += square * square;
        count++;
    }
    return squares > 0 ? count * fourths / (squares * squares) : NAN;
}

double robust_edge(const double *sizes, size_t n)
{
    double largest = 0;
    for (size_t i = 0; i < n; i++)
        largest = fmax(largest, sizes[i]);
    return robust_kurtosis(sizes, n) < SHARP ? EDGE * largest : INFINITY;
}

/* The kurtosis of Student's distribution is 3 + 6 / (dof - 4). */
double robust_tail_dof(const double *sizes, size_t n, int errors)
{
    double error = sqrt(24 / (double)n); /* of the kurtosis of n normal values */
    double excess = robust_kurtosis(sizes, n) - 3 + errors * ERRORS * error;
    if (isnan(excess))
        return ROBUST_DOF_MIN;
    double dof = excess > 0 ? 4 + 6 / excess : ROBUST_DOF_MAX;
    return fmin(fmax(dof, ROBUST_DOF_MIN), ROBUST_DOF_MAX);
}

/* Medians of x and y over the points with x <= limit (side < 0) or x >= limit. */
static void robust_third(const double *x, const double *y, size_t n, double limit, int side,
                         double *scratch, double *out_x, double *out_y)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        if (side < 0 ? x[i] > limit : x[i] < limit)
            continue;
        scratch[count] = x[i];
        scratch[n + count++] = y[i];
    }
    *out_x = robust_median(scratch, count);
    *out_y = robust_median(scratch + n, count);
}

double robust_share(const double *x, const double *y, size_t n, double apart, double *scratch)
{
    enum { ROUNDS = 3 };
    double *rest = scratch, *work = scratch + n;
    double slope = 0;
    if (n < 3)
        return NAN;
    for (size_t i = 0; i < n; i++)
        rest[i] = x[i];
    double lower = robust_quantile(rest, n, 1.0 / 3), upper = robust_quantile(rest, n, 2.0 / 3);
    for (int round = 0; round < ROUNDS; round++) {
        double x_low, y_low, x_high, y_high;
        for (size_t i = 0; i < n; i++)
            rest[i] = y[i] - slope * (x[i] - 1);
        robust_third(x, rest, n, lower, -1, work, &x_low, &y_low);
        robust_third(x, rest, n, upper, +1, work, &x_high, &y_high);
        if (!(x_high - x_low >= apart))
            return NAN;
        slope += (y_high - y_low) / (x_high - x_low);
    }
    for (size_t i = 0; i < n; i++)
        rest[i] = y[i] - slope * (x[i] - 1);
    return slope / robust_median(rest, n);
}

/* Continued fraction of the incomplete beta function (Abramowitz and Stegun 26.5.8), by Lentz's
 * method. */
static double beta_fraction(double a, double b, double x)
{
    enum { TERMS_MAX = 500 };
    const double tiny = 1e-300, precise = 1e-14;
    double numerator = 1, denominator = 1 - (a + b) * x / (a + 1);
    denominator = 1 / (fabs(denominator) < tiny ? tiny : denominator);
    double value = denominator;
    for (int k = 1; k < TERMS_MAX; k++) {
        double even = k * (b - k) * x / ((a + 2 * k - 1) * (a + 2 * k));
        double odd = -(a + k) * (a + b + k) * x / ((a + 2 * k) * (a + 2 * k + 1));
        const double terms[] = {even, odd};
        double change = 1;
        for (int i = 0; i < 2; i++) {
            denominator = 1 + terms[i] * denominator;
            numerator = 1 + terms[i] / numerator;
            denominator = 1 / (fabs(denominator) < tiny ? tiny : denominator);
            numerator = fabs(numerator) < tiny ? tiny : numerator;
            change = numerator * denominator;
            value *= change;
        }
        if (fabs(change - 1) < precise)
            break;
    }
    return value;
}

/* Regularised incomplete beta function I_x(a, b); minus_ln_beta is -ln B(a, b). */
static double beta_share(double a, double b, double minus_ln_beta, double x)
{
    if (x <= 0 || x >= 1)
        return x <= 0 ? 0 : 1;
    double front = portable_exp(minus_ln_beta + a * portable_log(x) + b * portable_log1p(-x));
    if (x < (a + 1) / (a + b + 2))
        return front * beta_fraction(a, b, x) / a;
    return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

/* What the share of the tail has in common for all t: most of its time. */
static double student_minus_ln_beta(double dof)
{
    double a = dof / 2, b = 0.5;
    return portable_lgamma(a + b) - portable_lgamma(a) - portable_lgamma(b);
}

static double student_tail(double t, double dof, double minus_ln_beta)
{
    return beta_share(dof / 2, 0.5, minus_ln_beta, dof / (dof + t * t)) / 2;
}

double robust_student_tail(double t, double dof)
{
    return student_tail(t, dof, student_minus_ln_beta(dof));
}

double robust_student_quantile(double tail, double dof)
{
    enum { DOUBLINGS = 200, HALVINGS = 60 };
    double low = 0, high = 1, minus_ln_beta = student_minus_ln_beta(dof);
    for (int i = 0; i < DOUBLINGS && student_tail(high, dof, minus_ln_beta) > tail; i++) {
        low = high;
        high *= 2;
    }
    for (int i = 0; i < HALVINGS; i++) {
        double middle = (low + high) / 2;
        if (middle == low || middle == high)
            break;
        if (student_tail(middle, dof, minus_ln_beta) > tail)
            low = middle;
        else
            high = middle;
    }
    return high;
}

double robust_student_bound(double tail, double dof)
{
    return robust_student_quantile(tail, dof) * CPD_QUARTILE_SIGMA /
           robust_student_quantile(0.25, dof);
}
