/* The accesses of a trace as bytes. */
#ifndef GPUMEMTOPO_PREDICT_TRACE_ACCESS_CODE_H
#define GPUMEMTOPO_PREDICT_TRACE_ACCESS_CODE_H

#include <stdbool.h>
#include <stddef.h>
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

enum { TRACE_SLOTS = 16, TRACE_ACCESS_BYTES_MAX = 384, TRACE_ELEMENT_MAX = 32 };

/* What is known of one instruction of the warp. */
struct trace_slot {
    uint64_t pc, base;
    int64_t delta, step_x, step_y;
    uint32_t mask;
    uint8_t store, bytes_log2, lanes_log2, listed;
};

/* What is known of a warp; zero-initialised or reset at its begin. Writer and reader have the same.
 */
struct trace_code {
    struct trace_slot slots[TRACE_SLOTS];
    uint64_t last_pc, last_base;
    uint32_t used, next; /* used: slots with an instruction, a bit each; next: to be taken */
};

/* The state at the begin of a warp, without touching what is not used then. */
static inline void trace_code_reset(struct trace_code *code)
{
    code->last_pc = code->last_base = 0;
    code->used = code->next = 0;
}

/* Appends an access; returns its length, or 0 if it cannot be written: no lane, an element that is
 * no power of two up to TRACE_ELEMENT_MAX, an address that is not a multiple of it or not below
 * TRACE_ADDRESS_END. Accesses with listed addresses that lie evenly become even ones. */
size_t trace_code_put(struct trace_code *code, const struct warp_access *access, uint64_t pc,
                      uint8_t out_bytes[TRACE_ACCESS_BYTES_MAX]);

/* Reads one access; returns its length, or 0 and what was expected. */
size_t trace_code_get(struct trace_code *code, const uint8_t *bytes, size_t length,
                      struct warp_access *out_access, uint64_t *out_pc, const char **out_expected);

#endif
