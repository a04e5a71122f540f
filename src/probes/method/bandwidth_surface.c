/* Bandwidth by access width, threads, blocks and accesses in flight: the surface of the thesis,
 * section 6.1. */
#include "probes/method/bandwidth_surface.h"

#include <errno.h>

#include "probes/probe.h"

static const uint32_t widths[] = {1, 2, 4, 8, 16};
static const uint32_t threads[] = {32, 64, 128, 256, 512, 1024};
static const uint32_t blocks[] = {1, 2, 4, 8};
enum {
    WIDTHS = sizeof widths / sizeof *widths,
    THREADS = sizeof threads / sizeof *threads,
    BLOCKS = sizeof blocks / sizeof *blocks,
};

struct peak {
    struct bandwidth_shape shape;
    double gbs;
};

/* One row of the text: "16x256 100 200 390 400". */
static int measure_row(struct probe_context *context, const struct bandwidth_task *task,
                       struct bandwidth_shape shape, struct peak *peak, struct strbuf *text,
                       struct err *err)
{
    for (size_t b = 0; b < BLOCKS; b++) {
        uint64_t total = 0;
        double gbs;
        shape.blocks_per_sm = blocks[b];
        shape.unroll = bandwidth_unroll(context, task, &shape);
        int rc = bandwidth_time(context, task, &shape, &total, &gbs, err);
        if (rc)
            return rc;
        if (gbs > peak->gbs)
            *peak = (struct peak){shape, gbs};
        if (b == 0)
            strbuf_printf(text, "; %ux%u", shape.width_bytes, shape.threads);
        strbuf_printf(text, " %.4g", gbs);
    }
    return 0;
}

/* The best shape with one access in flight, two, ... as many as fit into a pass. */
static int measure_unrolls(struct probe_context *context, const struct bandwidth_task *task,
                           struct peak *peak, struct strbuf *text, struct err *err)
{
    struct bandwidth_shape shape = peak->shape;
    uint32_t most = bandwidth_unroll(context, task, &shape);
    strbuf_printf(text, "; %ux%u, %u blocks, 1 2 4 ... in flight", shape.width_bytes, shape.threads,
                  shape.blocks_per_sm);
    for (shape.unroll = 1; shape.unroll <= most; shape.unroll *= 2) {
        uint64_t total = 0;
        double gbs;
        int rc = bandwidth_time(context, task, &shape, &total, &gbs, err);
        if (rc)
            return rc;
        if (gbs > peak->gbs)
            *peak = (struct peak){shape, gbs};
        strbuf_printf(text, " %.4g", gbs);
    }
    return 0;
}

int bandwidth_surface(struct probe_context *context, const struct bandwidth_task *task,
                      struct bandwidth_shape *out_best, struct strbuf *out_text, struct err *err)
{
    struct peak peak = {.gbs = 0};
    strbuf_puts(out_text, "GB/s by bytes x threads with 1 2 4 8 blocks per SM");
    for (size_t i = 0; i < WIDTHS * THREADS; i++) {
        struct bandwidth_shape shape = {.width_bytes = widths[i / THREADS],
                                        .threads = threads[i % THREADS]};
        struct err own = {0};
        if (!bandwidth_allows(context, shape.threads))
            continue;
        int rc = measure_row(context, task, shape, &peak, out_text, &own);
        /* If the device cannot stream a width, its rows are left out. */
        if (rc && rc != -ENOTSUP)
            return err_set(err, rc, "%s", own.text);
    }
    if (peak.gbs <= 0)
        return err_set(err, -ENOTSUP, "no stream of any width runs on this memory");
    int rc = measure_unrolls(context, task, &peak, out_text, err);
    if (rc)
        return rc;
    if (out_text->failed)
        return err_no_memory(err);
    *out_best = peak.shape;
    return 0;
}
