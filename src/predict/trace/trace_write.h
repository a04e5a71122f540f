/* Writes a trace: blocks in ascending order, warps of a block in ascending order. */
#ifndef GPUMEMTOPO_PREDICT_TRACE_TRACE_WRITE_H
#define GPUMEMTOPO_PREDICT_TRACE_TRACE_WRITE_H

#include "predict/trace/head.h"
#include "predict/warp.h"

struct trace_writer;

/* The file appears when it is finished, whole. -EINVAL: the head makes no sense. */
int trace_writer_create(const char *path, const struct trace_head *head,
                        struct trace_writer **out_writer, struct err *err);

/* Block and warp are not below those of the call before. -EINVAL: they are, or are not in the
 * grid, or the access cannot be written (see trace_code_put). */
int trace_writer_add(struct trace_writer *writer, uint64_t block, uint32_t warp,
                     const struct warp_access *access, uint64_t pc, struct err *err);

/* out_totals may be NULL. */
int trace_writer_finish(struct trace_writer *writer, struct trace_totals *out_totals,
                        struct err *err);

/* Removes the file if it is not finished. Accepts NULL. */
void trace_writer_destroy(struct trace_writer *writer);

#endif
