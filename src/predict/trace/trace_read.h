/* Reads a trace: any warp of any block, access by access. */
#ifndef GPUMEMTOPO_PREDICT_TRACE_TRACE_READ_H
#define GPUMEMTOPO_PREDICT_TRACE_TRACE_READ_H

#include "predict/trace/access_code.h"
#include "predict/trace/head.h"
#include "predict/warp.h"

struct trace_reader;

/* -EINVAL, naming file and byte and what was expected, if it is no trace, damaged, cut off or of
 * another version; the system's error code if it cannot be read. */
int trace_reader_open(const char *path, struct trace_reader **out_reader, struct err *err);
void trace_reader_close(struct trace_reader *reader); /* accepts NULL */

/* Valid as long as the reader. */
const struct trace_head *trace_reader_head(const struct trace_reader *reader);
const struct trace_totals *trace_reader_totals(const struct trace_reader *reader);

/* The first block from `block` on that has accesses; the number of blocks if none has. Whole leaves
 * of the index without accesses are passed at once. Several threads may call it. */
int trace_reader_next_block(struct trace_reader *reader, uint64_t block, uint64_t *out_block,
                            struct err *err);

/* -EINVAL, naming file and byte, if the totals of the file are not those that were counted. */
int trace_reader_compare(const struct trace_reader *reader, const struct trace_totals *counted,
                         struct err *err);

/* Where a warp is in its accesses. It holds one page, until trace_warp_fini. */
struct trace_warp {
    uint64_t left; /* accesses */
    const uint8_t *bytes;
    uint32_t page, at, used;
    struct trace_code code;
};

/* Several threads may call these, each with warps of its own. */
int trace_warp_init(struct trace_warp *warp, struct trace_reader *reader, uint64_t block,
                    uint32_t number, struct err *err);

/* 1: an access; 0: there is none left; -EINVAL or another error. */
int trace_warp_next(struct trace_warp *warp, struct trace_reader *reader,
                    struct warp_access *out_access, uint64_t *out_pc, struct err *err);
void trace_warp_fini(struct trace_warp *warp, struct trace_reader *reader);

#endif
