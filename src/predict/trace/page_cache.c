/* Keeps checked pages of a trace in memory while somebody holds them, and some longer. */
#include "predict/trace/page_cache.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

enum { BUCKETS = 1 << 12 };

struct frame {
    uint8_t *bytes;
    uint32_t number, used, holders, next; /* next: in its bucket, + 1 */
    enum trace_page_kind kind;
    bool filled, recent;
};

struct trace_cache {
    int fd;
    const char *path;
    uint32_t page_bytes, kept;
    struct frame *frames;
    size_t capacity;
    uint32_t count, held, hand; /* held: frames that somebody holds */
    uint32_t buckets[BUCKETS];  /* first frame, + 1 */
    pthread_mutex_t lock;
};

struct trace_cache *trace_cache_create(int fd, const char *path, uint32_t page_bytes)
{
    struct trace_cache *cache = mem_array(1, sizeof *cache);
    if (!cache)
        return NULL;
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

static uint32_t *bucket_of(struct trace_cache *cache, uint32_t number)
{
    return &cache->buckets[number % BUCKETS];
}

static struct frame *find(struct trace_cache *cache, uint32_t number)
{
    for (uint32_t i = *bucket_of(cache, number); i; i = cache->frames[i - 1].next)
        if (cache->frames[i - 1].number == number)
            return &cache->frames[i - 1];
    return NULL;
}

static void leave_bucket(struct trace_cache *cache, struct frame *frame)
{
    uint32_t self = (uint32_t)(frame - cache->frames) + 1, *link = bucket_of(cache, frame->number);
    while (*link != self)
        link = &cache->frames[*link - 1].next;
    *link = frame->next;
    frame->filled = false;
}

static struct frame *add_frame(struct trace_cache *cache)
{
    struct frame *frames =
        mem_grow(cache->frames, &cache->capacity, cache->count + 1, sizeof *frames);
    if (!frames)
        return NULL;
    cache->frames = frames;
    struct frame *frame = &frames[cache->count];
    frame->bytes = mem_array(1, cache->page_bytes);
    if (!frame->bytes)
        return NULL;
    cache->count++;
    return frame;
}

/* A frame that nobody holds, the second time that the hand passes it; a new one while there are
 * few, or if most are held. */
static struct frame *take_frame(struct trace_cache *cache)
{
    if (cache->count < cache->kept || cache->count <= cache->held + cache->held / 4)
        return add_frame(cache);
    for (;;) {
        struct frame *frame = &cache->frames[cache->hand];
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

static int load(struct trace_cache *cache, uint32_t number, enum trace_page_kind kind,
                struct frame **out_frame, struct err *err)
{
    struct frame *frame = take_frame(cache);
    uint32_t used;
    if (!frame)
        return err_no_memory(err);
    int rc = read_page(cache, number, frame->bytes, err);
    rc = rc ? rc
            : trace_page_check(frame->bytes, cache->page_bytes,
                               (struct trace_page){.kind = kind, .number = number}, cache->path,
                               &used, err);
    if (rc)
        return rc;
    uint32_t *bucket = bucket_of(cache, number);
    *frame = (struct frame){.bytes = frame->bytes,
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
    struct frame *frame = find(cache, number);
    if (!frame)
        rc = load(cache, number, kind, &frame, err);
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
    struct frame *frame = find(cache, number);
    if (frame)
        cache->held -= --frame->holders == 0;
    pthread_mutex_unlock(&cache->lock);
}
