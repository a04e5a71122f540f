/* Bandwidth of a memory: the best of several shapes of a stream, repeated. */
#include "probes/bandwidth.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cpd/cpd.h"
#include "probes/host_link.h"
#include "probes/repeats.h"

enum {
    REPEATS = 5,       /* passes; each goes through all shapes, so repetitions lie apart */
    REPEATS_SHORT = 2, /* where there are several rounds over a short run */
    ATTEMPTS = 3,      /* series of passes before scattering ones are reported as noisy */
    ATTEMPTS_COPIES = 6,
    SHAPES_MAX = 4,  /* the usual ones and the best of the surface */
    GROWTHS_MAX = 6, /* lengthenings of a stream until it lasts long enough */
    WARP_THREADS = 32,
    THREADS_PER_SM = 2048, /* resident on most GPUs when the backend chooses the blocks */
    METHOD_MAX = 120,
    REASON_MAX = 120,
};

/* Long against launch and timer (microseconds), short against a survey. */
static const double STREAM_NS = 3e6, COPIES_NS = 2e6;
static const double GROWTH_MIN = 2, GROWTH_MAX = 256;
static const uint64_t TOTAL_MAX_BYTES = UINT64_C(1) << 42;

/* Another shape than the first must be better by this: chance alone does not decide. */
static const double BETTER = 1.01;

/* Half range over median above which repetitions do not agree; the faster copies agree closely, or
 * they are not what the link can do. */
static const double AGREEMENT = 0.05, COPIES_AGREEMENT = 0.01;

/* Copies slower than the others by this are worth a note. */
static const double SLOWED = 0.1;

/* 16 bytes per access reach the limit on all GPUs of the thesis; how many threads do differs. */
static const struct bandwidth_shape usual_shapes[] = {{16, 1024, 0}, {16, 512, 0}, {16, 256, 0}};
enum { USUAL_COUNT = sizeof usual_shapes / sizeof *usual_shapes };

static bool by_kernel(const struct bandwidth_task *task)
{
    return task->kind < DEVICE_STREAM_H2D;
}

/* L1 and shared memory are one per SM, and so is the footprint. */
static bool per_block(const struct bandwidth_task *task)
{
    return by_kernel(task) && task->path != DEVICE_GLOBAL_CG;
}

bool bandwidth_allows(const struct probe_context *context, uint32_t threads)
{
    uint32_t warps = device_limits(context->device)->warp_count;
    return !warps || threads <= warps * WARP_THREADS;
}

/* As many accesses in flight as one pass over the footprint has room for: a pass that is shorter
 * than all of them together would run without any overlap in the backend's loop. */
static uint32_t fitting_unroll(const struct bandwidth_task *task,
                               const struct bandwidth_shape *shape, uint32_t sms)
{
    static const uint32_t unrolls[] = {8, 4};
    uint64_t threads = shape->threads;
    if (!per_block(task))
        threads = sms * (shape->blocks_per_sm ? threads * shape->blocks_per_sm
                                              : (uint64_t)THREADS_PER_SM);
    for (size_t i = 0; i < sizeof unrolls / sizeof *unrolls; i++)
        if (threads * shape->width_bytes * unrolls[i] <= task->footprint_bytes)
            return unrolls[i];
    return 1;
}

static struct device_stream make_stream(const struct bandwidth_task *task,
                                        const struct bandwidth_shape *shape, uint32_t sms)
{
    struct device_stream stream = {
        .kind = task->kind, .path = task->path, .footprint_bytes = task->footprint_bytes};
    if (by_kernel(task)) {
        stream.width_bytes = shape->width_bytes;
        stream.threads = shape->threads;
        stream.blocks = shape->blocks_per_sm * sms;
        stream.unroll = fitting_unroll(task, shape, sms);
    }
    return stream;
}

