/* Single loads of many samples together: their centre, told from spikes. */
#ifndef GPUMEMTOPO_PROBES_POOL_H
#define GPUMEMTOPO_PROBES_POOL_H

#include "device/device.h"

struct pool {
    uint64_t counts[DEVICE_BIN_COUNT];
    uint64_t all;
};

/* Zero-initialised is empty. */
void pool_add(struct pool *pool, const struct device_sample *sample);

/* Quantile of the latencies, interpolated inside a bin: finer than the timer where loads scatter.
 * NaN of an empty pool. */
double pool_quantile(const struct pool *pool, double q);

/* The median of the loads that are no spikes. Unlike a mean it does not feel how far the slow ones
 * go, nor that no load can take less than a cycle. */
struct pool_centre {
    double cycles;
    double error;       /* its standard error */
    double sigma;       /* scatter of ordinary loads */
    double spike_share; /* slow loads that have no fast counterpart */
};
struct pool_centre pool_centre(const struct pool *pool);

#endif
