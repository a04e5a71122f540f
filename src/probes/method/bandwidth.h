/* Bandwidth of a memory: the best of several shapes of a stream, repeated. */
#ifndef GPUMEMTOPO_PROBES_METHOD_BANDWIDTH_H
#define GPUMEMTOPO_PROBES_METHOD_BANDWIDTH_H

#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "device/device.h"

struct probe_context;

struct bandwidth_task {
    const char *metric;
    enum device_stream_kind kind;
    enum device_path path;    /* not for streams between host and GPU */
    uint64_t footprint_bytes; /* as in struct device_stream */
};

/* Adds the metric in GB/s. Streams of loads and stores are tried in a few shapes (threads, accesses
 * in flight), in the profile `full` in all of them, with the surface, and what it has that is
 * better, as notes: the figure itself is the same in every profile. A further round takes the shape
 * that the first one found best. */
int bandwidth_report(struct probe_context *context, const struct bandwidth_task *task,
                     struct err *err);

/* The shape of a launch. */
struct bandwidth_shape {
    uint32_t width_bytes;
    uint32_t threads;
    uint32_t blocks_per_sm; /* 0: what the backend finds best */
    uint32_t unroll;        /* accesses in flight per thread */
};

enum { BANDWIDTH_CHOICES_MAX = 16, BANDWIDTH_UNROLL_MAX = 8 };

/* What the first round of a metric found best. */
struct bandwidth_choice {
    const char *metric; /* NULL: none */
    struct bandwidth_shape shape;
    uint64_t total_bytes; /* long enough to be timed well */
};

/* Streams long enough to be timed well, and gives the rate in GB/s. The footprint is the task's,
 * less a remainder that only some of the threads would have. *total_bytes is where to begin (0: one
 * pass), and what was found long enough. */
int bandwidth_time(struct probe_context *context, const struct bandwidth_task *task,
                   const struct bandwidth_shape *shape, uint64_t *total_bytes, double *out_gbs,
                   struct err *err);

/* Every width, number of threads and of blocks once, then the best of them with other numbers of
 * accesses in flight (surface.c; thesis, section 6.1). out_text: compact, released by strbuf_fini.
 * -ENOTSUP when the device has none of the streams. */
int bandwidth_surface(struct probe_context *context, const struct bandwidth_task *task,
                      struct bandwidth_shape *out_best, struct strbuf *out_text, struct err *err);

/* The most accesses in flight per thread, up to BANDWIDTH_UNROLL_MAX, that one pass has room for.
 */
uint32_t bandwidth_unroll(const struct probe_context *context, const struct bandwidth_task *task,
                          const struct bandwidth_shape *shape);

/* Whether a block may have so many threads. */
bool bandwidth_allows(const struct probe_context *context, uint32_t threads);

#endif
