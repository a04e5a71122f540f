/* Gives the model the accesses of a trace. */
#include "predict/trace/trace_source.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/mem.h"
#include "predict/warp.h"

/* A warp in flight, or a place for one. */
struct place {
    struct trace_warp warp;
    struct place *next, *all; /* next that is free; all that were ever made */
};

struct trace_source {
    struct access_source access; /* first */
    struct kernel kernel;        /* what the model asks a kernel for */
    struct trace_reader *reader;
    pthread_mutex_t lock; /* for all that follows */
    struct place *free, *all;
    atomic_bool failed;
    struct err err;
};

const struct trace_head *trace_source_head(const struct trace_source *source)
{
    return trace_reader_head(source->reader);
}

const struct trace_totals *trace_source_totals(const struct trace_source *source)
{
    return trace_reader_totals(source->reader);
}

static void source_fail(struct trace_source *source, const struct err *err)
{
    pthread_mutex_lock(&source->lock);
    if (!source->failed)
        source->err = *err;
    source->failed = true;
    pthread_mutex_unlock(&source->lock);
}

static struct place *take_place(struct trace_source *source)
{
    pthread_mutex_lock(&source->lock);
    struct place *place = source->free;
    if (place) {
        source->free = place->next;
    } else {
        place = mem_array(1, sizeof *place);
        place->all = source->all;
        source->all = place;
    }
    pthread_mutex_unlock(&source->lock);
    return place;
}

static void give_back(struct trace_source *source, struct place *place)
{
    trace_warp_fini(&place->warp, source->reader);
    pthread_mutex_lock(&source->lock);
    place->next = source->free;
    source->free = place;
    pthread_mutex_unlock(&source->lock);
}

static void *source_begin(struct access_source *access, uint64_t block, uint32_t warp)
{
    struct trace_source *source = (struct trace_source *)access;
    struct err err = {0};
    if (source->failed)
        return NULL;
    struct place *place = take_place(source);
    int rc = trace_warp_init(&place->warp, source->reader, block, warp, &err);
    if (rc)
        source_fail(source, &err);
    if (!rc && place->warp.left)
        return place;
    give_back(source, place);
    return NULL;
}

static bool source_next(struct access_source *access, void *opaque, struct warp_access *out_access)
{
    struct trace_source *source = (struct trace_source *)access;
    struct place *place = opaque;
    struct err err = {0};
    uint64_t pc;
    if (!place || source->failed)
        return false;
    int rc = trace_warp_next(&place->warp, source->reader, out_access, &pc, &err);
    if (rc == 1)
        return true;
    if (rc)
        source_fail(source, &err);
    give_back(source, place);
    return false;
}

static uint64_t source_skip(struct access_source *access, uint64_t block)
{
    struct trace_source *source = (struct trace_source *)access;
    struct err err = {0};
    uint64_t found = trace_head_blocks(trace_source_head(source));
    if (!source->failed && trace_reader_next_block(source->reader, block, &found, &err))
        source_fail(source, &err);
    return found;
}

static int source_failure(const struct access_source *access, struct err *err)
{
    const struct trace_source *source = (const struct trace_source *)access;
    if (!source->failed)
        return 0;
    if (err)
        *err = source->err;
    return source->err.code;
}

/* The totals that do not change what is predicted are compared by `trace check` only. */
static int source_finish(const struct access_source *access, uint64_t accesses, uint64_t loads,
                         struct err *err)
{
    const struct trace_source *source = (const struct trace_source *)access;
    struct trace_totals counted = *trace_source_totals(source);
    counted.accesses = accesses;
    counted.loads = loads;
    return trace_reader_compare(source->reader, &counted, err);
}

int trace_source_open(const char *path, struct trace_source **out_source, struct err *err)
{
    struct trace_source *source = mem_array(1, sizeof *source);
    pthread_mutex_init(&source->lock, NULL);
    int rc = trace_reader_open(path, &source->reader, err);
    if (rc) {
        trace_source_close(source);
        return rc;
    }
    const struct trace_head *head = trace_source_head(source);
    source->access = (struct access_source){source_begin, source_next, source_skip, source_failure,
                                            source_finish};
    source->kernel = (struct kernel){.name = head->name,
                                     .block_x = head->block[0],
                                     .block_y = head->block[1] * head->block[2],
                                     .shared_bytes = (uint32_t)head->shared_bytes};
    *out_source = source;
    return 0;
}

void trace_source_close(struct trace_source *source)
{
    if (!source)
        return;
    for (struct place *place = source->all, *after; place; place = after) {
        after = place->all;
        free(place);
    }
    trace_reader_close(source->reader);
    pthread_mutex_destroy(&source->lock);
    free(source);
}

void trace_source_launch(struct trace_source *source, struct kernel_launch *out_launch)
{
    const struct trace_head *head = trace_source_head(source);
    const struct trace_totals *totals = trace_source_totals(source);
    *out_launch = (struct kernel_launch){.kernel = &source->kernel,
                                         .block_x = source->kernel.block_x,
                                         .block_y = source->kernel.block_y,
                                         .warps_per_block = trace_head_warps(head),
                                         .blocks_x = head->grid[0],
                                         .blocks = trace_head_blocks(head),
                                         .busy_blocks = totals->blocks,
                                         .registers = head->registers,
                                         .element_bytes_max = totals->bytes_max,
                                         .source = &source->access};
}
