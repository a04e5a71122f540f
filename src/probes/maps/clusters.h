/* What the probes of clusters have in common. */
#ifndef GPUMEMTOPO_PROBES_MAPS_CLUSTERS_H
#define GPUMEMTOPO_PROBES_MAPS_CLUSTERS_H

#include "probes/probe.h"

/* The sizes that are measured, of those that the GPU has: 2, 4, 8, 16. */
enum { CLUSTERS_SIZES = 4 };

extern const uint32_t clusters_sizes[CLUSTERS_SIZES];

/* The largest cluster that cluster.groups found; 0: none. */
uint32_t clusters_size_max(const struct probe_context *context);

/* Adds what an SM of the clusters gets in bytes per cycle, in some repeats of the request; bytes:
 * of an SM in one request. */
int clusters_measure_rates(struct probe_context *context, const char *metric,
                           const struct device_cluster *asked, double bytes, const char *method,
                           struct err *err);

/* The latency of loads between SMs of a cluster as the sum of what each of both adds:
 * latency(x, y) = base + way(x) + way(y). */
struct cluster_ways {
    size_t sms;
    double *cycles; /* [x * sms + y], the smallest seen; 0: never seen */
    double *way;    /* by SM; their mean is 0; NAN: in no cluster */
    double base;
    double residual; /* root mean square of what the sum does not explain */
    double least, most;
    size_t pairs;
};

void cluster_ways_init(struct cluster_ways *ways, size_t sms);

void cluster_ways_fini(struct cluster_ways *ways);

/* Adds the cycles of one load; x == y: the own memory, which is not fitted. */
void cluster_ways_add(struct cluster_ways *ways, size_t x, size_t y, double cycles);

void cluster_ways_fit(struct cluster_ways *ways);

#endif
