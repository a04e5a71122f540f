/* Bandwidth of a memory: the best of several shapes of a stream, repeated. */
#include "probes/streams/bandwidth.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"
#include "cpd/cpd.h"
#include "probes/method/repeats.h"
#include "probes/probe.h"

enum { GROWTHS_MAX = 6 }; /* how often a stream is made longer until it lasts long enough */

/* Long compared with launch and timer (microseconds), short compared with a survey. */
static const double STREAM_NS = 3e6, COPIES_NS = 2e6;

/* Shapes by ticket are tried for a shorter time. */
static const double TRY_NS = 1e6;

static const double GROWTH_MIN = 2, GROWTH_MAX = 256;

static const uint64_t TOTAL_MAX_BYTES = UINT64_C(1) << 42;

/* True when a kernel streams; else the host link copies. */
static bool bandwidth_by_kernel(const struct bandwidth_task *task)
{
    return !device_stream_uses_host(task->kind);
}

/* True for memories and caches of which each SM has its own, with its own footprint. */
static bool bandwidth_per_block(const struct bandwidth_task *task)
{
    return bandwidth_by_kernel(task) && task->path != DEVICE_GLOBAL_CG;
}

/* True when a block may have this many threads. */
static bool bandwidth_allows(const struct probe_context *context, uint32_t threads)
{
    uint32_t warps = device_limits(context->device)->warp_count;
    return !warps || threads <= warps * BANDWIDTH_WARP_THREADS;
}

/* Bytes that all threads of a launch have in flight; 0: not known. */
static uint64_t bandwidth_in_flight(const struct bandwidth_task *task,
                                    const struct bandwidth_shape *shape, uint32_t sms)
{
    /* All threads load the same constants at once. */
    uint64_t threads = task->path == DEVICE_CONSTANT ? 1 : shape->threads;
    uint64_t bytes = threads * shape->width_bytes * shape->unroll;
    if (!bandwidth_per_block(task))
        bytes *= (uint64_t)shape->blocks_per_sm * sms;
    return device_stream_arrays(task->kind) * bytes;
}

/* The most accesses in flight per thread, up to BANDWIDTH_UNROLL_MAX, that fit into one pass. */
static uint32_t bandwidth_unroll(const struct probe_context *context,
                                 const struct bandwidth_task *task,
                                 const struct bandwidth_shape *shape)
{
    uint32_t sms = device_limits(context->device)->sm_count;
    struct bandwidth_shape tried = *shape;
    for (tried.unroll = BANDWIDTH_UNROLL_MAX; tried.unroll > 1; tried.unroll /= 2)
        if (bandwidth_in_flight(task, &tried, sms) <= task->footprint_bytes)
            break;
    return tried.unroll;
}

static uint64_t even_footprint(const struct bandwidth_task *task,
                               const struct bandwidth_shape *shape, uint32_t sms)
{
    uint64_t bytes = bandwidth_in_flight(task, shape, sms);
    if (!bytes || bytes > task->footprint_bytes)
        return task->footprint_bytes;
    return task->footprint_bytes / bytes * bytes;
}

static struct device_stream make_stream(const struct bandwidth_task *task,
                                        const struct bandwidth_shape *shape, uint32_t sms)
{
    struct device_stream stream = {
        .kind = task->kind, .path = task->path, .footprint_bytes = task->footprint_bytes};
    if (bandwidth_by_kernel(task)) {
        stream.footprint_bytes = even_footprint(task, shape, sms);
        stream.width_bytes = shape->width_bytes;
        stream.threads = shape->threads;
        stream.blocks = shape->blocks_per_sm * sms;
        stream.unroll = shape->unroll;
    }
    return stream;
}

