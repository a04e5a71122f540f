/* The probe of surfaces: how bandwidth grows with what is in flight, and where that ends. One more
 * row of the table is one more surface. */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "cpd/cpd.h"
#include "device/device.h"
#include "inventory/curves.h"
#include "probes/method/repeats.h"
#include "probes/probe.h"

enum { SURFACE_XS_MAX = 18, SURFACE_SERIES_MAX = 4, SURFACE_REPEATS = 3 };

/* What is varied, and the unit of its values. */
enum surface_axis {
    SURFACE_BLOCKS,  /* of the launch, in eighths of the number of SMs; 0: a single block */
    SURFACE_THREADS, /* of a block */
    SURFACE_UNROLL,  /* accesses in flight per thread */
    SURFACE_KIB,     /* of one array */
    SURFACE_KIND,    /* enum device_stream_kind */
    SURFACE_AXIS_COUNT
};

enum surface_place { SURFACE_MAIN, SURFACE_L2, SURFACE_SHARED };

/* A row of the table. What is not varied is taken from `values`; 0 blocks there: as many as the SMs
 * hold. */
struct surface {
    const char *name; /* "copy_threads" */
    enum surface_place place;
    uint32_t width_bytes;
    uint32_t values[SURFACE_AXIS_COUNT];
    enum surface_axis x, series;
    uint32_t xs[SURFACE_XS_MAX], series_values[SURFACE_SERIES_MAX];
    size_t x_count, series_count;
    size_t reference; /* the series whose figures are reported; of kinds of streams all are */
};

/* The measured curves, and how far the repetitions of each point lie apart (half range, GB/s). */
struct surface_measured {
    struct surface_curves curves;
    double spread[SURFACE_SERIES_MAX][SURFACE_XS_MAX];
};

/* The highest rate of a curve, and where 90 % of it are reached first, interpolated. */
struct surface_knee {
    double saturated, spread, at;
    bool rising; /* the second half of the curve still rises: more may be reached further on */
};

enum {
    EIGHTHS = 8,
    BLOCKS_PER_SM_MAX = 32,
    /* Accesses of a thread, one after the other: about 0.1 ms if nothing else is slow. */
    GLOBAL_ROUNDS = 256,
    SHARED_ROUNDS = 4096,
    MAIN_FACTOR = 32, /* of L2: at most 3 % of the footprint can stay there */
    L2_DIVISOR = 4,
    SHARED_MIN_BYTES = 32 << 10,
    KIB = 1024,
    WARP_THREADS = 32,
};

static const uint64_t MAIN_MIN_BYTES = UINT64_C(64) << 20, SIZES_MIN_BYTES = UINT64_C(256) << 20;

/* The knee is where SATURATED of the highest rate is reached. The curve has levelled off if LEVEL
 * of it is reached in the first half: twice as much in flight adds little then. */
static const double SATURATED = 0.9, LEVEL = 0.97;

static const char *axis_name(enum surface_axis axis)
{
    static const char *const names[SURFACE_AXIS_COUNT] = {"blocks", "threads", "in flight", "KiB",
                                                          "kind"};
    return names[axis];
}

static uint32_t blocks_of(const struct device_limits *limits, const uint32_t *values, bool varied)
{
    uint32_t full = limits->threads_per_sm / values[SURFACE_THREADS];
    full = full > BLOCKS_PER_SM_MAX ? BLOCKS_PER_SM_MAX : full ? full : 1;
    uint32_t eighths = values[SURFACE_BLOCKS];
    if (!eighths)
        return varied ? 1 : full * limits->sm_count;
    return (eighths * limits->sm_count + EIGHTHS - 1) / EIGHTHS;
}

static uint64_t main_bytes(const struct device_limits *limits)
{
    uint64_t bytes = MAIN_FACTOR * limits->l2_reported_bytes;
    bytes = bytes < MAIN_MIN_BYTES ? MAIN_MIN_BYTES : bytes;
    return limits->global_bytes && bytes > limits->global_bytes ? limits->global_bytes : bytes;
}

/* The footprint is a multiple of what is in flight, so that no thread has a remainder. 0: it does
 * not fit. */
