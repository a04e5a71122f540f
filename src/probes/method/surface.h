/* Surfaces of bandwidth: curves of one variable, one curve for each value of a second one. */
#ifndef GPUMEMTOPO_PROBES_METHOD_SURFACE_H
#define GPUMEMTOPO_PROBES_METHOD_SURFACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "device/device.h"
#include "inventory/surface_curves.h"

struct probe_context;

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

/* Measures every point SURFACE_REPEATS times and takes the median. -ENOTSUP if there is no point.
 */
int surface_measure(struct probe_context *context, const struct surface *surface,
                    struct surface_measured *out_measured, struct err *err);

/* The highest rate of a curve, and where 90 % of it are reached first, interpolated. */
struct surface_knee {
    double saturated, spread, at;
    bool rising; /* only the last points reach it: more would be reached further on */
};

/* False if the curve has fewer than two points. */
bool surface_knee_of(const struct surface_measured *measured, size_t series,
                     struct surface_knee *out_knee);

#endif
