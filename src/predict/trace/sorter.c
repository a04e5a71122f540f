/* Sorts as much as fits memory, writes it to a file as a run, and merges the runs at the end. */
#include "predict/trace/sorter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "predict/trace/access_code.h"
#include "predict/trace/spill.h"

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

int trace_sorter_create(const char *beside, size_t bytes, struct trace_sorter **out_sorter,
                        struct err *err)
{
    struct trace_sorter *sorter = mem_array(1, sizeof *sorter);
    if (!sorter)
        return err_no_memory(err);
    sorter->capacity = bytes ? bytes : TRACE_SORTER_BYTES;
    sorter->bytes = mem_array(1, sorter->capacity);
    sorter->beside = str_copy(beside);
    if (!sorter->bytes || !sorter->beside) {
        trace_sorter_destroy(sorter);
        return err_no_memory(err);
    }
    *out_sorter = sorter;
    return 0;
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
        qsort(sorter->items, sorter->item_count, sizeof *sorter->items, compare_items);
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
    if (!items)
        return err_no_memory(err);
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