static uint64_t footprint_of(const struct device_limits *limits, const struct surface *surface,
                             const uint32_t *values, uint64_t in_flight)
{
    uint32_t arrays = device_stream_arrays((enum device_stream_kind)values[SURFACE_KIND]);
    uint64_t bytes = values[SURFACE_KIB]            ? (uint64_t)values[SURFACE_KIB] * KIB * arrays
                     : surface->place == SURFACE_L2 ? limits->l2_reported_bytes / L2_DIVISOR
                                                    : main_bytes(limits);
    if (limits->global_bytes && bytes > limits->global_bytes)
        return 0;
    return values[SURFACE_KIB] ? bytes : bytes / in_flight * in_flight;
}

static bool shape_shared(const struct device_limits *limits, struct device_stream *stream)
{
    uint64_t in_flight = (uint64_t)stream->threads * stream->unroll * stream->width_bytes;
    uint64_t bytes = (SHARED_MIN_BYTES + in_flight - 1) / in_flight * in_flight;
    stream->path = DEVICE_SHARED;
    stream->footprint_bytes = bytes;
    stream->total_bytes = in_flight * SHARED_ROUNDS * stream->blocks;
    return bytes <= limits->shared_array_bytes;
}

/* False for a point that this device cannot have. */
static bool shape(const struct device_limits *limits, const struct surface *surface,
                  const uint32_t *values, bool blocks_varied, struct device_stream *out_stream)
{
    enum device_stream_kind kind = (enum device_stream_kind)values[SURFACE_KIND];
    struct device_stream stream = {.kind = kind,
                                   .path = DEVICE_GLOBAL_CG,
                                   .width_bytes = surface->width_bytes,
                                   .threads = values[SURFACE_THREADS],
                                   .unroll = values[SURFACE_UNROLL],
                                   .blocks = blocks_of(limits, values, blocks_varied)};
    uint64_t in_flight = (uint64_t)stream.blocks * stream.threads * stream.unroll *
                         stream.width_bytes * device_stream_arrays(kind);
    if (surface->place == SURFACE_SHARED) {
        bool fits = shape_shared(limits, &stream);
        *out_stream = stream;
        return fits;
    }
    stream.footprint_bytes = footprint_of(limits, surface, values, in_flight);
    stream.total_bytes = in_flight * GLOBAL_ROUNDS;
    if (values[SURFACE_KIB])
        stream.total_bytes = SIZES_MIN_BYTES;
    if (stream.total_bytes > stream.footprint_bytes / 2 || values[SURFACE_KIB]) {
        uint64_t passes =
            stream.total_bytes / (stream.footprint_bytes ? stream.footprint_bytes : 1);
        stream.total_bytes = stream.footprint_bytes * (passes ? passes : 1);
    }
    *out_stream = stream;
    return stream.footprint_bytes > 0;
}

static int time_point(struct probe_context *context, const struct device_stream *stream,
                      double *out_gbs, double *out_spread, struct err *err)
{
    double gbs[SURFACE_REPEATS];
    for (size_t r = 0; r < SURFACE_REPEATS; r++) {
        struct device_stream_answer answer;
        int rc = device_stream(context->device, stream, &answer, err);
        if (rc)
            return rc;
        gbs[r] = (double)answer.bytes / (answer.elapsed_ns ? (double)answer.elapsed_ns : 1);
    }
    *out_gbs = cpd_median(gbs, SURFACE_REPEATS);
    *out_spread = repeats_half_range(gbs, SURFACE_REPEATS);
    return 0;
}

static int surface_measure_series(struct probe_context *context, const struct surface *surface,
                                  size_t series, struct surface_measured *measured, size_t *points,
                                  struct err *err)
{
    const struct device_limits *limits = device_limits(context->device);
    bool blocks_varied = surface->x == SURFACE_BLOCKS || surface->series == SURFACE_BLOCKS;
    uint32_t values[SURFACE_AXIS_COUNT];
    memcpy(values, surface->values, sizeof values);
    values[surface->series] = surface->series_values[series];
    for (size_t i = 0; i < surface->x_count; i++) {
        double *gbs = &measured->curves.gbs[series][i], *spread = &measured->spread[series][i];
        struct device_stream stream;
        *gbs = *spread = NAN;
        values[surface->x] = surface->xs[i];
        uint32_t warps = (values[SURFACE_THREADS] + WARP_THREADS - 1) / WARP_THREADS;
        if ((limits->warp_count && warps > limits->warp_count) ||
            !shape(limits, surface, values, blocks_varied, &stream))
            continue;
        int rc = time_point(context, &stream, gbs, spread, err);
        if (rc == -ENOTSUP)
            continue;
        if (rc)
            return rc;
        (*points)++;
    }
    return 0;
}

