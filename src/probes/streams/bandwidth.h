/* Bandwidth of a memory: the best of several shapes of a stream, repeated. */
#ifndef GPUMEMTOPO_PROBES_STREAMS_BANDWIDTH_H
#define GPUMEMTOPO_PROBES_STREAMS_BANDWIDTH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "device/device.h"

struct probe_context;

struct bandwidth_task {
    const char *metric;
    enum device_stream_kind kind;
    enum device_path path;    /* not for streams between host and GPU */
    uint64_t footprint_bytes; /* as in struct device_stream */
    bool ticket;              /* work is handed out as blocks ask for it (struct device_tickets) */
    bool no_surface;          /* in the profile `full` too */
};

/* The shape of a launch. */
struct bandwidth_shape {
    uint32_t width_bytes;
    uint32_t threads;
    uint32_t blocks_per_sm; /* 0: chosen by the backend */
    uint32_t unroll;        /* accesses in flight per thread */
    /* Of streams by ticket, as in struct device_tickets. */
    uint32_t chunk_bytes, equal_percent;
};

enum { BANDWIDTH_UNROLL_MAX = 8, BANDWIDTH_WARP_THREADS = 32 };

/* Adds the metric in GB/s. Loads and stores are streamed in a few shapes (threads, accesses in
 * flight). The profile `full` tries all shapes and adds the surface, and a better shape if it has
 * one, as notes; the figure itself is the same in every profile. A further round uses the shape
 * that was best in the first. */
int bandwidth_report(struct probe_context *context, const struct bandwidth_task *task,
                     struct err *err);

/* Adds `metric`: the rate of the task's best shape with accesses of 4 bytes, and as the note
 * `by_width` that of every width. After bandwidth_report of the task. */
int bandwidth_report_widths(struct probe_context *context, const struct bandwidth_task *task,
                            const char *metric, struct err *err);

/* A shape by ticket as this GPU and footprint allow it. The chunks that are under way at once must
 * not be more than the footprint has: two SMs that load the same line at the same time are served
 * once (counted on an H200: 8 % fewer loads reach L2 if chunks of nine footprints are under way).
 */
struct bandwidth_shape bandwidth_fit_tickets(const struct probe_context *context,
                                             const struct bandwidth_task *task,
                                             const struct bandwidth_shape *usual);

enum { BANDWIDTH_CHOICES_MAX = 24 };

/* The best shape of a metric's first round. */
struct bandwidth_choice {
    const char *metric; /* NULL: none */
    struct bandwidth_shape shape;
    uint64_t total_bytes; /* long enough to be timed well */
};

#endif