int bandwidth_time(struct probe_context *context, const struct bandwidth_task *task,
                   const struct bandwidth_shape *shape, uint64_t *total_bytes, double *out_gbs,
                   struct err *err)
{
    uint32_t sms = device_limits(context->device)->sm_count;
    struct device_stream stream = make_stream(task, shape, sms);
    uint64_t pass = task->footprint_bytes * (per_block(task) && sms ? sms : 1);
    stream.total_bytes = *total_bytes > pass ? *total_bytes : pass;
    const double wanted_ns = by_kernel(task) ? STREAM_NS : COPIES_NS;
    for (size_t i = 0; i < GROWTHS_MAX; i++) {
        struct device_stream_answer answer;
        if (!by_kernel(task))
            host_link_begin(context);
        int rc = device_stream(context->device, &stream, &answer, err);
        if (!by_kernel(task))
            host_link_end(context);
        if (rc)
            return rc;
        double ns = answer.elapsed_ns ? (double)answer.elapsed_ns : 1;
        if (!answer.elapsed_ns && (i + 1 == GROWTHS_MAX || stream.total_bytes >= TOTAL_MAX_BYTES))
            return err_set(err, -ENOTSUP, "the stream takes no time by the device's clock");
        *out_gbs = (double)answer.bytes / ns;
        *total_bytes = stream.total_bytes;
        if (ns >= wanted_ns / 2 || stream.total_bytes >= TOTAL_MAX_BYTES)
            break;
        double growth = fmin(fmax(wanted_ns / ns, GROWTH_MIN), GROWTH_MAX);
        stream.total_bytes = (uint64_t)((double)stream.total_bytes * growth);
    }
    return 0;
}

struct candidates {
    struct bandwidth_shape shapes[SHAPES_MAX];
    uint64_t totals[SHAPES_MAX];
    size_t count;
    size_t usual; /* the first ones, which every profile has: figures are comparable */
};

/* Rates of the best shape over a series of passes. */
struct series {
    struct bandwidth_shape shape;
    size_t count;
    double gbs[REPEATS];
    double scatter; /* half range over median */
    double slowest; /* of all, also of those left out of gbs */
    double spread;  /* of the rates; of kernels' streams, whose rate nothing lowers from outside,
                     * also that of the series before it */
    struct bandwidth_shape best_shape; /* of the surface, where it is better */
    double best_gbs;                   /* 0: it is not */
};

static size_t count_passes(const struct probe_context *context, const struct bandwidth_task *task)
{
    size_t count = by_kernel(task) ? probe_repeats(context, REPEATS) : REPEATS;
    return count > 1 ? count : REPEATS_SHORT;
}