static uint32_t blocks_in_all(const struct device_limits *limits, uint32_t eighths)
{
    const uint32_t values[SURFACE_AXIS_COUNT] = {[SURFACE_BLOCKS] = eighths, [SURFACE_THREADS] = 1};
    return blocks_of(limits, values, true);
}

static void name_series(const struct device_limits *limits, const struct surface *surface,
                        size_t series, char name[SURFACE_CURVES_NAME_MAX])
{
    static const char *const kinds[DEVICE_STREAM_KIND_COUNT] = {
        [DEVICE_STREAM_READ] = "read", [DEVICE_STREAM_WRITE] = "write",
        [DEVICE_STREAM_COPY] = "copy", [DEVICE_STREAM_MUL] = "mul",
        [DEVICE_STREAM_ADD] = "add",   [DEVICE_STREAM_TRIAD] = "triad"};
    uint32_t value = surface->series_values[series];
    if (surface->series == SURFACE_BLOCKS)
        value = blocks_in_all(limits, value);
    if (surface->series == SURFACE_KIND)
        snprintf(name, SURFACE_CURVES_NAME_MAX, "%s", kinds[value]);
    else
        snprintf(name, SURFACE_CURVES_NAME_MAX, "%u %s", value, axis_name(surface->series));
}

/* Measures every point SURFACE_REPEATS times and takes the median. -ENOTSUP if there is no point.
 */
static int surface_measure(struct probe_context *context, const struct surface *surface,
                           struct surface_measured *out_measured, struct err *err)
{
    const struct device_limits *limits = device_limits(context->device);
    struct surface_curves *curves = &out_measured->curves;
    size_t points = 0;
    *out_measured = (struct surface_measured){0};
    curves->x_count = surface->x_count;
    curves->count = surface->series_count;
    snprintf(curves->axis, sizeof curves->axis, "%s", axis_name(surface->x));
    for (size_t i = 0; i < surface->x_count; i++)
        curves->xs[i] =
            surface->x == SURFACE_BLOCKS ? blocks_in_all(limits, surface->xs[i]) : surface->xs[i];
    for (size_t s = 0; s < surface->series_count; s++) {
        name_series(limits, surface, s, curves->names[s]);
        int rc = surface_measure_series(context, surface, s, out_measured, &points, err);
        if (rc)
            return rc;
    }
    return points ? 0 : err_set(err, -ENOTSUP, "this device has no such streams");
}

/* False if the curve has fewer than two points. */
static bool surface_knee_of(const struct surface_measured *measured, size_t series,
                            struct surface_knee *out_knee)
{
    const struct surface_curves *curves = &measured->curves;
    const double *xs = curves->xs, *gbs = curves->gbs[series];
    struct surface_knee knee = {.at = NAN};
    size_t points = 0, last = 0;
    for (size_t i = 0; i < curves->x_count; i++) {
        if (isnan(gbs[i]))
            continue;
        last = i;
        points++;
        if (gbs[i] <= knee.saturated)
            continue;
        knee.saturated = gbs[i];
        knee.spread = measured->spread[series][i];
    }
    if (points < 2)
        return false;
    double goal = SATURATED * knee.saturated, x = NAN, y = NAN;
    for (size_t i = 0; isnan(knee.at); i++) {
        if (isnan(gbs[i]))
            continue;
        if (gbs[i] >= goal)
            knee.at = isnan(x) ? xs[i] : x + (xs[i] - x) * (goal - y) / (gbs[i] - y);
        x = xs[i];
        y = gbs[i];
    }
    knee.rising = true;
    for (size_t i = 0; i < last && xs[i] <= xs[last] / 2; i++)
        knee.rising = knee.rising && !(gbs[i] >= LEVEL * knee.saturated);
    *out_knee = knee;
    return true;
}

enum { METRIC_MAX_BYTES = 64, BLOCK_COUNT = 17 };

