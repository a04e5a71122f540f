/* Streams of every shape of a surface, each long enough to be timed well. */
#include "probes/method/surface.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cpd/cpd.h"
#include "probes/method/repeats.h"
#include "probes/probe.h"

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

/* A curve that rises in proportion to x until the end reaches 90 % at 0.9 of its last x. */
static const double SATURATED = 0.9, RISING = 0.85;

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

static int measure_series(struct probe_context *context, const struct surface *surface,
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

int surface_measure(struct probe_context *context, const struct surface *surface,
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
        int rc = measure_series(context, surface, s, out_measured, &points, err);
        if (rc)
            return rc;
    }
    return points ? 0 : err_set(err, -ENOTSUP, "this device has no such streams");
}

bool surface_knee_of(const struct surface_measured *measured, size_t series,
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
    knee.rising = knee.at > RISING * xs[last];
    *out_knee = knee;
    return true;
}
