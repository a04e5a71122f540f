/* Writes the pages of a trace one after the other; in memory are one page of data, one leaf and
 * the numbers of the leaves. */
#include "predict/trace/trace_write.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/new_file.h"
#include "predict/trace/access_code.h"
#include "predict/trace/page.h"
#include "predict/trace/varint.h"

enum { WARPS_MAX = TRACE_THREADS_MAX / WARP_LANES, ENTRY_BYTES_MAX = 2 * TRACE_VARINT_MAX };

/* Where a warp's accesses begin, and how many there are. */
struct stream {
    uint64_t position, count;
};

struct trace_writer {
    struct trace_head head;
    struct trace_totals totals;
    struct new_file file;
    uint8_t *data, *leaf; /* pages that are not full yet */
    uint32_t used;        /* of data */
    uint32_t *leaves;     /* page number of each leaf; 0: none of its blocks has accesses */
    size_t leaf_capacity;
    uint64_t leaf_number; /* the one in `leaf` */
    bool leaf_filled, begun;
    uint64_t block;
    uint32_t warp, warps;
    struct stream streams[WARPS_MAX];
    struct trace_code code;
};

static int append_page(struct trace_writer *w, uint8_t *bytes, enum trace_page_kind kind,
                       uint32_t used, struct err *err)
{
    if (w->totals.pages == UINT32_MAX)
        return err_set_at(err, -EFBIG, w->file.path, 0, 0, "a trace has at most %u pages",
                          UINT32_MAX);
    trace_page_seal(bytes, w->head.page_bytes, (struct trace_page){kind, w->totals.pages++, used});
    return new_file_append(&w->file, (const char *)bytes, w->head.page_bytes, err);
}

static int end_data_page(struct trace_writer *w, struct err *err)
{
    int rc =
        w->used > TRACE_PAGE_HEADER ? append_page(w, w->data, TRACE_PAGE_DATA, w->used, err) : 0;
    w->used = TRACE_PAGE_HEADER;
    return rc;
}

/* Appends to the data; what does not fit the page begins the next one. */
static int append(struct trace_writer *w, const uint8_t *bytes, size_t length,
                  uint64_t *out_position, struct err *err)
{
    int rc = w->used + length > w->head.page_bytes ? end_data_page(w, err) : 0;
    if (rc)
        return rc;
    *out_position = (uint64_t)w->totals.pages * w->head.page_bytes + w->used;
    memcpy(w->data + w->used, bytes, length);
    w->used += (uint32_t)length;
    return 0;
}

int trace_writer_create(const char *path, const struct trace_head *head,
                        struct trace_writer **out_writer, struct err *err)
{
    int rc = trace_head_check(head, err);
    if (rc)
        return rc;
    struct trace_writer *w = mem_array(1, sizeof *w);
    w->head = *head;
    w->warps = trace_head_warps(head);
    w->totals.lowest = UINT64_MAX;
    w->data = mem_array(1, head->page_bytes);
    w->leaf = mem_array(1, head->page_bytes);
    rc = new_file_create(path, &w->file, err);
    if (!rc) {
        uint32_t used = trace_head_put(head, w->data + TRACE_PAGE_HEADER);
        rc = append_page(w, w->data, TRACE_PAGE_HEAD, TRACE_PAGE_HEADER + used, err);
    }
    w->used = TRACE_PAGE_HEADER;
    if (rc)
        trace_writer_destroy(w);
    else
        *out_writer = w;
    return rc;
}

/* Writes the leaf; data of the blocks that follow begins in a new page. */
static int end_leaf(struct trace_writer *w, struct err *err)
{
    if (!w->leaf_filled)
        return 0;
    size_t needed = (size_t)w->leaf_number + 1;
    w->leaves = mem_grow(w->leaves, &w->leaf_capacity, needed, sizeof *w->leaves);
    int rc = end_data_page(w, err);
    w->leaves[w->leaf_number] = w->totals.pages;
    rc = rc ? rc : append_page(w, w->leaf, TRACE_PAGE_LEAF, w->head.page_bytes, err);
    memset(w->leaf, 0, w->head.page_bytes);
    w->leaf_filled = false;
    return rc;
}

