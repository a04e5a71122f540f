/* Sorts accesses by block and warp in bounded memory, with a temporary file. */
#ifndef GPUMEMTOPO_PREDICT_TRACE_SORTER_H
#define GPUMEMTOPO_PREDICT_TRACE_SORTER_H

#include "base/err.h"
#include "predict/warp.h"

struct trace_sorter;

/* Bytes of accesses, and accesses, that are sorted at a time. */
enum { TRACE_SORTER_BYTES = 128 << 20, TRACE_SORTER_ITEMS = 4 << 20 };

/* beside: what does not fit goes to a temporary file in the folder of this path. bytes: 0 for
 * TRACE_SORTER_BYTES. */
struct trace_sorter *trace_sorter_create(const char *beside, size_t bytes);
void trace_sorter_destroy(struct trace_sorter *sorter); /* accepts NULL */

/* -EINVAL: the access cannot be written (see trace_code_put). */
int trace_sorter_add(struct trace_sorter *sorter, uint32_t block, uint32_t warp,
                     const struct warp_access *access, uint64_t pc, struct err *err);

bool trace_sorter_is_empty(const struct trace_sorter *sorter);

/* Called for each access, in order; an error ends it. */
typedef int trace_sorter_sink(void *context, uint32_t block, uint32_t warp,
                              const struct warp_access *access, uint64_t pc, struct err *err);

/* Gives away all accesses. Nothing can be added afterwards. */
int trace_sorter_drain(struct trace_sorter *sorter, trace_sorter_sink *sink, void *context,
                       struct err *err);

#endif
