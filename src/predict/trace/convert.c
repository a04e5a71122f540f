/* Writes sorted accesses as a trace. */
#include "predict/trace/convert.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "predict/trace/page.h"
#include "predict/trace/trace_write.h"

struct writing {
    struct trace_writer *writer;
    bool ranked, begun;
    uint32_t block, warp, rank, warps;
};

static int write_access(void *context, uint32_t block, uint32_t warp,
                        const struct warp_access *access, uint64_t pc, struct err *err)
{
    struct writing *w = context;
    if (!w->begun || block != w->block)
        w->rank = 0;
    else
        w->rank += warp != w->warp;
    w->begun = true;
    w->block = block;
    w->warp = warp;
    if (w->ranked && w->rank >= w->warps)
        return err_set(err, -EINVAL, "block %u: expected at most %u warps, as its size says", block,
                       w->warps);
    return trace_writer_add(w->writer, block, w->ranked ? w->rank : warp, access, pc, err);
}

static int nothing_to_write(const struct convert_request *request,
                            const struct convert_result *result, struct err *err)
{
    char text[160] = "";
    for (int i = 0; i < OPCODE_SPACES; i++) {
        size_t length = strlen(text);
        if (result->skipped[i])
            snprintf(text + length, sizeof text - length, "%s%llu (%s)", length ? ", " : "",
                     (unsigned long long)result->skipped[i],
                     opcode_space_name((enum opcode_space)i));
    }
    size_t length = strlen(text);
    if (result->other_launches)
        snprintf(text + length, sizeof text - length, "%s%llu (other launches)", length ? ", " : "",
                 (unsigned long long)result->other_launches);
    return err_set_at(err, -EINVAL, request->in, 0, 0,
                      "expected at least one load or store of global memory; left out: %s",
                      text[0] ? text : "nothing");
}

int convert_write(const struct convert_request *request, struct trace_sorter *sorter, bool ranked,
                  struct convert_result *result, struct err *err)
{
    struct writing w = {.ranked = ranked, .warps = trace_head_warps(&result->head)};
    result->head.page_bytes = request->page_bytes ? request->page_bytes : TRACE_PAGE_BYTES;
    if (trace_sorter_is_empty(sorter))
        return nothing_to_write(request, result, err);
    int rc = trace_writer_create(request->out, &result->head, &w.writer, err);
    rc = rc ? rc : trace_sorter_drain(sorter, write_access, &w, err);
    rc = rc ? rc : trace_writer_finish(w.writer, &result->totals, err);
    trace_writer_destroy(w.writer);
    return rc;
}