static int bandwidth_stream_once(struct probe_context *context, const struct bandwidth_task *task,
                                 const struct bandwidth_shape *shape, uint64_t total_bytes,
                                 struct device_stream_answer *out_answer, struct err *err)
{
    if (!task->ticket) {
        struct device_stream stream =
            make_stream(task, shape, device_limits(context->device)->sm_count);
        stream.total_bytes = total_bytes;
        return device_stream(context->device, &stream, out_answer, err);
    }
    const struct device_tickets tickets = {.kind = task->kind,
                                           .footprint_bytes = task->footprint_bytes,
                                           .total_bytes = total_bytes,
                                           .threads = shape->threads,
                                           .blocks_per_sm = shape->blocks_per_sm,
                                           .unroll = shape->unroll,
                                           .chunk_bytes = shape->chunk_bytes,
                                           .equal_percent = shape->equal_percent};
    struct device_tickets_answer answer;
    int rc = device_stream_tickets(context->device, &tickets, &answer, err);
    if (rc)
        return rc;
    *out_answer = (struct device_stream_answer){answer.bytes, answer.elapsed_ns};
    device_tickets_answer_fini(&answer);
    return 0;
}

/* Streams long enough to be timed well, and returns the rate in GB/s. The footprint is the task's,
 * without a remainder that only some threads would have. *total_bytes: in, where to begin (0: one
 * pass); out, what was long enough. */
static int bandwidth_time_for(struct probe_context *context, const struct bandwidth_task *task,
                              const struct bandwidth_shape *shape, double wanted_ns,
                              uint64_t *total_bytes, double *out_gbs, struct err *err)
{
    uint32_t sms = device_limits(context->device)->sm_count;
    uint64_t pass = make_stream(task, shape, sms).footprint_bytes *
                    (bandwidth_per_block(task) && sms ? sms : 1);
    uint64_t total = *total_bytes > pass ? *total_bytes : pass;
    for (size_t i = 0; i < GROWTHS_MAX; i++) {
        struct device_stream_answer answer;
        if (!bandwidth_by_kernel(task))
            probe_begin_link(context);
        int rc = bandwidth_stream_once(context, task, shape, total, &answer, err);
        if (!bandwidth_by_kernel(task))
            probe_end_link(context);
        if (rc)
            return rc;
        double ns = answer.elapsed_ns ? (double)answer.elapsed_ns : 1;
        if (!answer.elapsed_ns && (i + 1 == GROWTHS_MAX || total >= TOTAL_MAX_BYTES))
            return err_set(err, -ENOTSUP, "the stream takes no time by the device's clock");
        *out_gbs = (double)answer.bytes / ns;
        *total_bytes = total;
        if (ns >= wanted_ns / 2 || total >= TOTAL_MAX_BYTES)
            break;
        double growth = fmin(fmax(wanted_ns / ns, GROWTH_MIN), GROWTH_MAX);
        total = (uint64_t)((double)total * growth);
    }
    return 0;
}

static int bandwidth_time(struct probe_context *context, const struct bandwidth_task *task,
                          const struct bandwidth_shape *shape, uint64_t *total_bytes,
                          double *out_gbs, struct err *err)
{
    return bandwidth_time_for(context, task, shape,
                              bandwidth_by_kernel(task) ? STREAM_NS : COPIES_NS, total_bytes,
                              out_gbs, err);
}

/* Bandwidth by access width, threads, blocks and accesses in flight: the surface of the thesis,
 * section 6.1. */

static const uint32_t shape_widths[] = {1, 2, 4, 8, 16};

static const uint32_t shape_threads[] = {32, 64, 128, 256, 512, 1024};

static const uint32_t shape_blocks[] = {1, 2, 4, 8};

enum {
    WIDTHS = sizeof shape_widths / sizeof *shape_widths,
    THREADS = sizeof shape_threads / sizeof *shape_threads,
    BLOCKS = sizeof shape_blocks / sizeof *shape_blocks,
};

struct peak {
    struct bandwidth_shape shape;
    double gbs;
};

/* GB/s, with four digits. */
enum { SURFACE_DIGITS = 4, UNROLLS_MAX = 32 };
struct surface {
    size_t rows, unrolls;                    /* rows: 0 if it was not measured */
    double bytes[WIDTHS * THREADS];          /* width of the accesses of each row */
    double threads[WIDTHS * THREADS];        /* of a block */
    double gbs[WIDTHS * THREADS * BLOCKS];   /* by row, then by blocks per SM */
    struct bandwidth_shape best;             /* with which accesses in flight were varied */
    double at[UNROLLS_MAX], of[UNROLLS_MAX]; /* accesses in flight, and GB/s */
};

