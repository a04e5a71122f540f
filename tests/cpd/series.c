/* Series that the tests of src/cpd share. */
#include "series.h"

#include <math.h>

#include "base/mem.h"

const char *const series_noise_names[NOISE_KINDS] = {"normal", "tied integers", "heavy tails"};

double series_noise(enum series_noise kind, struct rng *rng)
{
    if (kind == NOISE_TIED)
        return floor(0.6 * rng_normal(rng) + 0.5);
    if (kind == NOISE_HEAVY)
        return tan(3.14159265358979 * (rng_uniform(rng) - 0.5));
    return rng_normal(rng);
}

double *series_flat(size_t n, enum series_noise kind, struct rng *rng)
{
    double *series = mem_array(n, sizeof *series);
    for (size_t i = 0; series && i < n; i++)
        series[i] = series_noise(kind, rng);
    return series;
}

double *series_step(size_t n, size_t split, double step, struct rng *rng)
{
    double *series = series_flat(n, NOISE_NORMAL, rng);
    for (size_t i = split; series && i < n; i++)
        series[i] += step;
    return series;
}

double series_cost(const double *values, size_t begin, size_t end)
{
    double mean = 0.0, cost = 0.0;
    for (size_t i = begin; i < end; i++)
        mean += values[i] / (double)(end - begin);
    for (size_t i = begin; i < end; i++)
        cost += (values[i] - mean) * (values[i] - mean);
    return cost;
}
