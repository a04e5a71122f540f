/* Finds the accesses of a warp through the index of a trace, and reads them page by page. */
#include "predict/trace/trace_read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "predict/trace/page.h"
#include "predict/trace/varint.h"

struct trace_reader {
    int fd;
    char *path;
    struct trace_head head;
    struct trace_totals totals;
    struct trace_cache *cache;
};

const struct trace_head *trace_reader_head(const struct trace_reader *reader)
{
    return &reader->head;
}

const struct trace_totals *trace_reader_totals(const struct trace_reader *reader)
{
    return &reader->totals;
}

/* Adds file and byte to an error of a page's content. */
static int reader_add_place(const struct trace_reader *reader, uint64_t at, int rc, struct err *err)
{
    if (rc == -EINVAL && err && !err->file[0]) {
        char text[ERR_TEXT_MAX];
        memcpy(text, err->text, sizeof text);
        err_set_at(err, rc, reader->path, 0, 0, "byte %llu: %s", (unsigned long long)at, text);
    }
    return rc;
}

static int reader_open_file(struct trace_reader *reader, uint64_t *out_size, struct err *err)
{
    struct stat status;
    reader->fd = open(reader->path, O_RDONLY | O_CLOEXEC);
    if (reader->fd < 0 || fstat(reader->fd, &status))
        return err_set_at(err, -errno, reader->path, 0, 0, "cannot open: %s", strerror(errno));
    if (!S_ISREG(status.st_mode))
        return err_set_at(err, -EINVAL, reader->path, 0, 0,
                          "expected a file: a trace is not read in the order in which it is "
                          "stored");
    *out_size = (uint64_t)status.st_size;
    return 0;
}

static int read_beginning(struct trace_reader *reader, uint64_t size, struct err *err)
{
    uint8_t beginning[TRACE_PAGE_BYTES_MIN] = {0};
    uint32_t page_bytes;
    if (pread(reader->fd, beginning, sizeof beginning, 0) < 0)
        return err_set_at(err, -EIO, reader->path, 0, 0, "cannot read: %s", strerror(errno));
    int rc = trace_head_page_bytes(beginning, &page_bytes, err);
    if (rc) {
        char text[ERR_TEXT_MAX];
        memcpy(text, err ? err->text : "", err ? sizeof text : 1);
        return err_set_at(err, rc, reader->path, 0, 0, "%s", text);
    }
    if (size % page_bytes)
        return err_set_at(err, -EINVAL, reader->path, 0, 0,
                          "byte %llu: expected %u bytes of a page, the file ends after %llu",
                          (unsigned long long)(size - size % page_bytes), page_bytes,
                          (unsigned long long)(size % page_bytes));
    reader->cache = trace_cache_create(reader->fd, reader->path, page_bytes);
    return 0;
}

static int reader_read_head(struct trace_reader *reader, struct err *err)
{
    const uint8_t *bytes;
    uint32_t used;
    int rc = trace_cache_hold(reader->cache, 0, TRACE_PAGE_HEAD, &bytes, &used, err);
    if (rc)
        return rc;
    rc = trace_head_get(bytes + TRACE_PAGE_HEADER, used - TRACE_PAGE_HEADER, &reader->head, err);
    trace_cache_release(reader->cache, 0);
    return reader_add_place(reader, TRACE_PAGE_HEADER, rc, err);
}

static int check_totals(const struct trace_reader *reader, uint64_t pages, struct err *err)
{
    const struct trace_totals *totals = &reader->totals;
    uint64_t roots = trace_head_roots(&reader->head);
    if (totals->pages != pages)
        return err_set(err, -EINVAL, "expected a file of %u pages, it has %llu", totals->pages,
                       (unsigned long long)pages);
    if (totals->root < 3 || totals->root + roots + 1 != pages)
        return err_set(err, -EINVAL,
                       "expected an index of %llu pages that begins at page %llu, not at page %u",
                       (unsigned long long)roots,
                       (unsigned long long)(pages > roots ? pages - roots - 1 : 0), totals->root);
    if (!totals->accesses || totals->loads > totals->accesses ||
        totals->highest >= TRACE_ADDRESS_END || totals->lowest > totals->highest ||
        !totals->bytes_max || totals->bytes_max > TRACE_ELEMENT_MAX)
        return err_set(err, -EINVAL, "expected totals of loads and stores");
    return 0;
}

