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

/* Cycles per load of a chase through an array that is warm after one pass. study: how single
 * loads of this path scatter (stage STUDY_LEVEL); chases are long where they are quiet, short and
 * many where they are not. */
int latency_measure(struct probe_context *context, const struct device_array *array,
                    const struct study *study, struct latency *out_latency, struct err *err);

#endif
