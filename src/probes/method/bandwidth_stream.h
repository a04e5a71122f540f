/* One stream of a shape: how much it has in flight, and how fast it is. */
#ifndef GPUMEMTOPO_PROBES_METHOD_BANDWIDTH_STREAM_H
#define GPUMEMTOPO_PROBES_METHOD_BANDWIDTH_STREAM_H

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
};

/* The shape of a launch. */
struct bandwidth_shape {
    uint32_t width_bytes;
    uint32_t threads;
    uint32_t blocks_per_sm; /* 0: chosen by the backend */
    uint32_t unroll;        /* accesses in flight per thread */
};

enum { BANDWIDTH_UNROLL_MAX = 8, BANDWIDTH_WARP_THREADS = 32 };

/* True when a kernel streams; else the host link copies. */
bool bandwidth_by_kernel(const struct bandwidth_task *task);

/* True for L1 and shared memory: each SM has its own, and its own footprint. */
bool bandwidth_per_block(const struct bandwidth_task *task);

/* Bytes that all threads of a launch have in flight; 0: not known. */
uint64_t bandwidth_in_flight(const struct bandwidth_task *task, const struct bandwidth_shape *shape,
                             uint32_t sms);

/* Streams long enough to be timed well, and returns the rate in GB/s. The footprint is the task's,
 * without a remainder that only some threads would have. *total_bytes: in, where to begin (0: one
 * pass); out, what was long enough. */
int bandwidth_time(struct probe_context *context, const struct bandwidth_task *task,
                   const struct bandwidth_shape *shape, uint64_t *total_bytes, double *out_gbs,
                   struct err *err);

/* The most accesses in flight per thread, up to BANDWIDTH_UNROLL_MAX, that fit into one pass. */
uint32_t bandwidth_unroll(const struct probe_context *context, const struct bandwidth_task *task,
                          const struct bandwidth_shape *shape);

/* True when a block may have this many threads. */
bool bandwidth_allows(const struct probe_context *context, uint32_t threads);

#endif
