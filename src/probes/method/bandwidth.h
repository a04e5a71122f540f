/* Bandwidth of a memory: the best of several shapes of a stream, repeated. */
#ifndef GPUMEMTOPO_PROBES_METHOD_BANDWIDTH_H
#define GPUMEMTOPO_PROBES_METHOD_BANDWIDTH_H

#include "probes/method/bandwidth_stream.h"

/* Adds the metric in GB/s. Streams of loads and stores are tried in a few shapes (threads, accesses
 * in flight), in the profile `full` in all of them, with the surface, and what it has that is
 * better, as notes: the figure itself is the same in every profile. A further round takes the shape
 * that the first one found best. */
int bandwidth_report(struct probe_context *context, const struct bandwidth_task *task,
                     struct err *err);

enum { BANDWIDTH_CHOICES_MAX = 16 };

/* What the first round of a metric found best. */
struct bandwidth_choice {
    const char *metric; /* NULL: none */
    struct bandwidth_shape shape;
    uint64_t total_bytes; /* long enough to be timed well */
};

#endif
