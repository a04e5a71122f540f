/* Order statistics and the mean. */
#include <math.h>

#include "cpd/cpd_internal.h"

/* Values, or their distances from a centre. */
struct sample {
    const double *values;
    size_t n;
    bool from_centre;
    double centre;
};

static bool has_nan(const double *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (isnan(values[i]))
            return true;
    return false;
}

/* Interpolates between a and b, a <= b, without overflow and without inf - inf for equal ends. */
static double between(double a, double b, double share)
{
    if (a == b || share == 0.0)
        return a;
    double width = b - a;
    return isfinite(width) ? a + share * width : a * (1.0 - share) + b * share;
}

static uint64_t key_at(const struct sample *sample, size_t i)
{
    double value = sample->values[i];
    if (!sample->from_centre)
        return cpd__key(value);
    return cpd__key(value == sample->centre ? 0.0 : fabs(value - sample->centre));
}

static double value_of(uint64_t key)
{
    const uint64_t sign = UINT64_C(1) << 63;
    uint64_t bits = key & sign ? key & ~sign : ~key;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The k-th smallest, k from 0, by bisection of the keys: at most 64 passes. It allocates nothing,
 * because callers could not tell the NaN of a failed allocation from a measured one. */
static double select_kth(const struct sample *sample, size_t k)
{
    uint64_t low = UINT64_MAX, high = 0;
    for (size_t i = 0; i < sample->n; i++) {
        uint64_t key = key_at(sample, i);
        low = key < low ? key : low;
        high = key > high ? key : high;
    }
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        size_t below = 0;
        for (size_t i = 0; i < sample->n; i++)
            below += key_at(sample, i) <= middle;
        if (below > k)
            high = middle;
        else
            low = middle + 1;
    }
    return value_of(low);
}

static double quantile(const struct sample *sample, double q)
{
    double position = q * (double)(sample->n - 1);
    size_t below = (size_t)position;
    double share = position - (double)below;
    double lower = select_kth(sample, below);
    return share > 0 ? between(lower, select_kth(sample, below + 1), share) : lower;
}

double cpd_quantile(const double *values, size_t n, double q)
{
    if (n == 0 || !(q >= 0.0 && q <= 1.0) || has_nan(values, n))
        return NAN;
    return quantile(&(struct sample){.values = values, .n = n}, q);
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
    return quantile(
        &(struct sample){.values = values, .n = n, .from_centre = true, .centre = centre}, 0.5);
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
