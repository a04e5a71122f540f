/* Prints and checks traces. */
#include "predict/trace/trace_info.h"

#include "predict/trace/access_code.h"

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

int trace_info_check(struct trace_reader *reader, struct err *err)
{
    uint64_t blocks = trace_head_blocks(trace_reader_head(reader)), block = 0;
    uint32_t warps = trace_head_warps(trace_reader_head(reader));
    struct trace_totals counted = {.lowest = UINT64_MAX};
    int rc = trace_reader_next_block(reader, 0, &block, err);
    while (!rc && block < blocks) {
        uint64_t before = counted.accesses;
        for (uint32_t warp = 0; warp < warps && !rc; warp++)
            rc = count_warp(reader, block, warp, &counted, err);
        counted.blocks += counted.accesses > before;
        rc = rc ? rc : trace_reader_next_block(reader, block + 1, &block, err);
    }
    return rc ? rc : trace_reader_compare(reader, &counted, err);
}
