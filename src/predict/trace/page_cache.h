/* Pages of an open trace: read on demand, checked, shared by the warps that need them. */
#ifndef GPUMEMTOPO_PREDICT_TRACE_PAGE_CACHE_H
#define GPUMEMTOPO_PREDICT_TRACE_PAGE_CACHE_H

#include "predict/trace/page.h"

struct trace_cache;

/* So many bytes of pages are in memory, or, if that is more, 5/4 of the pages that somebody holds.
 */
enum { TRACE_CACHE_KEPT = 16 << 20 };

/* Reads from a descriptor, which stays open. NULL: out of memory. The path is for messages. */
struct trace_cache *trace_cache_create(int fd, const char *path, uint32_t page_bytes);
void trace_cache_destroy(struct trace_cache *cache); /* accepts NULL */

/* Holds a page until trace_cache_release. 0, -ENOMEM, -EIO, or -EINVAL: damaged or of another kind.
 * Several threads may call these two. */
int trace_cache_hold(struct trace_cache *cache, uint32_t number, enum trace_page_kind kind,
                     const uint8_t **out_bytes, uint32_t *out_used, struct err *err);
void trace_cache_release(struct trace_cache *cache, uint32_t number);

#endif
