/* Prints and checks traces. */
#include "predict/trace/trace_info.h"

#include <errno.h>
#include <string.h>

#include "predict/trace/lanes.h"

static void put_shape(struct strbuf *out, const char *key, const uint32_t shape[3])
{
    strbuf_printf(out, "%s: [%u, %u, %u]\n", key, shape[0], shape[1], shape[2]);
}

static void put_count(struct strbuf *out, const char *key, uint64_t value)
{
    strbuf_printf(out, "%s: %llu\n", key, (unsigned long long)value);
}

static void put_quoted(struct strbuf *out, const char *key, const char *text)
{
    strbuf_printf(out, "%s: \"", key);
    for (; *text; text++)
        strbuf_printf(out, "%s%c", *text == '"' || *text == '\\' ? "\\" : "", *text);
    strbuf_puts(out, "\"\n");
}

void trace_info_print(const struct trace_reader *reader, const char *path, struct strbuf *out_text)
{
    const struct trace_head *head = trace_reader_head(reader);
    const struct trace_totals *totals = trace_reader_totals(reader);
    uint64_t bytes = (uint64_t)totals->pages * head->page_bytes;
    put_quoted(out_text, "file", str_last_part(path));
    put_quoted(out_text, "name", head->name);
    put_quoted(out_text, "from", head->maker);
    put_shape(out_text, "grid", head->grid);
    put_shape(out_text, "block", head->block);
    put_count(out_text, "warps_per_block", trace_head_warps(head));
    put_count(out_text, "shared_bytes", head->shared_bytes);
    if (head->registers)
        put_count(out_text, "registers", head->registers);
    else
        strbuf_puts(out_text, "registers: null\n");
    strbuf_printf(out_text, "pc: %s\n", head->has_pc ? "address" : "opcode");
    put_count(out_text, "accesses", totals->accesses);
    put_count(out_text, "loads", totals->loads);
    put_count(out_text, "stores", totals->accesses - totals->loads);
    put_count(out_text, "blocks_with_accesses", totals->blocks);
    strbuf_printf(out_text, "lanes_per_access: %.4g\n",
                  (double)totals->lanes / (double)totals->accesses);
    strbuf_printf(out_text, "lowest_address: 0x%llx\nhighest_address: 0x%llx\n",
                  (unsigned long long)totals->lowest, (unsigned long long)totals->highest);
    put_count(out_text, "largest_element_bytes", totals->bytes_max);
    put_count(out_text, "file_bytes", bytes);
    strbuf_printf(out_text, "bytes_per_access: %.4g\n", (double)bytes / (double)totals->accesses);
    strbuf_printf(out_text, "format: {version: %d, page_bytes: %u}\n", TRACE_VERSION,
                  head->page_bytes);
}

static int count_warp(struct trace_reader *reader, uint64_t block, uint32_t number,
                      struct trace_totals *totals, struct err *err)
{
    struct trace_warp warp;
    struct warp_access access;
    uint64_t pc;
    int rc = trace_warp_init(&warp, reader, block, number, err);
    while (!rc && (rc = trace_warp_next(&warp, reader, &access, &pc, err)) == 1) {
        trace_lanes_count(&access, totals);
        rc = 0;
    }
    trace_warp_fini(&warp, reader);
    return rc;
}

int trace_info_check(struct trace_reader *reader, const char *path, struct err *err)
{
    const struct trace_head *head = trace_reader_head(reader);
    const struct trace_totals *told = trace_reader_totals(reader);
    struct trace_totals counted = {.lowest = UINT64_MAX, .root = told->root, .pages = told->pages};
    for (uint64_t block = 0; block < trace_head_blocks(head); block++) {
        uint64_t before = counted.accesses;
        for (uint32_t warp = 0; warp < trace_head_warps(head); warp++) {
            int rc = count_warp(reader, block, warp, &counted, err);
            if (rc)
                return rc;
        }
        counted.blocks += counted.accesses > before;
    }
    if (memcmp(&counted, told, sizeof counted) == 0)
        return 0;
    return err_set_at(err, -EINVAL, path, 0, 0,
                      "byte %llu: expected %llu accesses, %llu of them loads, in %llu blocks; the "
                      "pages before have %llu, %llu and %llu, or other addresses",
                      (unsigned long long)(told->pages - 1) * head->page_bytes,
                      (unsigned long long)told->accesses, (unsigned long long)told->loads,
                      (unsigned long long)told->blocks, (unsigned long long)counted.accesses,
                      (unsigned long long)counted.loads, (unsigned long long)counted.blocks);
}
