/* Sorts accesses by block and warp in bounded memory, with a temporary file. */
#include "predict/trace/sorter.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"
#include "predict/trace/access_code.h"
#include "predict/trace/page.h"

struct spill;

struct spill_record {
    uint32_t block, warp, length; /* length: at most TRACE_ACCESS_BYTES_MAX */
    const uint8_t *bytes;
};

/* Of a run, while runs are merged; of the run that is written. */
enum { BUFFER_BYTES = 64 << 10, HEADER_BYTES = 12, RUNS_MAX = 4096 };

struct run {
    uint64_t at, end; /* what is still in the file */
    uint8_t *buffer;
    size_t used, length;
    struct spill_record first; /* its next record */
};

struct spill {
    int fd;
    uint64_t bytes; /* in the file and in `buffer` */
    uint8_t buffer[BUFFER_BYTES];
    size_t used;
    struct run *runs;
    size_t run_capacity, run_count;
    uint32_t *heap; /* runs that have records, the lowest first */
    size_t heap_count;
    bool begun; /* heap[0]'s first record was given away */
};

/* The file is in the folder of `beside`, without a name. */
static int spill_create(const char *beside, struct spill **out_spill, struct err *err)
{
    struct spill *spill = mem_array(1, sizeof *spill);
    char *path = str_format("%s.sort-XXXXXX", beside);
    int rc = 0;
    if ((spill->fd = mkstemp(path)) < 0)
        rc = err_set_at(err, -errno, path, 0, 0, "cannot create: %s", strerror(errno));
    else
        unlink(path);
    free(path);
    if (rc)
        free(spill);
    else
        *out_spill = spill;
    return rc;
}

static void spill_destroy(struct spill *spill)
{
    if (!spill)
        return;
    for (size_t i = 0; i < spill->run_count; i++)
        free(spill->runs[i].buffer);
    free(spill->runs);
    free(spill->heap);
    close(spill->fd);
    free(spill);
}

static int spill_flush(struct spill *spill, struct err *err)
{
    int rc = io_write_all(spill->fd, (const char *)spill->buffer, spill->used);
    spill->used = 0;
    return rc ? err_set(err, rc, "cannot write a temporary file: %s", strerror(-rc)) : 0;
}

/* Records of a run are added in order. */
static int spill_begin_run(struct spill *spill, struct err *err)
{
    if (spill->run_count == RUNS_MAX)
        return err_set(err, -EFBIG, "there are too many accesses to sort");
    spill->runs =
        mem_grow(spill->runs, &spill->run_capacity, spill->run_count + 1, sizeof *spill->runs);
    spill->runs[spill->run_count++] = (struct run){.at = spill->bytes, .end = spill->bytes};
    return 0;
}

static int spill_add(struct spill *spill, const struct spill_record *record, struct err *err)
{
    size_t length = HEADER_BYTES + record->length;
    int rc = spill->used + length > BUFFER_BYTES ? spill_flush(spill, err) : 0;
    if (rc)
        return rc;
    uint8_t *at = spill->buffer + spill->used;
    trace_page_put_u32(at, record->block);
    trace_page_put_u32(at + 4, record->warp);
    trace_page_put_u32(at + 8, record->length);
    memcpy(at + HEADER_BYTES, record->bytes, record->length);
    spill->used += length;
    spill->bytes += length;
    spill->runs[spill->run_count - 1].end = spill->bytes;
    return 0;
}

