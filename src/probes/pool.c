/* Single loads of many samples together: their centre, told from spikes. */
#include "probes/pool.h"

#include <math.h>

/* Distance of the median from the upper quartile of a normal distribution, in standard deviations,
 * and its standard error against that of the mean. */
static const double QUARTILE_SIGMA = 0.6745, MEDIAN_ERROR = 1.2533;

/* Ordinary loads lie within so many deviations, or leave the same share on either side. */
static const double SPIKE_SIGMA = 3;

void pool_add(struct pool *pool, const struct device_sample *sample)
{
    for (uint32_t i = 0; i < sample->bin_count; i++) {
        pool->counts[sample->bins[i].bin] += sample->bins[i].count;
        pool->all += sample->bins[i].count;
    }
}

static uint32_t next_used(const struct pool *pool, uint32_t bin)
{
    while (bin < DEVICE_BIN_COUNT && !pool->counts[bin])
        bin++;
    return bin;
}

/* A bin reaches half way to its used neighbours, so that a timer which counts in larger steps does
 * no harm. */
double pool_quantile(const struct pool *pool, double q)
{
    double wanted = q * (double)pool->all, seen = 0, low = NAN;
    for (uint32_t bin = next_used(pool, 0); bin < DEVICE_BIN_COUNT;) {
        uint32_t next = next_used(pool, bin + 1);
        double middle = device_bin_cycles(bin), count = (double)pool->counts[bin];
        double high = next < DEVICE_BIN_COUNT ? (middle + device_bin_cycles(next)) / 2 : middle;
        low = isnan(low) ? 2 * middle - high : low;
        if (seen + count >= wanted)
            return low + (high - low) * (wanted - seen) / count;
        seen += count;
        low = high;
        bin = next;
    }
    return low;
}

static double share_between(const struct pool *pool, double from, double to)
{
    uint64_t count = 0;
    for (uint32_t bin = 0; bin < DEVICE_BIN_COUNT; bin++) {
        double cycles = device_bin_cycles(bin);
        if (pool->counts[bin] && cycles > from && cycles < to)
            count += pool->counts[bin];
    }
    return (double)count / (double)pool->all;
}

struct pool_centre pool_centre(const struct pool *pool)
{
    double median = pool_quantile(pool, 0.5);
    struct pool_centre centre = {.sigma = (pool_quantile(pool, 0.75) - median) / QUARTILE_SIGMA};
    double far = SPIKE_SIGMA * centre.sigma;
    centre.spike_share = fmax(0, share_between(pool, median + far, INFINITY) -
                                     share_between(pool, -INFINITY, median - far));
    centre.cycles = pool_quantile(pool, (1 - centre.spike_share) / 2);
    centre.error = MEDIAN_ERROR * centre.sigma / sqrt((double)pool->all);
    return centre;
}