static int compare_falling(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* What else the host does, and a link that wakes up, only slow copies down: the faster half tells
 * what the link can do. */
static void keep_faster_half(struct series *series)
{
    qsort(series->gbs, series->count, sizeof *series->gbs, compare_falling);
    series->count = (series->count + 1) / 2;
}

static int run_series(struct probe_context *context, const struct bandwidth_task *task,
                      struct candidates *candidates, struct series *out_series, struct err *err)
{
    double gbs[SHAPES_MAX][REPEATS];
    size_t best = 0, count = count_passes(context, task);
    for (size_t r = 0; r < count; r++) {
        for (size_t i = 0; i < candidates->count; i++) {
            int rc = bandwidth_time(context, task, &candidates->shapes[i], &candidates->totals[i],
                                    &gbs[i][r], err);
            if (rc)
                return rc;
        }
    }
    for (size_t i = 1; i < candidates->usual; i++)
        if (cpd_median(gbs[i], count) > BETTER * cpd_median(gbs[best], count))
            best = i;
    struct series series = {.shape = candidates->shapes[best], .count = count};
    for (size_t i = candidates->usual; i < candidates->count; i++) {
        if (cpd_median(gbs[i], count) <= BETTER * cpd_median(gbs[best], count))
            continue;
        series.best_gbs = cpd_median(gbs[i], count);
        series.best_shape = candidates->shapes[i];
    }
    for (size_t r = 0; r < count; r++)
        series.gbs[r] = gbs[best][r];
    series.slowest = cpd_quantile(series.gbs, count, 0);
    if (!by_kernel(task))
        keep_faster_half(&series);
    series.spread = repeats_half_range(series.gbs, series.count);
    series.scatter = series.spread / cpd_median(series.gbs, series.count);
    *out_series = series;
    return 0;
}

static bool agrees(const struct bandwidth_task *task, const struct series *series)
{
    return series->scatter <= (by_kernel(task) ? AGREEMENT : COPIES_AGREEMENT);
}

static int steadiest_series(struct probe_context *context, const struct bandwidth_task *task,
                            struct candidates *candidates, struct series *out_series,
                            struct err *err)
{
    const size_t attempts = by_kernel(task) ? ATTEMPTS : ATTEMPTS_COPIES;
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
    if (by_kernel(task))
        best.spread = fmax(best.spread, repeats_half_range(medians, made));
    *out_series = best;
    return 0;
}

static void describe(char method[METHOD_MAX], const struct bandwidth_task *task,
                     const struct bandwidth_shape *shape)
{
    if (!by_kernel(task))
        snprintf(method, METHOD_MAX, "copies of %.0f MiB, pinned memory, faster half",
                 (double)task->footprint_bytes / 0x1p20);
    else if (shape->blocks_per_sm)
        snprintf(method, METHOD_MAX, "stream: %u B, %u threads, %u blocks per SM",
                 shape->width_bytes, shape->threads, shape->blocks_per_sm);
    else
        snprintf(method, METHOD_MAX, "stream: %u B, %u threads, blocks chosen by the backend",
                 shape->width_bytes, shape->threads);
}

static int report(struct probe_context *context, const struct bandwidth_task *task,
                  const struct series *series, const char *surface, struct err *err)
{
    char method[METHOD_MAX], best[METHOD_MAX], reason[REASON_MAX];
    describe(method, task, &series->shape);
    describe(best, task, &series->best_shape);
    struct measure *m =
        repeats_add(context, task->metric, series->gbs, series->count, "GB/s", method);
    if (m) {
        m->spread = series->spread;
        m->confidence = repeats_confidence(m->value, m->spread);
    }
    bool slowed = m && series->slowest < (1 - SLOWED) * m->value;
    if (!m || (surface && facts_set_text(&m->notes, "surface", surface)) ||
        (slowed && facts_set_real(&m->notes, "slowest", series->slowest)) ||
        (series->best_gbs > 0 && (facts_set_real(&m->notes, "best", series->best_gbs) ||
                                  facts_set_text(&m->notes, "best_by", best))))
        return err_no_memory(err);
    if (agrees(task, series))
        return 0;
    snprintf(reason, sizeof reason, "%zu repetitions differ by %.0f %% at best", series->count,
             200 * series->scatter);
    m->confidence = 0.5;
    return measure_set_status(m, MEASURE_NOISY, reason) ? err_no_memory(err) : 0;
}

static int collect_candidates(struct probe_context *context, const struct bandwidth_task *task,
                              struct candidates *candidates, struct strbuf *surface,
                              struct err *err)
{
    for (size_t i = 0; i < USUAL_COUNT; i++)
        if (bandwidth_allows(context, usual_shapes[i].threads))
            candidates->shapes[candidates->count++] = usual_shapes[i];
    if (!by_kernel(task))
        candidates->count = 1; /* copies have no shape */
    candidates->usual = candidates->count;
    if (!by_kernel(task))
        return 0;
    if (context->options->profile < PROFILE_FULL)
        return 0;
    return bandwidth_surface(context, task, &candidates->shapes[candidates->count++], surface, err);
}

int bandwidth_report(struct probe_context *context, const struct bandwidth_task *task,
                     struct err *err)
{
    struct candidates candidates = {0};
    struct series series;
    struct strbuf surface = {0};
    struct err own = {0};
    int rc = collect_candidates(context, task, &candidates, &surface, &own);
    if (!rc)
        rc = steadiest_series(context, task, &candidates, &series, &own);
    if (rc)
        rc = repeats_end(context, task->metric, rc, &own, err);
    else
        rc = report(context, task, &series, surface.data, err);
    strbuf_fini(&surface);
    return rc;
}
