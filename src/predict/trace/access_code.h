/* One access of a warp as bytes: what the same instruction did before is not repeated. */
#ifndef GPUMEMTOPO_PREDICT_TRACE_ACCESS_CODE_H
#define GPUMEMTOPO_PREDICT_TRACE_ACCESS_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "predict/warp.h"

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