static int shapes_measure_row(struct probe_context *context, const struct bandwidth_task *task,
                              struct bandwidth_shape shape, struct peak *peak,
                              struct surface *surface, struct err *err)
{
    size_t row = surface->rows;
    for (size_t b = 0; b < BLOCKS; b++) {
        uint64_t total = 0;
        double gbs;
        shape.blocks_per_sm = shape_blocks[b];
        shape.unroll = bandwidth_unroll(context, task, &shape);
        int rc = bandwidth_time(context, task, &shape, &total, &gbs, err);
        if (rc)
            return rc;
        if (gbs > peak->gbs)
            *peak = (struct peak){shape, gbs};
        surface->gbs[row * BLOCKS + b] = facts_rounded(gbs, SURFACE_DIGITS);
    }
    surface->bytes[row] = shape.width_bytes;
    surface->threads[row] = shape.threads;
    surface->rows++;
    return 0;
}

/* The best shape with one access in flight, two, ... as many as fit into a pass. */
static int measure_unrolls(struct probe_context *context, const struct bandwidth_task *task,
                           struct peak *peak, struct surface *surface, struct err *err)
{
    struct bandwidth_shape shape = peak->shape;
    uint32_t most = bandwidth_unroll(context, task, &shape);
    surface->best = shape;
    for (shape.unroll = 1; shape.unroll <= most && surface->unrolls < UNROLLS_MAX;
         shape.unroll *= 2) {
        uint64_t total = 0;
        double gbs;
        int rc = bandwidth_time(context, task, &shape, &total, &gbs, err);
        if (rc)
            return rc;
        if (gbs > peak->gbs)
            *peak = (struct peak){shape, gbs};
        surface->at[surface->unrolls] = shape.unroll;
        surface->of[surface->unrolls++] = facts_rounded(gbs, SURFACE_DIGITS);
    }
    return 0;
}

/* Measures every width, number of threads and number of blocks once, then the best of them with
 * other numbers of accesses in flight (thesis, section 6.1). -ENOTSUP when the device has none of
 * these streams. */
static int bandwidth_surface(struct probe_context *context, const struct bandwidth_task *task,
                             struct bandwidth_shape *out_best, struct surface *out_surface,
                             struct err *err)
{
    struct peak peak = {.gbs = 0};
    for (size_t i = 0; i < WIDTHS * THREADS; i++) {
        struct bandwidth_shape shape = {.width_bytes = shape_widths[i / THREADS],
                                        .threads = shape_threads[i % THREADS]};
        struct err own = {0};
        if (!bandwidth_allows(context, shape.threads))
            continue;
        int rc = shapes_measure_row(context, task, shape, &peak, out_surface, &own);
        /* If the device cannot stream a width, its rows are left out. */
        if (rc && rc != -ENOTSUP)
            return err_set(err, rc, "%s", own.text);
    }
    if (peak.gbs <= 0)
        return err_set(err, -ENOTSUP, "no stream of any width runs on this memory");
    int rc = measure_unrolls(context, task, &peak, out_surface, err);
    if (rc)
        return rc;
    *out_best = peak.shape;
    return 0;
}

static void surface_note(const struct surface *surface, struct measure *m)
{
    double blocks[BLOCKS];
    const double best[] = {surface->best.width_bytes, surface->best.threads,
                           surface->best.blocks_per_sm};
    for (size_t b = 0; b < BLOCKS; b++)
        blocks[b] = shape_blocks[b];
    facts_set_numbers(&m->notes, "surface_bytes", surface->bytes, surface->rows);
    facts_set_numbers(&m->notes, "surface_threads", surface->threads, surface->rows);
    facts_set_numbers(&m->notes, "surface_blocks", blocks, BLOCKS);
    facts_set_rows(&m->notes, "surface", surface->gbs, surface->rows, BLOCKS);
    facts_set_numbers(&m->notes, "surface_in_flight_by", best, COUNT_OF(best));
    facts_set_numbers(&m->notes, "surface_in_flight_at", surface->at, surface->unrolls);
    facts_set_numbers(&m->notes, "surface_in_flight", surface->of, surface->unrolls);
}

