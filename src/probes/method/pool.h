/* Single loads of many samples together: their centre without spikes, and the threshold between two
 * kinds of loads. */
#ifndef GPUMEMTOPO_PROBES_METHOD_POOL_H
#define GPUMEMTOPO_PROBES_METHOD_POOL_H

#include <stdbool.h>

#include "device/device.h"

struct pool {
    uint64_t counts[DEVICE_BIN_COUNT];
    uint64_t all;
};

/* Zero-initialised is empty. */
void pool_add(struct pool *pool, const struct device_sample *sample);

void pool_add_load(struct pool *pool, double cycles);

/* Removes the loads above `cycles`. */
void pool_cut(struct pool *pool, double cycles);

void pool_join(struct pool *pool, const struct pool *other);

/* Mean of all loads; share of loads that took at most this many cycles. */
double pool_mean(const struct pool *pool);

double pool_share_below(const struct pool *pool, double cycles);

/* Quantile of the latencies, interpolated inside a bin: finer than the timer if loads scatter. NaN
 * for an empty pool. */
double pool_quantile(const struct pool *pool, double q);

/* The same, but inside the bin itself, however far its neighbours are: a reading that occurred. */
double pool_reading(const struct pool *pool, double q);

/* Mean of the fastest `share` of the loads. */
double pool_lower_mean(const struct pool *pool, double share);

/* True when the loads form two peaks with little between them; out: the median on either side. The
 * slowest loads count for the far peak but do not make one. */
bool pool_peaks(const struct pool *pool, double *out_near, double *out_far);

/* Adds the notes p50 and p95, less the timer's overhead, and sd, the standard deviation. */
void pool_note_distribution(const struct pool *pool, double overhead, struct facts *notes);

/* The median of the loads that are no spikes. Unlike a mean, it does not depend on how slow the
 * slow ones are, nor on the limit that no load takes less than a cycle. */
struct pool_centre {
    double cycles;
    double error;       /* its standard error */
    double sigma;       /* scatter of ordinary loads */
    double spike_share; /* share of slow loads without a fast counterpart */
    double step;        /* of a timer that is coarser than the scatter of the loads; otherwise 0 */
};

struct pool_centre pool_centre(const struct pool *pool);

struct contrast {
    double threshold;   /* cycles, timer included: a load above it belongs to the slower level */
    double stray_share; /* share of loads of the faster level above it */
    double slip_share;  /* share of loads of the slower level not above it */
};

/* The threshold that misjudges the fewest loads of both. Among equal ones, the nearest to the
 * middle between the two centres. */
struct contrast contrast_between(const struct pool *faster, const struct pool *slower);

#endif