static int read_totals(struct trace_reader *reader, uint64_t size, struct err *err)
{
    const uint8_t *bytes;
    uint32_t used;
    uint64_t pages = size / reader->head.page_bytes;
    if (pages > UINT32_MAX)
        return err_set_at(err, -EINVAL, reader->path, 0, 0, "expected at most %u pages",
                          UINT32_MAX);
    uint32_t last = (uint32_t)pages - 1;
    int rc = trace_cache_hold(reader->cache, last, TRACE_PAGE_TOTALS, &bytes, &used, err);
    if (rc) {
        err_prefix(err, "the file is cut off or damaged");
        return rc;
    }
    rc = trace_head_get_totals(bytes + TRACE_PAGE_HEADER, used - TRACE_PAGE_HEADER, &reader->totals,
                               err);
    rc = rc ? rc : check_totals(reader, pages, err);
    trace_cache_release(reader->cache, last);
    return reader_add_place(reader, (uint64_t)last * reader->head.page_bytes + TRACE_PAGE_HEADER,
                            rc, err);
}

int trace_reader_open(const char *path, struct trace_reader **out_reader, struct err *err)
{
    struct trace_reader *reader = mem_array(1, sizeof *reader);
    uint64_t size = 0;
    reader->fd = -1;
    reader->path = str_copy(path);
    int rc = reader_open_file(reader, &size, err);
    rc = rc ? rc : read_beginning(reader, size, err);
    rc = rc ? rc : reader_read_head(reader, err);
    rc = rc ? rc : read_totals(reader, size, err);
    if (rc)
        trace_reader_close(reader);
    else
        *out_reader = reader;
    return rc;
}

void trace_reader_close(struct trace_reader *reader)
{
    if (!reader)
        return;
    trace_cache_destroy(reader->cache);
    if (reader->fd >= 0)
        close(reader->fd);
    free(reader->path);
    free(reader);
}

/* The entry of a page of the index; its page number in *out_entry. */
static int reader_read_entry(struct trace_reader *reader, uint64_t page, enum trace_page_kind kind,
                             uint32_t offset, uint64_t *out_entry, struct err *err)
{
    const uint8_t *bytes;
    uint32_t used, width = kind == TRACE_PAGE_ROOT ? 4 : 8;
    int rc = trace_cache_hold(reader->cache, (uint32_t)page, kind, &bytes, &used, err);
    if (rc)
        return rc;
    uint32_t at = TRACE_PAGE_HEADER + offset * width;
    if (at + width > used)
        rc = err_set_at(err, -EINVAL, reader->path, 0, 0, "byte %llu: expected %u used bytes",
                        (unsigned long long)page * reader->head.page_bytes, at + width);
    else
        *out_entry =
            kind == TRACE_PAGE_ROOT ? trace_page_u32(bytes + at) : trace_page_u64(bytes + at);
    trace_cache_release(reader->cache, (uint32_t)page);
    return rc;
}

/* Where the directory of a block is; 0: the block has no accesses. */
static int find_block(struct trace_reader *reader, uint64_t block, uint64_t *out_position,
                      struct err *err)
{
    uint32_t per_leaf = trace_head_leaf_blocks(&reader->head);
    uint32_t per_root = trace_head_root_leaves(&reader->head);
    uint64_t leaf = block / per_leaf, root = reader->totals.root + leaf / per_root, page;
    int rc =
        reader_read_entry(reader, root, TRACE_PAGE_ROOT, (uint32_t)(leaf % per_root), &page, err);
    if (rc)
        return rc;
    *out_position = 0;
    return page ? reader_read_entry(reader, page, TRACE_PAGE_LEAF, (uint32_t)(block % per_leaf),
                                    out_position, err)
                : 0;
}