/* Up to two blocks per SM: the ninth eighth shows what one more block than SMs costs. */
#define BLOCK_EIGHTHS                                                                              \
    {                                                                                              \
        0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16                                   \
    }

#define THREADS_OF_BLOCK                                                                           \
    {                                                                                              \
        32, 64, 128, 256, 512, 1024                                                                \
    }

#define STREAM_KINDS                                                                               \
    {                                                                                              \
        DEVICE_STREAM_COPY, DEVICE_STREAM_MUL, DEVICE_STREAM_ADD, DEVICE_STREAM_TRIAD              \
    }

static const struct surface surfaces[] = {
    /* [M] figure 12 */
    {.name = "copy_threads",
     .place = SURFACE_MAIN,
     .width_bytes = 16,
     .values = {[SURFACE_KIND] = DEVICE_STREAM_COPY, [SURFACE_UNROLL] = 4},
     .x = SURFACE_BLOCKS,
     .xs = BLOCK_EIGHTHS,
     .x_count = BLOCK_COUNT,
     .series = SURFACE_THREADS,
     .series_values = {128, 256, 512, 1024},
     .series_count = 4,
     .reference = 2},
    {.name = "copy_in_flight",
     .place = SURFACE_MAIN,
     .width_bytes = 4,
     .values = {[SURFACE_KIND] = DEVICE_STREAM_COPY, [SURFACE_THREADS] = 1024},
     .x = SURFACE_BLOCKS,
     .xs = BLOCK_EIGHTHS,
     .x_count = BLOCK_COUNT,
     .series = SURFACE_UNROLL,
     .series_values = {1, 2, 4, 8},
     .series_count = 4,
     .reference = 2},
    /* [Q] figures 3 and 4 */
    {.name = "l2_threads",
     .place = SURFACE_L2,
     .width_bytes = 16,
     .values = {[SURFACE_KIND] = DEVICE_STREAM_READ, [SURFACE_UNROLL] = 4},
     .x = SURFACE_BLOCKS,
     .xs = BLOCK_EIGHTHS,
     .x_count = BLOCK_COUNT,
     .series = SURFACE_THREADS,
     .series_values = {128, 256, 512},
     .series_count = 3,
     .reference = 2},
    {.name = "shared_blocks",
     .place = SURFACE_SHARED,
     .width_bytes = 16,
     .values = {[SURFACE_KIND] = DEVICE_STREAM_READ, [SURFACE_UNROLL] = 4},
     .x = SURFACE_BLOCKS,
     .xs = BLOCK_EIGHTHS,
     .x_count = BLOCK_COUNT,
     .series = SURFACE_THREADS,
     .series_values = {128, 256, 512},
     .series_count = 3,
     .reference = 2},
    /* [M] figures 15 and 16 */
    {.name = "shared_threads",
     .place = SURFACE_SHARED,
     .width_bytes = 16,
     .values = {[SURFACE_KIND] = DEVICE_STREAM_READ, [SURFACE_UNROLL] = 4},
     .x = SURFACE_THREADS,
     .xs = THREADS_OF_BLOCK,
     .x_count = 6,
     .series = SURFACE_BLOCKS,
     .series_values = {8, 16, 32},
     .series_count = 3},
    {.name = "shared_in_flight",
     .place = SURFACE_SHARED,
     .width_bytes = 16,
     .values = {[SURFACE_KIND] = DEVICE_STREAM_READ, [SURFACE_BLOCKS] = 8},
     .x = SURFACE_THREADS,
     .xs = THREADS_OF_BLOCK,
     .x_count = 6,
     .series = SURFACE_UNROLL,
     .series_values = {1, 2, 4, 8},
     .series_count = 4,
     .reference = 2},
    /* [Q] figure 7 */
    {.name = "stream_size",
     .place = SURFACE_MAIN,
     .width_bytes = 16,
     .values = {[SURFACE_THREADS] = 512, [SURFACE_UNROLL] = 2},
     .x = SURFACE_KIB,
     .xs = {512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072, 262144, 524288},
     .x_count = 11,
     .series = SURFACE_KIND,
     .series_values = STREAM_KINDS,
     .series_count = 4},
    {.name = "stream_threads",
     .place = SURFACE_MAIN,
     .width_bytes = 16,
     .values = {[SURFACE_UNROLL] = 2},
     .x = SURFACE_THREADS,
     .xs = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024},
     .x_count = 11,
     .series = SURFACE_KIND,
     .series_values = STREAM_KINDS,
     .series_count = 4},
};

