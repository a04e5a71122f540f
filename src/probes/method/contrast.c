/* Tells two levels apart by the latency of a load, from the distributions of both. */
#include "probes/method/contrast.h"

#include <math.h>

/* Shares that differ by less count as equal: a few loads of thousands. */
static const double EQUAL_SHARE = 0.002;

struct contrast contrast_between(const struct pool *faster, const struct pool *slower)
{
    double middle = (pool_centre(faster).cycles + pool_centre(slower).cycles) / 2;
    double stray = 1, slip = 0, least = INFINITY, distance = INFINITY;
    struct contrast best = {.threshold = middle};
    for (uint32_t bin = 0; bin + 1 < DEVICE_BIN_COUNT; bin++) {
        stray -= (double)faster->counts[bin] / (double)faster->all;
        slip += (double)slower->counts[bin] / (double)slower->all;
        double threshold = (device_bin_cycles(bin) + device_bin_cycles(bin + 1)) / 2;
        double apart = fabs(threshold - middle), wrong = stray + slip;
        bool better =
            wrong < least - EQUAL_SHARE || (wrong < least + EQUAL_SHARE && apart < distance);
        if (!better)
            continue;
        least = fmin(least, wrong);
        distance = apart;
        best = (struct contrast){threshold, fmax(0, stray), slip};
    }
    return best;
}