enum {
    REPEATS = 5,          /* passes; each goes through all shapes, so repetitions lie apart */
    REPEATS_STANDARD = 3, /* in that profile, of figures that are not judged */
    WIDTH_REPEATS = 3,
    NAMED_WIDTH = 4,   /* the rate of which is the value of a list by width */
    REPEATS_SHORT = 2, /* if there are several short rounds in a run */
    ATTEMPTS = 3,      /* series of passes before scattering ones are reported as noisy */
    ATTEMPTS_COPIES = 6,
    TICKETS_KEPT = 2, /* shapes by ticket that are repeated, of those that were tried */
    SHAPES_MAX = 6,   /* the usual ones and the best one of the surface; those by ticket */
    WIDTH_BYTES = 16, /* per access: reaches the limit on all GPUs of the thesis */
    METHOD_MAX = 120,
    REASON_MAX = 120,
};

/* Another shape than the first must be better by this factor, so that chance does not decide. */
static const double BETTER = 1.01;

/* Repetitions disagree if half range / median is above this. The faster copies must agree more
 * closely; otherwise they are not what the link can do. */
static const double AGREEMENT = 0.05, COPIES_AGREEMENT = 0.01;

/* If half of the accesses in flight still reach this share of the rate, more of them would hardly
 * help: twice as many add less than the second half did. A figure by ticket is judged, so less may
 * be missing. */
static const double SATURATED = 0.95, TICKETS_SATURATED = 0.97;

/* Copies that are slower than the others by this share are mentioned in a note. */
static const double SLOWED = 0.1;

/* Which number of threads and accesses in flight reaches the limit differs between GPUs. The likely
 * best comes first. */
struct usual {
    uint32_t threads, unroll;
    uint32_t share; /* blocks have 1 / share of the threads that an SM can hold: eight accesses of
                       16 bytes leave registers for only half of them */
};

/* On an H200, L2 reached 9.03 TB/s with one access in flight and 9.38 TB/s with two; main memory
 * reached 4.56 TB/s with four. */
static const struct usual l2_shapes[] = {{1024, 2, 1}, {512, 4, 1}, {256, 8, 2}};

static const struct usual main_shapes[] = {{512, 4, 1}, {1024, 2, 1}, {256, 8, 2}};

/* One block per SM: L1 and shared memory reach their limit without more threads. */
static const struct usual block_shapes[] = {{1024, 4, 0}, {512, 8, 0}, {256, 8, 0}};

enum { USUAL_COUNT = COUNT_OF(l2_shapes) };

/* By ticket. Which is best depends on level and kind, not on the card (the same on four H200s):
 * main memory is read best with much in flight, written with one block per SM, copied in small
 * chunks; L2 is read best if the work is shared equally at first, and the rest by ticket. */
static const struct bandwidth_shape ticket_shapes[] = {
    {WIDTH_BYTES, 512, 4, 4, 128 << 10, 0}, {WIDTH_BYTES, 1024, 1, 4, 64 << 10, 0},
    {WIDTH_BYTES, 128, 8, 2, 16 << 10, 0},  {WIDTH_BYTES, 256, 4, 4, 32 << 10, 85},
    {WIDTH_BYTES, 512, 1, 8, 128 << 10, 0}, {WIDTH_BYTES, 512, 1, 8, 64 << 10, 0},
};
_Static_assert(COUNT_OF(ticket_shapes) <= SHAPES_MAX, "room for all of them");

/* If a pass is shorter than what is in flight, threads are idle. Reduces the blocks first: more
 * accesses in flight per thread cost fewer instructions than more threads. */
static struct bandwidth_shape fit_shape(const struct bandwidth_task *task,
                                        struct bandwidth_shape shape, uint32_t sms)
{
    while (bandwidth_in_flight(task, &shape, sms) > task->footprint_bytes) {
        if (!bandwidth_per_block(task) && shape.blocks_per_sm > 1)
            shape.blocks_per_sm--;
        else if (shape.unroll > 1)
            shape.unroll /= 2;
        else if (shape.threads > BANDWIDTH_WARP_THREADS)
            shape.threads /= 2;
        else
            break;
    }
    return shape;
}

