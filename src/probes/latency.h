/* Latency from long dependent chases, free of timer and loop overhead. */
#ifndef GPUMEMTOPO_PROBES_LATENCY_H
#define GPUMEMTOPO_PROBES_LATENCY_H

#include "probes/probe.h"

struct latency {
    double cycles;
    double spread; /* half the range of the repetitions */
    double ns;     /* 0 where the device has no real-time clock */
    uint32_t n;    /* chases behind it */
};

/* Cycles per load of a chase through an array that is warm after one pass. stray_share: how often
 * a load takes far longer than its level (measured by the caller): it bounds the length of the
 * chases, so that at least half of them meet no such load. */
int latency_measure(struct probe_context *context, const struct device_array *array,
                    double stray_share, struct latency *out_latency, struct err *err);

#endif
