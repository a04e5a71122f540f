/* Addresses of a warp's lanes: whether they lie evenly, and where. */
#ifndef GPUMEMTOPO_PREDICT_TRACE_LANES_H
#define GPUMEMTOPO_PREDICT_TRACE_LANES_H

#include <stdbool.h>
#include <stdint.h>

#include "predict/trace/head.h"
#include "predict/warp.h"

/* Lane i is at base + (i % lanes_x) step_x + (i / lanes_x) step_y. */
struct trace_lanes {
    uint64_t base;
    int64_t step_x, step_y;
    uint32_t lanes_x;
};

uint64_t trace_lanes_address(const struct warp_access *access, uint32_t lane);

/* All 32 lanes, active or not, are multiples of `bytes` below TRACE_ADDRESS_END. */
bool trace_lanes_fit(const struct trace_lanes *lanes, uint32_t bytes);

/* How the active lanes of an access lie; false: not evenly. */
bool trace_lanes_find(const struct warp_access *access, struct trace_lanes *out_lanes);

/* Adds an access to accesses, loads, lanes, addresses and largest element. */
void trace_lanes_count(const struct warp_access *access, struct trace_totals *totals);

#endif
