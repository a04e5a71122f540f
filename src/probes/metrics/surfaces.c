/* The probe of surfaces: how bandwidth grows with what is in flight, and where that ends. One more
 * row is one more surface. */
#include "probes/method/surface.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "base/mem.h"
#include "probes/method/repeats.h"

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

static int note_curves(struct measure *m, const struct surface_curves *curves)
{
    struct strbuf text = {0};
    surface_curves_print(curves, &text);
    int rc = text.failed ? -ENOMEM : facts_set_text(&m->notes, SURFACE_CURVES_KEY, text.data);
    strbuf_fini(&text);
    return rc;
}

static struct measure *add_figure(struct probe_context *context, const char *name, double value,
                                  const char *unit, const struct surface_knee *knee)
{
    struct measure *m = measures_add(context->measures, name, value, unit,
                                     "streams of every shape, median of three");
    if (!m)
        return NULL;
    m->n = SURFACE_REPEATS;
    m->confidence = NAN;
    m->bound = knee->rising ? MEASURE_AT_LEAST : MEASURE_EXACT;
    return m;
}

/* Where arrays grow, the last rate is that of main memory: the highest is that of a cache. */
static int report_sizes(struct probe_context *context, const char *prefix,
                        const struct surface_measured *measured, size_t series, struct err *err)
{
    char metric[METRIC_MAX_BYTES];
    const struct surface_knee last = {0};
    const double *gbs = measured->curves.gbs[series];
    size_t i = measured->curves.x_count - 1;
    while (i > 0 && isnan(gbs[i]))
        i--;
    if (isnan(gbs[i]))
        return 0;
    snprintf(metric, sizeof metric, "%s.largest", prefix);
    struct measure *m = add_figure(context, metric, gbs[i], "GB/s", &last);
    if (m)
        m->spread = measured->spread[series][i];
    return m ? 0 : err_no_memory(err);
}

static int report_knee(struct probe_context *context, const char *prefix,
                       const struct surface_measured *measured, size_t series, struct err *err)
{
    char metric[METRIC_MAX_BYTES];
    struct surface_knee knee;
    if (!surface_knee_of(measured, series, &knee))
        return 0;
    snprintf(metric, sizeof metric, "%s.saturated", prefix);
    struct measure *m = add_figure(context, metric, knee.saturated, "GB/s", &knee);
    if (!m)
        return err_no_memory(err);
    m->spread = knee.spread;
    snprintf(metric, sizeof metric, "%s.knee", prefix);
    m = add_figure(context, metric, knee.at, "", &knee);
    return m && !facts_set_text(&m->notes, "of", measured->curves.axis) ? 0 : err_no_memory(err);
}

static int report_series(struct probe_context *context, const struct surface *surface,
                         const struct surface_measured *measured, size_t series, struct err *err)
{
    char prefix[METRIC_MAX_BYTES / 2];
    bool kinds = surface->series == SURFACE_KIND;
    snprintf(prefix, sizeof prefix, SURFACE_CURVES_METRICS "%s%s%s", surface->name,
             kinds ? "." : "", kinds ? measured->curves.names[series] : "");
    return surface->x == SURFACE_KIB ? report_sizes(context, prefix, measured, series, err)
                                     : report_knee(context, prefix, measured, series, err);
}

static int report(struct probe_context *context, const struct surface *surface,
                  const struct surface_measured *measured, struct err *err)
{
    size_t first = context->measures->count;
    bool all = surface->series == SURFACE_KIND;
    for (size_t s = 0; s < surface->series_count; s++) {
        int rc =
            all || s == surface->reference ? report_series(context, surface, measured, s, err) : 0;
        if (rc)
            return rc;
    }
    if (first == context->measures->count)
        return 0;
    return note_curves(&context->measures->items[first], &measured->curves) ? err_no_memory(err)
                                                                            : 0;
}

static int run(struct probe_context *context, struct err *err)
{
    uint32_t count = 0;
    if (!device_limits(context->device)->sm_count)
        return repeats_unsupported(context, "surface.count", "the number of SMs is not known", err);
    for (size_t i = 0; i < COUNT_OF(surfaces); i++) {
        struct surface_measured measured;
        int rc = surface_measure(context, &surfaces[i], &measured, err);
        if (rc == -ENOTSUP)
            continue;
        if (rc)
            return rc;
        rc = report(context, &surfaces[i], &measured, err);
        if (rc)
            return rc;
        count++;
    }
    struct measure *m =
        measures_add(context->measures, "surface.count", count, "", "surfaces that were measured");
    if (!m)
        return err_no_memory(err);
    m->confidence = NAN;
    return 0;
}

const struct probe probe_surfaces = {
    .description = {"surface", "bandwidth by blocks, threads, accesses in flight and size",
                    PROFILE_FULL},
    .metrics = {"surface.count", "surface.*"},
    .run = run,
};
