/* Makes traces from texts. */
#ifndef GPUMEMTOPO_PREDICT_TRACE_CONVERT_H
#define GPUMEMTOPO_PREDICT_TRACE_CONVERT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "predict/trace/head.h"
#include "predict/trace/opcode.h"
#include "predict/trace/sorter.h"
#include "predict/trace/text_lines.h"

struct convert_request {
    const char *in, *out; /* in: "-" is the standard input */
    bool has_launch;
    uint64_t launch;     /* of several: this one, from 0 */
    size_t sort_bytes;   /* 0: TRACE_SORTER_BYTES */
    uint32_t page_bytes; /* 0: TRACE_PAGE_BYTES */
};

struct convert_result {
    struct trace_head head;
    struct trace_totals totals;
    uint64_t skipped[OPCODE_SPACES]; /* accesses that do not go through the caches */
    uint64_t other_launches;         /* accesses of them */
};

/* -EINVAL, with file, line and column, for what is wrong in the text. */
int convert_nvbit(const struct convert_request *request, struct convert_result *out_result,
                  struct err *err);
int convert_csv(const struct convert_request *request, struct convert_result *out_result,
                struct err *err);

/* Writes what was sorted. ranked: numbers of warps are any; those of a block become 0, 1, ... in
 * their order. */
int convert_write(const struct convert_request *request, struct trace_sorter *sorter, bool ranked,
                  struct convert_result *result, struct err *err);

#endif
