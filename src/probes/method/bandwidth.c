/* Bandwidth of a memory: the best of several shapes of a stream, repeated. */
#include "probes/method/bandwidth.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cpd/cpd.h"
#include "probes/method/bandwidth_surface.h"
#include "probes/method/repeats.h"
#include "probes/probe.h"

enum {
    REPEATS = 5,       /* passes; each goes through all shapes, so repetitions lie apart */
    REPEATS_SHORT = 2, /* if there are several short rounds in a run */
    ATTEMPTS = 3,      /* series of passes before scattering ones are reported as noisy */
    ATTEMPTS_COPIES = 6,
    SHAPES_MAX = 4,   /* the usual ones and the best one of the surface */
    WIDTH_BYTES = 16, /* per access: reaches the limit on all GPUs of the thesis */
    METHOD_MAX = 120,
    REASON_MAX = 120,
};

/* Another shape than the first must be better by this factor, so that chance does not decide. */
static const double BETTER = 1.01;

/* Repetitions disagree if half range / median is above this. The faster copies must agree more
 * closely; otherwise they are not what the link can do. */
static const double AGREEMENT = 0.05, COPIES_AGREEMENT = 0.01;

/* If half of the accesses in flight still reach this share of the rate, more of them would not
 * help. */
static const double SATURATED = 0.6;

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
            if (i && !candidates->totals[i])
                candidates->totals[i] = candidates->totals[i - 1];
            int rc = bandwidth_time(context, task, &candidates->shapes[i], &candidates->totals[i],
                                    &gbs[i][r], err);
            if (rc)
                return rc;
        }
    }
    for (size_t i = 1; i < candidates->usual; i++)
        if (cpd_median(gbs[i], count) > BETTER * cpd_median(gbs[best], count))
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

static void describe(char method[METHOD_MAX], const struct bandwidth_task *task,
                     const struct bandwidth_shape *shape)
{
    if (!bandwidth_by_kernel(task))
        snprintf(method, METHOD_MAX, "copies of %.0f MiB, pinned memory, faster half",
                 (double)task->footprint_bytes / 0x1p20);
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
 * streams. That is so if half of the accesses give little more than half of the rate. */
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
    if (rc)
        return rc;
    series->cut = gbs < SATURATED * cpd_median(series->gbs, series->count);
    return 0;
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
        /* If the repetitions disagree, those that were left out count too. */
        double range = agrees(task, series) ? 0 : (m->value - series->slowest) / 2;
        m->spread = series->spread;
        m->confidence = repeats_confidence(m->value, fmax(m->spread, range));
        m->bound = series->cut ? MEASURE_AT_LEAST : MEASURE_EXACT;
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
    return measure_set_status(m, MEASURE_NOISY, reason) ? err_no_memory(err) : 0;
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
                              struct candidates *candidates, struct strbuf *surface,
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
    candidates->count = candidates->usual = USUAL_COUNT;
    for (size_t i = 0; i < USUAL_COUNT; i++)
        candidates->shapes[i] = usual_shape(context, task, &usual[i], &candidates->cut[i]);
    if (context->options->profile < PROFILE_FULL || context->repeating)
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

static int measure_series(struct probe_context *context, const struct bandwidth_task *task,
                          struct series *out_series, struct strbuf *surface, struct err *err)
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
    struct strbuf surface = {0};
    struct err own = {0};
    int rc = measure_series(context, task, &series, &surface, &own);
    if (rc) {
        rc = repeats_end(context, task->metric, rc, &own, err);
        goto out;
    }
    rc = report(context, task, &series, surface.data, err);
    if (rc)
        goto out;
    keep_choice(context, task, &series);
out:
    strbuf_fini(&surface);
    return rc;
}
