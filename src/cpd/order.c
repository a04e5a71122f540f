/* Order statistics and the mean. */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cpd/internal.h"

static bool has_nan(const double *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (isnan(values[i]))
            return true;
    return false;
}

/* Between a and b, a <= b, without overflow and without inf - inf for equal ends. */
static double between(double a, double b, double share)
{
    if (a == b || share == 0.0)
        return a;
    double width = b - a;
    return isfinite(width) ? a + share * width : a * (1.0 - share) + b * share;
}

double cpd_quantile(const double *values, size_t n, double q)
{
    if (n == 0 || !(q >= 0.0 && q <= 1.0) || has_nan(values, n))
        return NAN;
    struct cpd__item *items = cpd__sort(values, n);
    if (!items)
        return NAN;
    double position = q * (double)(n - 1);
    size_t below = (size_t)position;
    size_t above = below + 1 < n ? below + 1 : below;
    double result = between(items[below].value, items[above].value, position - (double)below);
    free(items);
    return result;
}

double cpd_median(const double *values, size_t n)
{
    return cpd_quantile(values, n, 0.5);
}

double cpd_mad(const double *values, size_t n)
{
    double centre = cpd_median(values, n);
    if (isnan(centre))
        return NAN;
    double *deviations = mem_array(n, sizeof *deviations);
    if (!deviations)
        return NAN;
    for (size_t i = 0; i < n; i++)
        deviations[i] = values[i] == centre ? 0.0 : fabs(values[i] - centre);
    double result = cpd_median(deviations, n);
    free(deviations);
    return result;
}

double cpd_mean(const double *values, size_t n)
{
    if (n == 0)
        return NAN;
    long double sum = 0.0L;
    for (size_t i = 0; i < n; i++)
        sum += values[i];
    return (double)(sum / (long double)n);
}