static int spill_refill(struct spill *spill, struct run *run, struct err *err)
{
    size_t left = run->length - run->used;
    memmove(run->buffer, run->buffer + run->used, left);
    run->used = 0;
    run->length = left;
    while (run->length < BUFFER_BYTES && run->at < run->end) {
        size_t room = BUFFER_BYTES - run->length;
        room = room < run->end - run->at ? room : (size_t)(run->end - run->at);
        ssize_t got = pread(spill->fd, run->buffer + run->length, room, (off_t)run->at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return err_set(err, -EIO, "cannot read a temporary file: %s",
                           got ? strerror(errno) : "it is too short");
        run->length += (size_t)got;
        run->at += (uint64_t)got;
    }
    return 0;
}

/* 1: the run's next record is in `first`; 0: it has none left. */
static int advance(struct spill *spill, struct run *run, struct err *err)
{
    for (int tries = 0; tries < 2; tries++) {
        size_t left = run->length - run->used;
        const uint8_t *at = run->buffer + run->used;
        if (left >= HEADER_BYTES && left - HEADER_BYTES >= trace_page_u32(at + 8)) {
            run->first = (struct spill_record){trace_page_u32(at), trace_page_u32(at + 4),
                                               trace_page_u32(at + 8), at + HEADER_BYTES};
            run->used += HEADER_BYTES + run->first.length;
            return 1;
        }
        if (!left && run->at == run->end)
            return 0;
        int rc = spill_refill(spill, run, err);
        if (rc)
            return rc;
    }
    return err_set(err, -EIO, "a temporary file was changed");
}

static bool comes_before(const struct spill *spill, uint32_t a, uint32_t b)
{
    const struct spill_record *x = &spill->runs[a].first, *y = &spill->runs[b].first;
    if (x->block != y->block)
        return x->block < y->block;
    if (x->warp != y->warp)
        return x->warp < y->warp;
    return a < b;
}

static void sink_down(struct spill *spill, size_t at)
{
    for (;;) {
        size_t least = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < spill->heap_count; child++)
            if (comes_before(spill, spill->heap[child], spill->heap[least]))
                least = child;
        if (least == at)
            return;
        uint32_t moved = spill->heap[at];
        spill->heap[at] = spill->heap[least];
        spill->heap[least] = moved;
        at = least;
    }
}

/* Ends the last run. Then spill_next gives all records in order of block and warp, those of earlier
 * runs first: 1, 0 at the end, or an error. A record is valid until the next call. */
static int spill_merge(struct spill *spill, struct err *err)
{
    int rc = spill_flush(spill, err);
    spill->heap = mem_array(spill->run_count, sizeof *spill->heap);
    for (uint32_t i = 0; i < spill->run_count && !rc; i++) {
        spill->runs[i].buffer = mem_array(1, BUFFER_BYTES);
        int got = advance(spill, &spill->runs[i], err);
        if (got == 1)
            spill->heap[spill->heap_count++] = i;
        rc = got < 0 ? got : 0;
    }
    for (size_t i = spill->heap_count / 2; i-- > 0 && !rc;)
        sink_down(spill, i);
    return rc;
}

static int spill_next(struct spill *spill, struct spill_record *out_record, struct err *err)
{
    if (spill->begun && spill->heap_count) {
        int got = advance(spill, &spill->runs[spill->heap[0]], err);
        if (got < 0)
            return got;
        if (!got)
            spill->heap[0] = spill->heap[--spill->heap_count];
        sink_down(spill, 0);
    }
    spill->begun = true;
    if (!spill->heap_count)
        return 0;
    *out_record = spill->runs[spill->heap[0]].first;
    return 1;
}

/* An access in memory: `length` bytes at `at`. */
struct item {
    uint32_t block, warp, at, length;
};

struct trace_sorter {
    uint8_t *bytes;
    size_t capacity, used;
    struct item *items;
    size_t item_capacity, item_count;
    struct spill *spill; /* the runs that did not fit; NULL: none */
    char *beside;
};

struct trace_sorter *trace_sorter_create(const char *beside, size_t bytes)
{
    struct trace_sorter *sorter = mem_array(1, sizeof *sorter);
    sorter->capacity = bytes ? bytes : TRACE_SORTER_BYTES;
    sorter->bytes = mem_array(1, sorter->capacity);
    sorter->beside = str_copy(beside);
    return sorter;
}

