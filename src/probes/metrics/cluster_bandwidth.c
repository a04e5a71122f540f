/* The probe of what SMs of clusters read of each other's shared memory, by the size of clusters. */
#include <stdio.h>

#include "probes/method/clusters.h"
#include "probes/method/repeats.h"

enum { ROUNDS = 400, ROUNDS_FEW = 40 };

static int run(struct probe_context *context, struct err *err)
{
    uint32_t most = clusters_size_max(context);
    bool slow = device_limits(context->device)->loads_max;
    struct device_cluster asked = {
        .work = DEVICE_CLUSTER_READ, .size = 1, .count = slow ? ROUNDS_FEW : ROUNDS};
    double bytes = (double)asked.count * DEVICE_CLUSTER_ROUND_BYTES * DEVICE_CLUSTER_THREADS;
    if (!most)
        return repeats_unsupported(context, "cluster.bandwidth.own", "no clusters", err);
    int rc = clusters_measure_rates(context, "cluster.bandwidth.own", &asked, bytes,
                                    "all threads load the own shared memory", err);
    for (int i = 0; i < CLUSTERS_SIZES && !rc && clusters_sizes[i] <= most; i++) {
        char metric[64];
        asked.size = clusters_sizes[i];
        snprintf(metric, sizeof metric, "cluster.bandwidth.size_%u", asked.size);
        rc = clusters_measure_rates(context, metric, &asked, bytes,
                                    "all threads load the shared memory of the others", err);
    }
    return rc;
}

const struct probe probe_cluster_bandwidth = {
    .description = {"cluster.bandwidth", "bandwidth of the shared memory of other SMs",
                    PROFILE_FULL},
    .depends = {"cluster.groups"},
    .metrics = {"cluster.bandwidth.own", "cluster.bandwidth.*"},
    .run = run,
};