/* Writes the directory of the block that ends, and its position into the leaf. */
static int end_block(struct trace_writer *w, struct err *err)
{
    uint64_t begin = 0, last = 0;
    if (!w->begun)
        return 0;
    for (uint32_t i = 0; i < w->warps; i++) {
        uint8_t entry[ENTRY_BYTES_MAX];
        uint64_t position;
        size_t length = trace_varint_put(entry, w->streams[i].count);
        if (w->streams[i].count) {
            length += trace_varint_put(entry + length, w->streams[i].position - last);
            last = w->streams[i].position;
        }
        int rc = append(w, entry, length, &position, err);
        if (rc)
            return rc;
        begin = i ? begin : position;
    }
    uint32_t per_leaf = trace_head_leaf_blocks(&w->head);
    trace_page_put_u64(w->leaf + TRACE_PAGE_HEADER + w->block % per_leaf * 8, begin);
    w->leaf_filled = true;
    w->begun = false;
    w->totals.blocks++;
    return 0;
}

static int begin_block(struct trace_writer *w, uint64_t block, struct err *err)
{
    uint64_t leaf = block / trace_head_leaf_blocks(&w->head);
    int rc = end_block(w, err);
    if (!rc && leaf != w->leaf_number)
        rc = end_leaf(w, err);
    w->leaf_number = leaf;
    w->block = block;
    w->warp = 0;
    w->begun = true;
    memset(w->streams, 0, sizeof w->streams);
    return rc;
}

static int writer_check_order(const struct trace_writer *w, uint64_t block, uint32_t warp,
                              struct err *err)
{
    bool back = w->totals.accesses && (block < w->block || (block == w->block && warp < w->warp));
    if (block >= trace_head_blocks(&w->head) || warp >= w->warps || back)
        return err_set(err, -EINVAL,
                       "block %llu, warp %u: expected block and warp in ascending order, of %llu "
                       "blocks with %u warps",
                       (unsigned long long)block, warp,
                       (unsigned long long)trace_head_blocks(&w->head), w->warps);
    return 0;
}

int trace_writer_add(struct trace_writer *w, uint64_t block, uint32_t warp,
                     const struct warp_access *access, uint64_t pc, struct err *err)
{
    uint8_t bytes[TRACE_ACCESS_BYTES_MAX];
    int rc = writer_check_order(w, block, warp, err);
    if (!rc && (!w->totals.accesses || block != w->block))
        rc = begin_block(w, block, err);
    if (rc)
        return rc;
    struct stream *stream = &w->streams[warp];
    if (!stream->count)
        memset(&w->code, 0, sizeof w->code);
    size_t length = trace_code_put(&w->code, access, pc, bytes);
    if (!length)
        return err_set(err, -EINVAL,
                       "block %llu, warp %u: expected lanes with addresses below 2^56 that are "
                       "multiples of the element's size, a power of two up to %d",
                       (unsigned long long)block, warp, TRACE_ELEMENT_MAX);
    uint64_t position;
    rc = append(w, bytes, length, &position, err);
    if (rc)
        return rc;
    stream->position = stream->count++ ? stream->position : position;
    w->warp = warp;
    trace_lanes_count(access, &w->totals);
    return 0;
}

static int write_roots(struct trace_writer *w, struct err *err)
{
    uint64_t leaves = trace_head_leaves(&w->head), done = 0;
    uint32_t per_root = trace_head_root_leaves(&w->head);
    w->totals.root = w->totals.pages;
    while (done < leaves) {
        uint32_t used = TRACE_PAGE_HEADER;
        for (uint32_t i = 0; i < per_root && done < leaves; i++, done++, used += 4)
            trace_page_put_u32(w->data + used, done < w->leaf_capacity ? w->leaves[done] : 0);
        int rc = append_page(w, w->data, TRACE_PAGE_ROOT, used, err);
        if (rc)
            return rc;
    }
    return 0;
}

int trace_writer_finish(struct trace_writer *w, struct trace_totals *out_totals, struct err *err)
{
    if (!w->totals.accesses)
        return err_set_at(err, -EINVAL, w->file.path, 0, 0, "there is no access to write");
    int rc = end_block(w, err);
    rc = rc ? rc : end_leaf(w, err);
    rc = rc ? rc : write_roots(w, err);
    if (rc)
        return rc;
    struct trace_totals totals = w->totals;
    totals.pages++;
    uint32_t used = trace_head_put_totals(&totals, w->data + TRACE_PAGE_HEADER);
    rc = append_page(w, w->data, TRACE_PAGE_TOTALS, TRACE_PAGE_HEADER + used, err);
    rc = rc ? rc : new_file_finish(&w->file, err);
    if (!rc && out_totals)
        *out_totals = totals;
    return rc;
}

void trace_writer_destroy(struct trace_writer *w)
{
    if (!w)
        return;
    new_file_fini(&w->file);
    free(w->data);
    free(w->leaf);
    free(w->leaves);
    free(w);
}
