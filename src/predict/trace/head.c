/* Reads, writes and checks the first and the last page of a trace. */
#include "predict/trace/head.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "predict/trace/page.h"
#include "predict/warp.h"
#include "schema/wire.h"

uint64_t trace_head_blocks(const struct trace_head *head)
{
    return (uint64_t)head->grid[0] * head->grid[1] * head->grid[2];
}

uint32_t trace_head_warps(const struct trace_head *head)
{
    return (head->block[0] * head->block[1] * head->block[2] + WARP_LANES - 1) / WARP_LANES;
}

static uint64_t divide_up(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

uint32_t trace_head_leaf_blocks(const struct trace_head *head)
{
    return (head->page_bytes - TRACE_PAGE_HEADER) / 8;
}

uint32_t trace_head_root_leaves(const struct trace_head *head)
{
    return (head->page_bytes - TRACE_PAGE_HEADER) / 4;
}

uint64_t trace_head_leaves(const struct trace_head *head)
{
    return divide_up(trace_head_blocks(head), trace_head_leaf_blocks(head));
}

uint64_t trace_head_roots(const struct trace_head *head)
{
    return divide_up(trace_head_leaves(head), trace_head_root_leaves(head));
}

static bool is_printable(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            return false;
    return true;
}

/* The product of three extents, or 0 if one is 0 or it is above `max`. */
static uint64_t head_product(const uint32_t extents[3], uint64_t max)
{
    uint64_t all = 1;
    for (int i = 0; i < 3; i++) {
        if (!extents[i] || extents[i] > max / all)
            return 0;
        all *= extents[i];
    }
    return all;
}

int trace_head_check(const struct trace_head *head, struct err *err)
{
    uint32_t bytes = head->page_bytes;
    if (bytes < TRACE_PAGE_BYTES_MIN || bytes > TRACE_PAGE_BYTES_MAX || bytes & (bytes - 1))
        return err_set(err, -EINVAL, "expected pages of %d to %d bytes, a power of two, not %u",
                       TRACE_PAGE_BYTES_MIN, TRACE_PAGE_BYTES_MAX, bytes);
    if (!head_product(head->grid, TRACE_BLOCKS_MAX))
        return err_set(err, -EINVAL, "expected a grid of 1 to %u blocks, not %u,%u,%u",
                       TRACE_BLOCKS_MAX, head->grid[0], head->grid[1], head->grid[2]);
    if (!head_product(head->block, TRACE_THREADS_MAX))
        return err_set(err, -EINVAL, "expected a block of 1 to %d threads, not %u,%u,%u",
                       TRACE_THREADS_MAX, head->block[0], head->block[1], head->block[2]);
    if (head->shared_bytes > 1 << 30 || head->registers > 1024)
        return err_set(err, -EINVAL,
                       "expected at most 1 GiB of shared memory and 1024 registers, not %llu, %u",
                       (unsigned long long)head->shared_bytes, head->registers);
    if (!head->name[0] || !is_printable(head->name) || !is_printable(head->maker))
        return err_set(err, -EINVAL, "expected a printable name");
    return 0;
}

static uint32_t head_take(struct strbuf *buffer, uint8_t *out_bytes)
{
    uint32_t length = (uint32_t)buffer->length;
    memcpy(out_bytes, buffer->data, length);
    strbuf_fini(buffer);
    return length;
}

uint32_t trace_head_put(const struct trace_head *head, uint8_t *out_bytes)
{
    struct strbuf buffer = {0};
    wire_put_u32(&buffer, TRACE_VERSION);
    wire_put_u32(&buffer, head->page_bytes);
    for (int i = 0; i < 3; i++)
        wire_put_u32(&buffer, head->grid[i]);
    for (int i = 0; i < 3; i++)
        wire_put_u32(&buffer, head->block[i]);
    wire_put_u64(&buffer, head->shared_bytes);
    wire_put_u32(&buffer, head->registers);
    wire_put_u32(&buffer, head->has_pc);
    wire_put_text(&buffer, head->name);
    wire_put_text(&buffer, head->maker);
    return head_take(&buffer, out_bytes);
}

/* 0 if all was read and nothing was missing. */
static int head_end(const struct wire_reader *reader, const char *what, struct err *err)
{
    if (reader->bad || reader->position != reader->length)
        return err_set(err, -EINVAL, "expected the fields of the %s of a trace", what);
    return 0;
}

static void get_text(struct wire_reader *reader, char *out_text, size_t size)
{
    char *text = wire_get_text(reader);
    if (!text || strlen(text) >= size)
        reader->bad = true;
    else
        memcpy(out_text, text, strlen(text) + 1);
    free(text);
}

int trace_head_get(const uint8_t *payload, uint32_t length, struct trace_head *out_head,
                   struct err *err)
{
    struct wire_reader reader = {.data = payload, .length = length};
    struct trace_head head = {0};
    wire_get_u32(&reader); /* the version: trace_head_page_bytes */
    head.page_bytes = wire_get_u32(&reader);
    for (int i = 0; i < 3; i++)
        head.grid[i] = wire_get_u32(&reader);
    for (int i = 0; i < 3; i++)
        head.block[i] = wire_get_u32(&reader);
    head.shared_bytes = wire_get_u64(&reader);
    head.registers = wire_get_u32(&reader);
    head.has_pc = wire_get_u32(&reader) & 1;
    get_text(&reader, head.name, sizeof head.name);
    get_text(&reader, head.maker, sizeof head.maker);
    int rc = head_end(&reader, "head", err);
    rc = rc ? rc : trace_head_check(&head, err);
    if (!rc)
        *out_head = head;
    return rc;
}

int trace_head_page_bytes(const uint8_t *beginning, uint32_t *out_bytes, struct err *err)
{
    uint32_t version = trace_page_u32(beginning + TRACE_PAGE_HEADER);
    uint32_t bytes = trace_page_u32(beginning + TRACE_PAGE_HEADER + 4);
    if (trace_page_u32(beginning) != TRACE_PAGE_MAGIC)
        return err_set(err, -EINVAL, "byte 0: expected a trace (\"GMTP\")");
    if (version != TRACE_VERSION)
        return err_set(err, -EINVAL, "byte %d: expected version %d of the format, not %u",
                       TRACE_PAGE_HEADER, TRACE_VERSION, version);
    if (bytes < TRACE_PAGE_BYTES_MIN || bytes > TRACE_PAGE_BYTES_MAX || bytes & (bytes - 1))
        return err_set(err, -EINVAL,
                       "byte %d: expected pages of %d to %d bytes, a power of two, not %u",
                       TRACE_PAGE_HEADER + 4, TRACE_PAGE_BYTES_MIN, TRACE_PAGE_BYTES_MAX, bytes);
    *out_bytes = bytes;
    return 0;
}

uint32_t trace_head_put_totals(const struct trace_totals *totals, uint8_t *out_bytes)
{
    struct strbuf buffer = {0};
    const uint64_t counts[] = {totals->accesses, totals->loads,  totals->lanes,
                               totals->blocks,   totals->lowest, totals->highest};
    for (size_t i = 0; i < COUNT_OF(counts); i++)
        wire_put_u64(&buffer, counts[i]);
    wire_put_u32(&buffer, totals->bytes_max);
    wire_put_u32(&buffer, totals->root);
    wire_put_u32(&buffer, totals->pages);
    return head_take(&buffer, out_bytes);
}

int trace_head_get_totals(const uint8_t *payload, uint32_t length, struct trace_totals *out_totals,
                          struct err *err)
{
    struct wire_reader reader = {.data = payload, .length = length};
    struct trace_totals totals = {0};
    uint64_t *const counts[] = {&totals.accesses, &totals.loads,  &totals.lanes,
                                &totals.blocks,   &totals.lowest, &totals.highest};
    for (size_t i = 0; i < COUNT_OF(counts); i++)
        *counts[i] = wire_get_u64(&reader);
    totals.bytes_max = wire_get_u32(&reader);
    totals.root = wire_get_u32(&reader);
    totals.pages = wire_get_u32(&reader);
    int rc = head_end(&reader, "totals", err);
    if (!rc)
        *out_totals = totals;
    return rc;
}