/* The first block of a leaf from `block` on that has accesses; the leaf's end if none has. */
static int search_leaf(struct trace_reader *reader, uint64_t page, uint64_t *block, struct err *err)
{
    uint32_t per_leaf = trace_head_leaf_blocks(&reader->head), used;
    uint32_t at = (uint32_t)(*block % per_leaf);
    const uint8_t *bytes;
    int rc = trace_cache_hold(reader->cache, (uint32_t)page, TRACE_PAGE_LEAF, &bytes, &used, err);
    if (rc)
        return rc;
    uint32_t entries = (used - TRACE_PAGE_HEADER) / 8;
    for (uint64_t position = 0; at < entries && !position; at += !position)
        position = trace_page_u64(bytes + TRACE_PAGE_HEADER + at * 8);
    trace_cache_release(reader->cache, (uint32_t)page);
    /* Entries that a short leaf does not have are an error of the block that needs them. */
    *block += at - *block % per_leaf;
    return 0;
}

int trace_reader_next_block(struct trace_reader *reader, uint64_t block, uint64_t *out_block,
                            struct err *err)
{
    uint64_t blocks = trace_head_blocks(&reader->head);
    uint32_t per_leaf = trace_head_leaf_blocks(&reader->head);
    uint32_t per_root = trace_head_root_leaves(&reader->head);
    while (block < blocks) {
        uint64_t leaf = block / per_leaf, end = (leaf + 1) * per_leaf, page;
        int rc = reader_read_entry(reader, reader->totals.root + leaf / per_root, TRACE_PAGE_ROOT,
                                   (uint32_t)(leaf % per_root), &page, err);
        rc = rc || !page ? rc : search_leaf(reader, page, &block, err);
        if (rc)
            return rc;
        if (page && block < end)
            break;
        block = end;
    }
    *out_block = block < blocks ? block : blocks;
    return 0;
}

int trace_reader_compare(const struct trace_reader *reader, const struct trace_totals *counted,
                         struct err *err)
{
    const struct trace_totals *told = &reader->totals;
    const struct {
        const char *name;
        uint64_t told, counted;
    } rows[] = {
        {"accesses", told->accesses, counted->accesses},
        {"loads", told->loads, counted->loads},
        {"active lanes", told->lanes, counted->lanes},
        {"blocks with accesses", told->blocks, counted->blocks},
        {"as the lowest address", told->lowest, counted->lowest},
        {"as the highest address", told->highest, counted->highest},
        {"bytes of the largest element", told->bytes_max, counted->bytes_max},
    };
    uint64_t page = (uint64_t)(told->pages - 1) * reader->head.page_bytes + TRACE_PAGE_HEADER;
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (rows[i].told != rows[i].counted)
            return err_set_at(err, -EINVAL, reader->path, 0, 0,
                              "byte %llu: expected totals of %llu %s, which the pages before have, "
                              "not %llu",
                              (unsigned long long)(page + i * 8),
                              (unsigned long long)rows[i].counted, rows[i].name,
                              (unsigned long long)rows[i].told);
    return 0;
}

/* Holds a page of data instead of the one that is held. */
static int go_to_page(struct trace_warp *warp, struct trace_reader *reader, uint64_t page,
                      struct err *err)
{
    trace_warp_fini(warp, reader);
    if (page >= reader->totals.root)
        return err_set_at(err, -EINVAL, reader->path, 0, 0,
                          "byte %llu: expected a page of data, the data ends before",
                          (unsigned long long)page * reader->head.page_bytes);
    int rc = trace_cache_hold(reader->cache, (uint32_t)page, TRACE_PAGE_DATA, &warp->bytes,
                              &warp->used, err);
    warp->page = (uint32_t)page;
    warp->at = TRACE_PAGE_HEADER;
    return rc;
}

