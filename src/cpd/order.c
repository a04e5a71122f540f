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

/* A quantile lies at order statistic `below`, or by `share` of the way to the next one. */
struct place {
    size_t below;
    double share;
};

static struct place place_of(size_t n, double q)
{
    double position = q * (double)(n - 1);
    size_t below = (size_t)position;
    return (struct place){below, position - (double)below};
}

static bool has_quantile(size_t n, double q)
{
    return n > 0 && q >= 0.0 && q <= 1.0;
}

static double quantile(const struct sample *sample, double q)
{
    const struct place at = place_of(sample->n, q);
    double lower = select_kth(sample, at.below);
    return at.share > 0 ? between(lower, select_kth(sample, at.below + 1), at.share) : lower;
}

double cpd_quantile(const double *values, size_t n, double q)
{
    if (!has_quantile(n, q) || has_nan(values, n))
        return NAN;
    return quantile(&(struct sample){.values = values, .n = n}, q);
}

double cpd_quantile_sorted(const double *sorted, size_t n, double q)
{
    if (!has_quantile(n, q))
        return NAN;
    const struct place at = place_of(n, q);
    double lower = sorted[at.below];
    return at.share > 0 ? between(lower, sorted[at.below + 1], at.share) : lower;
}

static void swap(double *a, double *b)
{
    double kept = *a;
    *a = *b;
    *b = kept;
}

/* Hoare's selection, pivot by the median of three. */
double cpd_select_reorder(double *values, size_t n, size_t k)
{
    size_t low = 0, high = n - 1;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (values[middle] < values[low])
            swap(&values[middle], &values[low]);
        if (values[high] < values[low])
            swap(&values[high], &values[low]);
        if (values[high] < values[middle])
            swap(&values[high], &values[middle]);
        double pivot = values[middle];
        size_t i = low, j = high;
        while (i <= j) {
            while (values[i] < pivot)
                i++;
            while (values[j] > pivot)
                j--;
            if (i <= j) {
                swap(&values[i++], &values[j]);
                if (!j)
                    break;
                j--;
            }
        }
        if (k <= j)
            high = j;
        else if (k >= i)
            low = i;
        else
            break;
    }
    return values[k];
}

double cpd_quantile_reorder(double *values, size_t n, double q)
{
    if (!has_quantile(n, q))
        return NAN;
    const struct place at = place_of(n, q);
    double lower = cpd_select_reorder(values, n, at.below);
    if (at.share <= 0)
        return lower;
    double next = values[at.below + 1];
    for (size_t i = at.below + 2; i < n; i++)
        next = fmin(next, values[i]);
    return between(lower, next, at.share);
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
