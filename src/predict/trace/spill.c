/* Writes runs one behind the other and merges them with a heap. */
#include "predict/trace/spill.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/mem.h"
#include "base/str.h"
#include "predict/trace/page.h"

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

int spill_create(const char *beside, struct spill **out_spill, struct err *err)
{
    struct spill *spill = mem_array(1, sizeof *spill);
    char *path = str_format("%s.sort-XXXXXX", beside);
    int rc = 0;
    if (!spill || !path)
        rc = err_no_memory(err);
    else if ((spill->fd = mkstemp(path)) < 0)
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

void spill_destroy(struct spill *spill)
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

static int flush(struct spill *spill, struct err *err)
{
    int rc = io_write_all(spill->fd, (const char *)spill->buffer, spill->used);
    spill->used = 0;
    return rc ? err_set(err, rc, "cannot write a temporary file: %s", strerror(-rc)) : 0;
}

int spill_begin_run(struct spill *spill, struct err *err)
{
    if (spill->run_count == RUNS_MAX)
        return err_set(err, -EFBIG, "there are too many accesses to sort");
    struct run *runs =
        mem_grow(spill->runs, &spill->run_capacity, spill->run_count + 1, sizeof *runs);
    if (!runs)
        return err_no_memory(err);
    spill->runs = runs;
    runs[spill->run_count++] = (struct run){.at = spill->bytes, .end = spill->bytes};
    return 0;
}

int spill_add(struct spill *spill, const struct spill_record *record, struct err *err)
{
    size_t length = HEADER_BYTES + record->length;
    int rc = spill->used + length > BUFFER_BYTES ? flush(spill, err) : 0;
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

static int refill(struct spill *spill, struct run *run, struct err *err)
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
        int rc = refill(spill, run, err);
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

int spill_merge(struct spill *spill, struct err *err)
{
    int rc = flush(spill, err);
    spill->heap = mem_array(spill->run_count, sizeof *spill->heap);
    if (!rc && !spill->heap)
        rc = err_no_memory(err);
    for (uint32_t i = 0; i < spill->run_count && !rc; i++) {
        spill->runs[i].buffer = mem_array(1, BUFFER_BYTES);
        int got = spill->runs[i].buffer ? advance(spill, &spill->runs[i], err) : err_no_memory(err);
        if (got == 1)
            spill->heap[spill->heap_count++] = i;
        rc = got < 0 ? got : 0;
    }
    for (size_t i = spill->heap_count / 2; i-- > 0 && !rc;)
        sink_down(spill, i);
    return rc;
}

int spill_next(struct spill *spill, struct spill_record *out_record, struct err *err)
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