bool trace_sorter_is_empty(const struct trace_sorter *sorter)
{
    return !sorter->item_count && !sorter->spill;
}

void trace_sorter_destroy(struct trace_sorter *sorter)
{
    if (!sorter)
        return;
    spill_destroy(sorter->spill);
    free(sorter->bytes);
    free(sorter->items);
    free(sorter->beside);
    free(sorter);
}

/* Later ones of the same warp have a higher `at`. */
static int compare_items(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    if (x->block != y->block)
        return x->block < y->block ? -1 : 1;
    if (x->warp != y->warp)
        return x->warp < y->warp ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

static void sort_items(struct trace_sorter *sorter)
{
    if (sorter->item_count)
        sort_stable(sorter->items, sorter->item_count, sizeof *sorter->items, compare_items);
}

static int spill_run(struct trace_sorter *sorter, struct err *err)
{
    int rc = sorter->spill ? 0 : spill_create(sorter->beside, &sorter->spill, err);
    sort_items(sorter);
    rc = rc ? rc : spill_begin_run(sorter->spill, err);
    for (size_t i = 0; i < sorter->item_count && !rc; i++) {
        const struct item *item = &sorter->items[i];
        struct spill_record record = {item->block, item->warp, item->length,
                                      sorter->bytes + item->at};
        rc = spill_add(sorter->spill, &record, err);
    }
    sorter->used = sorter->item_count = 0;
    return rc;
}

int trace_sorter_add(struct trace_sorter *sorter, uint32_t block, uint32_t warp,
                     const struct warp_access *access, uint64_t pc, struct err *err)
{
    struct trace_code code;
    int rc = 0;
    if (sorter->capacity - sorter->used < TRACE_ACCESS_BYTES_MAX ||
        sorter->item_count == TRACE_SORTER_ITEMS)
        rc = spill_run(sorter, err);
    if (rc)
        return rc;
    struct item *items =
        mem_grow(sorter->items, &sorter->item_capacity, sorter->item_count + 1, sizeof *items);
    sorter->items = items;
    trace_code_reset(&code);
    size_t length = trace_code_put(&code, access, pc, sorter->bytes + sorter->used);
    if (!length)
        return err_set(err, -EINVAL,
                       "expected addresses below 2^56 that are multiples of the element's %u bytes",
                       access->bytes);
    items[sorter->item_count++] =
        (struct item){block, warp, (uint32_t)sorter->used, (uint32_t)length};
    sorter->used += length;
    return 0;
}

static int give(const struct spill_record *record, trace_sorter_sink *sink, void *context,
                struct err *err)
{
    struct trace_code code;
    struct warp_access access;
    uint64_t pc;
    const char *expected;
    trace_code_reset(&code);
    if (!trace_code_get(&code, record->bytes, record->length, &access, &pc, &expected))
        return err_set(err, -EIO, "the temporary file was changed: expected %s", expected);
    return sink(context, record->block, record->warp, &access, pc, err);
}

int trace_sorter_drain(struct trace_sorter *sorter, trace_sorter_sink *sink, void *context,
                       struct err *err)
{
    int rc = 0;
    if (!sorter->spill) {
        sort_items(sorter);
        for (size_t i = 0; i < sorter->item_count && !rc; i++) {
            const struct item *item = &sorter->items[i];
            struct spill_record record = {item->block, item->warp, item->length,
                                          sorter->bytes + item->at};
            rc = give(&record, sink, context, err);
        }
        return rc;
    }
    rc = spill_run(sorter, err);
    free(sorter->bytes);
    free(sorter->items);
    sorter->bytes = NULL;
    sorter->items = NULL;
    rc = rc ? rc : spill_merge(sorter->spill, err);
    struct spill_record record;
    while (!rc && (rc = spill_next(sorter->spill, &record, err)) == 1)
        rc = give(&record, sink, context, err);
    return rc;
}