/* A knee is as certain as the rate that it leads to. */
static struct measure *surfaces_add_figure(struct probe_context *context, const char *name,
                                           double value, const char *unit,
                                           const struct surface_knee *knee)
{
    struct measure *m = measures_add(context->measures, name, value, unit,
                                     "streams of every shape, median of three");
    m->n = SURFACE_REPEATS;
    m->confidence = repeats_confidence(knee->saturated, knee->spread);
    m->bound = knee->rising ? MEASURE_AT_LEAST : MEASURE_EXACT;
    return m;
}

/* Where arrays grow, the last rate is that of main memory: the highest is that of a cache. */
static void report_sizes(struct probe_context *context, const char *prefix,
                         const struct surface_measured *measured, size_t series)
{
    char metric[METRIC_MAX_BYTES];
    const double *gbs = measured->curves.gbs[series];
    size_t i = measured->curves.x_count - 1;
    while (i > 0 && isnan(gbs[i]))
        i--;
    if (isnan(gbs[i]))
        return;
    const struct surface_knee last = {.saturated = gbs[i], .spread = measured->spread[series][i]};
    snprintf(metric, sizeof metric, "%s.largest", prefix);
    struct measure *m = surfaces_add_figure(context, metric, gbs[i], "GB/s", &last);
    m->spread = last.spread;
}

static void report_knee(struct probe_context *context, const char *prefix,
                        const struct surface_measured *measured, size_t series)
{
    char metric[METRIC_MAX_BYTES];
    struct surface_knee knee;
    if (!surface_knee_of(measured, series, &knee))
        return;
    snprintf(metric, sizeof metric, "%s.saturated", prefix);
    struct measure *m = surfaces_add_figure(context, metric, knee.saturated, "GB/s", &knee);
    m->spread = knee.spread;
    snprintf(metric, sizeof metric, "%s.knee", prefix);
    m = surfaces_add_figure(context, metric, knee.at, "", &knee);
    facts_set_text(&m->notes, "of", measured->curves.axis);
}

static void report_series(struct probe_context *context, const struct surface *surface,
                          const struct surface_measured *measured, size_t series)
{
    char prefix[METRIC_MAX_BYTES / 2];
    bool kinds = surface->series == SURFACE_KIND;
    snprintf(prefix, sizeof prefix, SURFACE_CURVES_METRICS "%s%s%s", surface->name,
             kinds ? "." : "", kinds ? measured->curves.names[series] : "");
    if (surface->x == SURFACE_KIB)
        report_sizes(context, prefix, measured, series);
    else
        report_knee(context, prefix, measured, series);
}

static void surfaces_report(struct probe_context *context, const struct surface *surface,
                            const struct surface_measured *measured)
{
    size_t first = context->measures->count;
    bool all = surface->series == SURFACE_KIND;
    for (size_t s = 0; s < surface->series_count; s++)
        if (all || s == surface->reference)
            report_series(context, surface, measured, s);
    if (first < context->measures->count)
        surface_curves_put(&measured->curves, &context->measures->items[first].notes);
}

static int surfaces_run(struct probe_context *context, struct err *err)
{
    uint32_t count = 0;
    if (!device_limits(context->device)->sm_count) {
        repeats_unsupported(context, "surface.count", "the number of SMs is not known");
        return 0;
    }
    for (size_t i = 0; i < COUNT_OF(surfaces); i++) {
        struct surface_measured measured;
        int rc = surface_measure(context, &surfaces[i], &measured, err);
        if (rc == -ENOTSUP)
            continue;
        if (rc)
            return rc;
        surfaces_report(context, &surfaces[i], &measured);
        count++;
    }
    measures_add(context->measures, "surface.count", count, "", "surfaces that were measured");
    return 0;
}

const struct probe probe_surfaces = {
    .description = {"surface", "bandwidth by blocks, threads, accesses in flight and size",
                    PROFILE_FULL},
    .metrics = {"surface.count", "surface.*"},
    .run = surfaces_run,
};
