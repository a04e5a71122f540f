/* Pages of a trace file, and a cache of those that are read. */
#ifndef GPUMEMTOPO_PREDICT_TRACE_PAGE_H
#define GPUMEMTOPO_PREDICT_TRACE_PAGE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum trace_page_kind {
    TRACE_PAGE_HEAD = 1,
    TRACE_PAGE_DATA,
    TRACE_PAGE_LEAF,
    TRACE_PAGE_ROOT,
    TRACE_PAGE_TOTALS,
};

enum {
    TRACE_PAGE_BYTES = 4096, /* that the program writes; a file may have others */
    TRACE_PAGE_BYTES_MIN = 512,
    TRACE_PAGE_BYTES_MAX = 16384,
    TRACE_PAGE_HEADER = 16,
    TRACE_PAGE_MAGIC = 0x50544d47, /* "GMTP" */
};

/* What the header of a page says. */
struct trace_page {
    enum trace_page_kind kind;
    uint32_t number, used; /* used: bytes of the page that mean something, with its header */
};

/* Completes a page whose bytes from TRACE_PAGE_HEADER to `page.used` are there: header, zeros, sum.
 */
void trace_page_seal(uint8_t *bytes, uint32_t page_bytes, struct trace_page page);

/* Checks magic, sum, number and kind. 0, or -EINVAL naming file, byte and what was expected. */
int trace_page_check(const uint8_t *bytes, uint32_t page_bytes, struct trace_page expected,
                     const char *file, uint32_t *out_used, struct err *err);

uint64_t trace_page_u64(const uint8_t *bytes);
uint32_t trace_page_u32(const uint8_t *bytes);
void trace_page_put_u64(uint8_t *bytes, uint64_t value);
void trace_page_put_u32(uint8_t *bytes, uint32_t value);

struct trace_cache;

/* So many bytes of pages are in memory, or, if that is more, 5/4 of the pages that somebody holds.
 */
enum { TRACE_CACHE_KEPT = 16 << 20 };

/* Reads from a descriptor, which stays open. The path is for messages. */
struct trace_cache *trace_cache_create(int fd, const char *path, uint32_t page_bytes);
void trace_cache_destroy(struct trace_cache *cache); /* accepts NULL */

/* Holds a page until trace_cache_release. 0, -EIO, or -EINVAL: damaged or of another kind.
 * Several threads may call these two. */
int trace_cache_hold(struct trace_cache *cache, uint32_t number, enum trace_page_kind kind,
                     const uint8_t **out_bytes, uint32_t *out_used, struct err *err);
void trace_cache_release(struct trace_cache *cache, uint32_t number);

#endif
