/* Writes a kernel of the table as a trace: the pc is the number of a reference. */
#include "predict/trace/trace_make.h"

#include <errno.h>
#include <stdio.h>

#include "predict/trace/page.h"
#include "predict/trace/trace_write.h"

int trace_make(const struct kernel_launch *launch, uint32_t page_bytes, const char *path,
               struct trace_totals *out_totals, struct err *err)
{
    struct trace_head head = {
        .maker = "kernel",
        .grid = {(uint32_t)launch->blocks_x, (uint32_t)(launch->blocks / launch->blocks_x), 1},
        .block = {launch->block_x, launch->block_y, 1},
        .shared_bytes = launch->kernel->shared_bytes,
        .registers = launch->registers,
        .has_pc = true,
        .page_bytes = page_bytes ? page_bytes : TRACE_PAGE_BYTES};
    struct trace_writer *writer = NULL;
    if (launch->blocks > TRACE_BLOCKS_MAX)
        return err_set(err, -EINVAL, "a trace has at most %u blocks", TRACE_BLOCKS_MAX);
    snprintf(head.name, sizeof head.name, "%s", launch->kernel->name);
    int rc = trace_writer_create(path, &head, &writer, err);
    for (uint64_t block = 0; block < launch->blocks && !rc; block++)
        for (uint32_t warp = 0; warp < launch->warps_per_block && !rc; warp++) {
            struct kernel_cursor cursor;
            struct warp_access access;
            kernel_begin(launch, block, warp, &cursor);
            while (!rc && kernel_next(launch, &cursor, &access))
                rc = trace_writer_add(writer, block, warp, &access, cursor.step - 1, err);
        }
    rc = rc ? rc : trace_writer_finish(writer, out_totals, err);
    trace_writer_destroy(writer);
    return rc;
}
