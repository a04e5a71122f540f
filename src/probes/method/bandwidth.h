/* Bandwidth of a memory: the best of several shapes of a stream, repeated. */
#ifndef GPUMEMTOPO_PROBES_METHOD_BANDWIDTH_H
#define GPUMEMTOPO_PROBES_METHOD_BANDWIDTH_H

#include "probes/method/bandwidth_stream.h"

/* Adds the metric in GB/s. Loads and stores are streamed in a few shapes (threads, accesses in
 * flight). The profile `full` tries all shapes and adds the surface, and a better shape if it has
 * one, as notes; the figure itself is the same in every profile. A further round uses the shape
 * that was best in the first. */
int bandwidth_report(struct probe_context *context, const struct bandwidth_task *task,
                     struct err *err);

enum { BANDWIDTH_CHOICES_MAX = 16 };

/* The best shape of a metric's first round. */
struct bandwidth_choice {
    const char *metric; /* NULL: none */
    struct bandwidth_shape shape;
    uint64_t total_bytes; /* long enough to be timed well */
};

#endif
