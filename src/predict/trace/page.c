/* Pages of a trace: sealed with a checksum; those that are in use are kept. */
#include "predict/trace/page.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "inventory/wire/frame.h"

enum { SUM_AT = 4, KIND_AT = 8, ZERO_AT = 9, USED_AT = 10, NUMBER_AT = 12 };

uint64_t trace_page_u64(const uint8_t *bytes)
{
    return trace_page_u32(bytes) | (uint64_t)trace_page_u32(bytes + 4) << 32;
}

uint32_t trace_page_u32(const uint8_t *bytes)
{
    return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

void trace_page_put_u32(uint8_t *bytes, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        bytes[i] = (uint8_t)(value >> 8 * i);
}

void trace_page_put_u64(uint8_t *bytes, uint64_t value)
{
    trace_page_put_u32(bytes, (uint32_t)value);
    trace_page_put_u32(bytes + 4, (uint32_t)(value >> 32));
}

static uint32_t sum_of(const uint8_t *bytes, uint32_t page_bytes)
{
    return frame_crc32(bytes + KIND_AT, page_bytes - KIND_AT);
}

void trace_page_seal(uint8_t *bytes, uint32_t page_bytes, struct trace_page page)
{
    memset(bytes + page.used, 0, page_bytes - page.used);
    trace_page_put_u32(bytes, TRACE_PAGE_MAGIC);
    bytes[KIND_AT] = (uint8_t)page.kind;
    bytes[ZERO_AT] = 0;
    bytes[USED_AT] = (uint8_t)page.used;
    bytes[USED_AT + 1] = (uint8_t)(page.used >> 8);
    trace_page_put_u32(bytes + NUMBER_AT, page.number);
    trace_page_put_u32(bytes + SUM_AT, sum_of(bytes, page_bytes));
}

static const char *page_kind_name(uint32_t kind)
{
    static const char *const names[] = {"?", "head", "data", "leaf", "root", "totals"};
    return names[kind < sizeof names / sizeof *names ? kind : 0];
}

int trace_page_check(const uint8_t *bytes, uint32_t page_bytes, struct trace_page expected,
                     const char *file, uint32_t *out_used, struct err *err)
{
    unsigned long long at = (unsigned long long)expected.number * page_bytes;
    uint32_t used = bytes[USED_AT] | (uint32_t)bytes[USED_AT + 1] << 8;
    uint32_t number = trace_page_u32(bytes + NUMBER_AT), sum = trace_page_u32(bytes + SUM_AT);
    if (trace_page_u32(bytes) != TRACE_PAGE_MAGIC)
        return err_set_at(err, -EINVAL, file, 0, 0, "byte %llu: expected a page (\"GMTP\")", at);
    if (sum != sum_of(bytes, page_bytes))
        return err_set_at(err, -EINVAL, file, 0, 0,
                          "byte %llu: expected a page with the sum %08x, its bytes have %08x: it "
                          "is damaged",
                          at, sum, sum_of(bytes, page_bytes));
    if (number != expected.number)
        return err_set_at(err, -EINVAL, file, 0, 0, "byte %llu: expected page %u, this is page %u",
                          at, expected.number, number);
    if (bytes[KIND_AT] != expected.kind || bytes[ZERO_AT])
        return err_set_at(err, -EINVAL, file, 0, 0, "byte %llu: expected a page of kind %s, not %s",
                          at, page_kind_name(expected.kind), page_kind_name(bytes[KIND_AT]));
    if (used < TRACE_PAGE_HEADER || used > page_bytes)
        return err_set_at(err, -EINVAL, file, 0, 0,
                          "byte %llu: expected %d to %u used bytes in a page, not %u", at,
                          TRACE_PAGE_HEADER, page_bytes, used);
    *out_used = used;
    return 0;
}

enum { BUCKETS = 1 << 12 };

struct cached_frame {
    uint8_t *bytes;
    uint32_t number, used, holders, next; /* next: in its bucket, + 1 */
    enum trace_page_kind kind;
    bool filled, recent;
};

struct trace_cache {
    int fd;
    const char *path;
    uint32_t page_bytes, kept;
    struct cached_frame *frames;
    size_t capacity;
    uint32_t count, held, hand; /* held: frames that somebody holds */
    uint32_t buckets[BUCKETS];  /* first frame, + 1 */
    pthread_mutex_t lock;
};

struct trace_cache *trace_cache_create(int fd, const char *path, uint32_t page_bytes)
{
    struct trace_cache *cache = mem_array(1, sizeof *cache);
    cache->fd = fd;
    cache->path = path;
    cache->page_bytes = page_bytes;
    cache->kept = TRACE_CACHE_KEPT / page_bytes;
    pthread_mutex_init(&cache->lock, NULL);
    return cache;
}

void trace_cache_destroy(struct trace_cache *cache)
{
    if (!cache)
        return;
    for (uint32_t i = 0; i < cache->count; i++)
        free(cache->frames[i].bytes);
    free(cache->frames);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

static uint32_t *cached_bucket(struct trace_cache *cache, uint32_t number)
{
    return &cache->buckets[number % BUCKETS];
}

static struct cached_frame *cached_find(struct trace_cache *cache, uint32_t number)
{
    for (uint32_t i = *cached_bucket(cache, number); i; i = cache->frames[i - 1].next)
        if (cache->frames[i - 1].number == number)
            return &cache->frames[i - 1];
    return NULL;
}

static void leave_bucket(struct trace_cache *cache, struct cached_frame *frame)
{
    uint32_t self = (uint32_t)(frame - cache->frames) + 1,
             *link = cached_bucket(cache, frame->number);
    while (*link != self)
        link = &cache->frames[*link - 1].next;
    *link = frame->next;
    frame->filled = false;
}

/* A frame that nobody holds, the second time that the hand passes it; a new one while there are
 * few, or if most are held. */
static struct cached_frame *take_frame(struct trace_cache *cache)
{
    if (cache->count < cache->kept || cache->count <= cache->held + cache->held / 4) {
        cache->frames =
            mem_grow(cache->frames, &cache->capacity, cache->count + 1, sizeof *cache->frames);
        struct cached_frame *frame = &cache->frames[cache->count++];
        frame->bytes = mem_array(1, cache->page_bytes);
        return frame;
    }
    for (;;) {
        struct cached_frame *frame = &cache->frames[cache->hand];
        cache->hand = (cache->hand + 1) % cache->count;
        if (!frame->holders && !frame->recent) {
            if (frame->filled)
                leave_bucket(cache, frame);
            return frame;
        }
        frame->recent = false;
    }
}

static int read_page(struct trace_cache *cache, uint32_t number, uint8_t *bytes, struct err *err)
{
    uint64_t at = (uint64_t)number * cache->page_bytes;
    for (size_t done = 0; done < cache->page_bytes;) {
        ssize_t got = pread(cache->fd, bytes + done, cache->page_bytes - done, (off_t)(at + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_set_at(err, -EIO, cache->path, 0, 0, "byte %llu: cannot read: %s",
                              (unsigned long long)at, strerror(errno));
        if (got == 0)
            return err_set_at(err, -EINVAL, cache->path, 0, 0,
                              "byte %llu: expected %u bytes of a page, the file ends after %zu",
                              (unsigned long long)at, cache->page_bytes, done);
        done += (size_t)got;
    }
    return 0;
}

static int cached_load(struct trace_cache *cache, uint32_t number, enum trace_page_kind kind,
                       struct cached_frame **out_frame, struct err *err)
{
    struct cached_frame *frame = take_frame(cache);
    uint32_t used;
    int rc = read_page(cache, number, frame->bytes, err);
    rc = rc ? rc
            : trace_page_check(frame->bytes, cache->page_bytes,
                               (struct trace_page){.kind = kind, .number = number}, cache->path,
                               &used, err);
    if (rc)
        return rc;
    uint32_t *bucket = cached_bucket(cache, number);
    *frame = (struct cached_frame){.bytes = frame->bytes,
                                   .number = number,
                                   .used = used,
                                   .kind = kind,
                                   .next = *bucket,
                                   .filled = true};
    *bucket = (uint32_t)(frame - cache->frames) + 1;
    *out_frame = frame;
    return 0;
}

int trace_cache_hold(struct trace_cache *cache, uint32_t number, enum trace_page_kind kind,
                     const uint8_t **out_bytes, uint32_t *out_used, struct err *err)
{
    int rc = 0;
    pthread_mutex_lock(&cache->lock);
    struct cached_frame *frame = cached_find(cache, number);
    if (!frame)
        rc = cached_load(cache, number, kind, &frame, err);
    else if (frame->kind != kind)
        rc = trace_page_check(frame->bytes, cache->page_bytes,
                              (struct trace_page){.kind = kind, .number = number}, cache->path,
                              out_used, err);
    if (!rc) {
        cache->held += frame->holders++ == 0;
        frame->recent = true;
        *out_bytes = frame->bytes;
        *out_used = frame->used;
    }
    pthread_mutex_unlock(&cache->lock);
    return rc;
}

void trace_cache_release(struct trace_cache *cache, uint32_t number)
{
    pthread_mutex_lock(&cache->lock);
    struct cached_frame *frame = cached_find(cache, number);
    if (frame)
        cache->held -= --frame->holders == 0;
    pthread_mutex_unlock(&cache->lock);
}