struct bandwidth_shape bandwidth_fit_tickets(const struct probe_context *context,
                                             const struct bandwidth_task *task,
                                             const struct bandwidth_shape *usual)
{
    struct bandwidth_shape shape = *usual;
    const struct device_limits *limits = device_limits(context->device);
    while (shape.threads > BANDWIDTH_WARP_THREADS && !bandwidth_allows(context, shape.threads))
        shape.threads /= 2;
    /* All blocks run at once. */
    while (limits->threads_per_sm && shape.blocks_per_sm > 1 &&
           shape.blocks_per_sm * shape.threads > limits->threads_per_sm)
        shape.blocks_per_sm--;
    shape = fit_shape(task, shape, limits->sm_count);
    uint64_t least = (uint64_t)shape.threads * shape.width_bytes * shape.unroll;
    uint64_t at_once =
        (uint64_t)device_stream_arrays(task->kind) * shape.blocks_per_sm * limits->sm_count;
    while (shape.chunk_bytes > least && at_once * shape.chunk_bytes > task->footprint_bytes)
        shape.chunk_bytes /= 2;
    return shape;
}

struct candidates {
    struct bandwidth_shape shapes[SHAPES_MAX];
    bool cut[SHAPES_MAX]; /* the footprint is too small for the shape's accesses in flight */
    uint64_t totals[SHAPES_MAX];
    size_t count;
    size_t usual; /* the first ones, which every profile has: figures stay comparable */
};

/* Rates of the best shape over a series of passes. */
struct series {
    struct bandwidth_shape shape;
    bool cut; /* as in candidates */
    uint64_t total_bytes;
    size_t count;
    double gbs[REPEATS];
    double scatter; /* half range over median */
    double slowest; /* of all, also of those that are not in gbs */
    double spread; /* of the rates; for kernels, whose rate nothing outside lowers, also that of the
                      series before */
    struct bandwidth_shape best_shape; /* of the surface, where it is better */
    double best_gbs;                   /* 0: none is better */
};

static size_t count_passes(const struct probe_context *context, const struct bandwidth_task *task)
{
    if (bandwidth_by_kernel(task) && !task->ticket && context->options->profile == PROFILE_STANDARD)
        return REPEATS_STANDARD;
    size_t count = bandwidth_by_kernel(task) ? probe_repeats(context, REPEATS) : REPEATS;
    return count > 1 ? count : REPEATS_SHORT;
}

