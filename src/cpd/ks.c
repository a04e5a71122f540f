/* The two-sample Kolmogorov-Smirnov test. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/portable_math.h"
#include "cpd/cpd_internal.h"

/* P(K > x) of the Kolmogorov distribution. It has two series (Feller 1948); each converges within a
 * few terms where the other does not. */
static double kolmogorov_tail(double x)
{
    const double pi = 3.14159265358979323846;
    if (x < 1e-3)
        return 1.0;
    double sum = 0.0;
    if (x < 1.0) {
        for (int j = 1; j <= 9; j += 2)
            sum += portable_exp(-j * j * pi * pi / (8.0 * x * x));
        return 1.0 - sqrt(2.0 * pi) / x * sum;
    }
    for (int j = 1; j <= 5; j++)
        sum += (j % 2 ? 2.0 : -2.0) * portable_exp(-2.0 * j * j * x * x);
    return sum;
}

/* Largest |left * after - right * before| over all values. Whole numbers, so that equal distances
 * compare equal. The distance counts only after the last of equal values. */
static uint64_t largest_distance(const struct cpd__item *items, size_t n, size_t split)
{
    uint64_t largest = 0;
    uint64_t seen_left = 0;
    for (size_t i = 0; i < n; i++) {
        seen_left += items[i].index < split;
        if (i + 1 < n && items[i + 1].value == items[i].value)
            continue;
        uint64_t a = seen_left * (n - split);
        uint64_t b = (i + 1 - seen_left) * split;
        uint64_t distance = a > b ? a - b : b - a;
        if (distance > largest)
            largest = distance;
    }
    return largest;
}

void cpd__ks(const struct cpd__item *items, size_t n, size_t split, double alpha,
             struct cpd_ks *out_ks)
{
    double product = (double)split * (double)(n - split);
    double statistic = (double)largest_distance(items, n, split) / product;
    /* Thesis, equation 3.3; the printed version lacks the minus sign. */
    double critical = sqrt(-0.5 * (double)n / product * portable_log(alpha / 2.0));
    /* Stephens 1970: the correction that makes the asymptotic distribution fit small samples. */
    double root = sqrt(product / (double)n);
    double p = kolmogorov_tail((root + 0.12 + 0.11 / root) * statistic);
    *out_ks = (struct cpd_ks){
        .statistic = statistic,
        .critical = critical,
        .p_value = p,
        .rejected = statistic > critical,
    };
}

int cpd_ks_test(const double *series, size_t n, size_t split, double alpha, struct cpd_ks *out_ks)
{
    if (split == 0 || split >= n || !(alpha > 0.0 && alpha < 1.0))
        return -EINVAL;
    if (!cpd__finite(series, n))
        return -EDOM;
    struct cpd__item *items = cpd__sort(series, n);
    cpd__ks(items, n, split, alpha, out_ks);
    free(items);
    return 0;
}