static int go_to(struct trace_warp *warp, struct trace_reader *reader, uint64_t position,
                 struct err *err)
{
    uint32_t page_bytes = reader->head.page_bytes, at = (uint32_t)(position % page_bytes);
    int rc = go_to_page(warp, reader, position / page_bytes, err);
    if (!rc && (at < TRACE_PAGE_HEADER || at >= warp->used))
        rc = err_set_at(err, -EINVAL, reader->path, 0, 0,
                        "byte %llu: expected data, it is outside the %u used bytes of its page",
                        (unsigned long long)position, warp->used);
    warp->at = at;
    return rc;
}

/* A record does not cross pages: behind the last one of a page the next page goes on. */
static int go_on(struct trace_warp *warp, struct trace_reader *reader, struct err *err)
{
    if (warp->at < warp->used)
        return 0;
    int rc = go_to_page(warp, reader, (uint64_t)warp->page + 1, err);
    if (!rc && warp->used == TRACE_PAGE_HEADER)
        rc = err_set_at(err, -EINVAL, reader->path, 0, 0, "byte %llu: expected data in the page",
                        (unsigned long long)warp->page * reader->head.page_bytes);
    return rc;
}

static int get_number(struct trace_warp *warp, struct trace_reader *reader, uint64_t *out_number,
                      struct err *err)
{
    size_t length = trace_varint_get(warp->bytes + warp->at, warp->bytes + warp->used, out_number);
    warp->at += (uint32_t)length;
    if (length)
        return 0;
    return err_set_at(err, -EINVAL, reader->path, 0, 0,
                      "byte %llu: expected a number of at most 64 bits within the page",
                      (unsigned long long)warp->page * reader->head.page_bytes + warp->at);
}

/* The directory's entry of one warp: how many accesses, and where. */
static int find_stream(struct trace_warp *warp, struct trace_reader *reader, uint32_t number,
                       uint64_t *out_position, struct err *err)
{
    uint64_t position = 0, moved;
    for (uint32_t i = 0; i <= number; i++) {
        int rc = go_on(warp, reader, err);
        rc = rc ? rc : get_number(warp, reader, &warp->left, err);
        if (!rc && warp->left) {
            rc = get_number(warp, reader, &moved, err);
            position += moved;
        }
        if (rc)
            return rc;
    }
    *out_position = position;
    return 0;
}

int trace_warp_init(struct trace_warp *warp, struct trace_reader *reader, uint64_t block,
                    uint32_t number, struct err *err)
{
    uint64_t position;
    memset(warp, 0, sizeof *warp);
    int rc = find_block(reader, block, &position, err);
    if (rc || !position)
        return rc;
    rc = go_to(warp, reader, position, err);
    rc = rc ? rc : find_stream(warp, reader, number, &position, err);
    if (!rc && warp->left)
        rc = go_to(warp, reader, position, err);
    if (rc)
        warp->left = 0;
    if (!warp->left)
        trace_warp_fini(warp, reader);
    return rc;
}

int trace_warp_next(struct trace_warp *warp, struct trace_reader *reader,
                    struct warp_access *out_access, uint64_t *out_pc, struct err *err)
{
    const char *expected = NULL;
    if (!warp->left) {
        trace_warp_fini(warp, reader);
        return 0;
    }
    int rc = go_on(warp, reader, err);
    if (rc)
        return rc;
    size_t length = trace_code_get(&warp->code, warp->bytes + warp->at, warp->used - warp->at,
                                   out_access, out_pc, &expected);
    if (length && out_access->bytes > reader->totals.bytes_max)
        expected = "no element that is longer than the totals say";
    if (expected)
        return err_set_at(err, -EINVAL, reader->path, 0, 0, "byte %llu: expected %s",
                          (unsigned long long)warp->page * reader->head.page_bytes + warp->at,
                          expected);
    warp->at += (uint32_t)length;
    warp->left--;
    return 1;
}

void trace_warp_fini(struct trace_warp *warp, struct trace_reader *reader)
{
    if (warp->bytes)
        trace_cache_release(reader->cache, warp->page);
    warp->bytes = NULL;
}