static int compare_falling(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* Other work of the host, and a link that wakes up, can only slow copies down: the faster half
 * shows what the link can do. */
static void keep_faster_half(struct series *series)
{
    sort_stable(series->gbs, series->count, sizeof *series->gbs, compare_falling);
    series->count = (series->count + 1) / 2;
}

/* Tries every shape once, and keeps the best two. */
static int keep_good_shapes(struct probe_context *context, const struct bandwidth_task *task,
                            struct candidates *candidates, struct err *err)
{
    double gbs[SHAPES_MAX], best = 0, second = 0;
    size_t kept = 0;
    for (size_t i = 0; i < candidates->count; i++) {
        if (i)
            candidates->totals[i] = candidates->totals[i - 1];
        int rc = bandwidth_time_for(context, task, &candidates->shapes[i], TRY_NS,
                                    &candidates->totals[i], &gbs[i], err);
        if (rc)
            return rc;
        second = fmax(second, fmin(best, gbs[i]));
        best = fmax(best, gbs[i]);
    }
    for (size_t i = 0; i < candidates->count && kept < TICKETS_KEPT; i++) {
        if (gbs[i] < second)
            continue;
        candidates->shapes[kept] = candidates->shapes[i];
        candidates->cut[kept] = candidates->cut[i];
        candidates->totals[kept++] = (uint64_t)(candidates->totals[i] * (STREAM_NS / TRY_NS));
    }
    candidates->count = candidates->usual = kept;
    return 0;
}

static int run_series(struct probe_context *context, const struct bandwidth_task *task,
                      struct candidates *candidates, struct series *out_series, struct err *err)
{
    double gbs[SHAPES_MAX][REPEATS];
    size_t best = 0, count = count_passes(context, task);
    if (task->ticket && candidates->count > TICKETS_KEPT) {
        int rc = keep_good_shapes(context, task, candidates, err);
        if (rc)
            return rc;
    }
    for (size_t r = 0; r < count; r++) {
        for (size_t i = 0; i < candidates->count; i++) {
            if (i && !candidates->totals[i])
                candidates->totals[i] = candidates->totals[i - 1];
            int rc = bandwidth_time(context, task, &candidates->shapes[i], &candidates->totals[i],
                                    &gbs[i][r], err);
            if (rc)
                return rc;
        }
    }
    const double better = task->ticket ? 1 : BETTER;
    for (size_t i = 1; i < candidates->usual; i++)
        if (cpd_median(gbs[i], count) > better * cpd_median(gbs[best], count))
            best = i;
    struct series series = {.shape = candidates->shapes[best],
                            .cut = candidates->cut[best],
                            .total_bytes = candidates->totals[best],
                            .count = count};
    for (size_t i = candidates->usual; i < candidates->count; i++) {
        if (cpd_median(gbs[i], count) <= BETTER * cpd_median(gbs[best], count))
            continue;
        series.best_gbs = cpd_median(gbs[i], count);
        series.best_shape = candidates->shapes[i];
    }
    for (size_t r = 0; r < count; r++)
        series.gbs[r] = gbs[best][r];
    series.slowest = cpd_quantile(series.gbs, count, 0);
    if (!bandwidth_by_kernel(task))
        keep_faster_half(&series);
    series.spread = repeats_half_range(series.gbs, series.count);
    series.scatter = series.spread / cpd_median(series.gbs, series.count);
    *out_series = series;
    return 0;
}

static bool agrees(const struct bandwidth_task *task, const struct series *series)
{
    return series->scatter <= (bandwidth_by_kernel(task) ? AGREEMENT : COPIES_AGREEMENT);
}

static int steadiest_series(struct probe_context *context, const struct bandwidth_task *task,
                            struct candidates *candidates, struct series *out_series,
                            struct err *err)
{
    const size_t attempts = bandwidth_by_kernel(task) ? ATTEMPTS : ATTEMPTS_COPIES;
    double medians[ATTEMPTS_COPIES];
    struct series best = {0};
    size_t made = 0;
    while (made < attempts) {
        struct series series;
        int rc = run_series(context, task, candidates, &series, err);
        if (rc)
            return rc;
        medians[made++] = cpd_median(series.gbs, series.count);
        if (made == 1 || series.scatter < best.scatter)
            best = series;
        if (agrees(task, &best))
            break;
    }
    if (bandwidth_by_kernel(task))
        best.spread = fmax(best.spread, repeats_half_range(medians, made));
    *out_series = best;
    return 0;
}

static void bandwidth_describe(char method[METHOD_MAX], const struct bandwidth_task *task,
                               const struct bandwidth_shape *shape)
{
    if (!bandwidth_by_kernel(task))
        snprintf(method, METHOD_MAX, "copies of %.0f MiB, pinned memory, faster half",
                 (double)task->footprint_bytes / 0x1p20);
    else if (task->ticket)
        snprintf(method, METHOD_MAX,
                 "by ticket: chunks of %u KiB, %u threads, %u block%s per SM, %u in flight",
                 shape->chunk_bytes >> 10, shape->threads, shape->blocks_per_sm,
                 shape->blocks_per_sm > 1 ? "s" : "", shape->unroll);
    else if (shape->blocks_per_sm)
        snprintf(method, METHOD_MAX, "stream: %u B, %u threads, %u block%s per SM, %u in flight",
                 shape->width_bytes, shape->threads, shape->blocks_per_sm,
                 shape->blocks_per_sm > 1 ? "s" : "", shape->unroll);
    else
        snprintf(method, METHOD_MAX,
                 "stream: %u B, %u threads, blocks by the backend, %u in flight",
                 shape->width_bytes, shape->threads, shape->unroll);
}

/* If the footprint is too small for enough accesses in flight, the memory may be faster than the
 * streams. That is so if half of the accesses give clearly less. */
static int check_saturated(struct probe_context *context, const struct bandwidth_task *task,
                           struct series *series, struct err *err)
{
    struct bandwidth_shape half = series->shape;
    uint64_t total = series->total_bytes;
    double gbs;
    if (!series->cut || half.threads * half.unroll <= BANDWIDTH_WARP_THREADS)
        return 0;
    *(half.unroll > 1 ? &half.unroll : &half.threads) /= 2;
    int rc = bandwidth_time(context, task, &half, &total, &gbs, err);
    series->cut = false;
    if (rc == -ENOENT) /* an older record, in which this was asked of another shape, or of none */
        return 0;
    if (rc)
        return rc;
    series->cut = gbs < (task->ticket ? TICKETS_SATURATED : SATURATED) *
                            cpd_median(series->gbs, series->count);
    return 0;
}

static void bandwidth_add_measure(struct probe_context *context, const struct bandwidth_task *task,
                                  const struct series *series, const struct surface *surface)
{
    char method[METHOD_MAX], best[METHOD_MAX], reason[REASON_MAX];
    bandwidth_describe(method, task, &series->shape);
    bandwidth_describe(best, task, &series->best_shape);
    struct measure *m =
        repeats_add(context, task->metric, series->gbs, series->count, "GB/s", method);
    /* If the repetitions disagree, those that were left out count too. */
    double range = agrees(task, series) ? 0 : (m->value - series->slowest) / 2;
    m->spread = series->spread;
    m->confidence = repeats_confidence(m->value, fmax(m->spread, range));
    m->bound = series->cut ? MEASURE_AT_LEAST : MEASURE_EXACT;
    bool slowed = m && series->slowest < (1 - SLOWED) * m->value;
    if (surface->rows)
        surface_note(surface, m);
    if (slowed)
        facts_set_real(&m->notes, "slowest", series->slowest);
    if (series->best_gbs > 0) {
        facts_set_real(&m->notes, "best", series->best_gbs);
        facts_set_text(&m->notes, "best_by", best);
    }
    if (agrees(task, series))
        return;
    snprintf(reason, sizeof reason, "%zu repetitions differ by %.0f %% at best", series->count,
             200 * series->scatter);
    measure_set_status(m, MEASURE_NOISY, reason);
}

static const struct usual *usual_shapes(const struct probe_context *context,
                                        const struct bandwidth_task *task)
{
    if (bandwidth_per_block(task))
        return block_shapes;
    return task->footprint_bytes > device_limits(context->device)->l2_reported_bytes ? main_shapes
                                                                                     : l2_shapes;
}

static struct bandwidth_shape usual_shape(const struct probe_context *context,
                                          const struct bandwidth_task *task,
                                          const struct usual *usual, bool *out_cut)
{
    const struct device_limits *limits = device_limits(context->device);
    struct bandwidth_shape shape = {.width_bytes = WIDTH_BYTES,
                                    .threads = usual->threads,
                                    .blocks_per_sm = bandwidth_per_block(task) ? 1 : 0,
                                    .unroll = usual->unroll};
    while (shape.threads > BANDWIDTH_WARP_THREADS && !bandwidth_allows(context, shape.threads))
        shape.threads /= 2;
    if (usual->share && limits->threads_per_sm) {
        uint32_t blocks = limits->threads_per_sm / usual->share / shape.threads;
        shape.blocks_per_sm = blocks ? blocks : 1;
    }
    *out_cut = bandwidth_in_flight(task, &shape, limits->sm_count) > task->footprint_bytes;
    return fit_shape(task, shape, limits->sm_count);
}

/* The choice of the metric's first round, or a free entry for it; NULL: neither. */
static struct bandwidth_choice *choice_of(struct probe_context *context, const char *metric)
{
    for (size_t i = 0; i < BANDWIDTH_CHOICES_MAX; i++) {
        struct bandwidth_choice *choice = &context->bandwidths[i];
        if (!choice->metric || strcmp(choice->metric, metric) == 0)
            return choice;
    }
    return NULL;
}

static int collect_candidates(struct probe_context *context, const struct bandwidth_task *task,
                              struct candidates *candidates, struct surface *surface,
                              struct err *err)
{
    const struct usual *usual = usual_shapes(context, task);
    const struct bandwidth_choice *choice = choice_of(context, task->metric);
    candidates->count = candidates->usual = 1;
    if (!bandwidth_by_kernel(task))
        return 0; /* copies have no shape */
    if (context->repeating && choice && choice->metric) {
        candidates->shapes[0] = choice->shape;
        candidates->totals[0] = choice->total_bytes;
        return 0;
    }
    if (task->ticket) {
        const struct device_limits *limits = device_limits(context->device);
        candidates->count = candidates->usual = COUNT_OF(ticket_shapes);
        bool cut = false;
        for (size_t i = 0; i < COUNT_OF(ticket_shapes); i++) {
            candidates->shapes[i] = bandwidth_fit_tickets(context, task, &ticket_shapes[i]);
            cut = cut || bandwidth_in_flight(task, &ticket_shapes[i], limits->sm_count) >
                             task->footprint_bytes;
        }
        /* A shape that fits may be the best only because the larger ones do not. */
        for (size_t i = 0; i < candidates->count; i++)
            candidates->cut[i] = cut;
        return 0;
    }
    candidates->count = candidates->usual = USUAL_COUNT;
    for (size_t i = 0; i < USUAL_COUNT; i++)
        candidates->shapes[i] = usual_shape(context, task, &usual[i], &candidates->cut[i]);
    if (context->options->profile < PROFILE_FULL || context->repeating || task->no_surface)
        return 0;
    return bandwidth_surface(context, task, &candidates->shapes[candidates->count++], surface, err);
}

static void keep_choice(struct probe_context *context, const struct bandwidth_task *task,
                        const struct series *series)
{
    struct bandwidth_choice *choice = choice_of(context, task->metric);
    if (choice && !context->repeating)
        *choice = (struct bandwidth_choice){
            .metric = task->metric, .shape = series->shape, .total_bytes = series->total_bytes};
}

static int bandwidth_measure_series(struct probe_context *context,
                                    const struct bandwidth_task *task, struct series *out_series,
                                    struct surface *surface, struct err *err)
{
    struct candidates candidates = {0};
    int rc = collect_candidates(context, task, &candidates, surface, err);
    if (rc)
        return rc;
    rc = steadiest_series(context, task, &candidates, out_series, err);
    if (rc)
        return rc;
    return check_saturated(context, task, out_series, err);
}

int bandwidth_report(struct probe_context *context, const struct bandwidth_task *task,
                     struct err *err)
{
    struct series series = {0};
    struct surface surface = {0};
    struct err own = {0};
    int rc = bandwidth_measure_series(context, task, &series, &surface, &own);
    if (rc)
        return repeats_end(context, task->metric, rc, &own, err);
    bandwidth_add_measure(context, task, &series, &surface);
    keep_choice(context, task, &series);
    return 0;
}

int bandwidth_report_widths(struct probe_context *context, const struct bandwidth_task *task,
                            const char *metric, struct err *err)
{
    const struct bandwidth_choice *choice = choice_of(context, task->metric);
    const uint32_t sms = device_limits(context->device)->sm_count;
    double at[WIDTHS], gbs[WIDTHS], named = NAN, spread = 0;
    size_t count = 0;
    if (!choice || !choice->metric) {
        repeats_unsupported(context, metric, "the bandwidth is not known");
        return 0;
    }
    for (size_t i = 0; i < WIDTHS; i++) {
        double rates[WIDTH_REPEATS];
        struct bandwidth_shape shape = choice->shape;
        uint64_t total = choice->total_bytes * shape_widths[i] / shape.width_bytes;
        shape.width_bytes = shape_widths[i];
        shape.unroll = bandwidth_unroll(context, task, &shape);
        shape = fit_shape(task, shape, sms);
        int rc = 0;
        for (size_t r = 0; r < WIDTH_REPEATS && !rc; r++)
            rc = bandwidth_time(context, task, &shape, &total, &rates[r], err);
        if (rc == -ENOTSUP)
            continue;
        if (rc)
            return rc;
        at[count] = shape_widths[i];
        gbs[count++] = facts_rounded(cpd_median(rates, WIDTH_REPEATS), SURFACE_DIGITS);
        if (shape_widths[i] != NAMED_WIDTH)
            continue;
        named = cpd_median(rates, WIDTH_REPEATS);
        spread = repeats_half_range(rates, WIDTH_REPEATS);
    }
    if (isnan(named)) {
        repeats_unsupported(context, metric, "the device has no such streams");
        return 0;
    }
    struct measure *m = measures_add(context->measures, metric, named, "GB/s",
                                     "accesses of 4 bytes; by_width: 1 to 16");
    m->n = WIDTH_REPEATS;
    m->spread = spread;
    m->confidence = repeats_confidence(named, spread);
    measure_note_pairs(m, "by_width", at, gbs, count);
    return 0;
}
