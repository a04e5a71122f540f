/* Bandwidth by one variable, a curve for each value of a second one, as stored with a figure. */
#ifndef GPUMEMTOPO_INVENTORY_SURFACE_CURVES_H
#define GPUMEMTOPO_INVENTORY_SURFACE_CURVES_H

#include <stdbool.h>
#include <stddef.h>

#include "schema/facts.h"

enum { SURFACE_CURVES_XS_MAX = 32, SURFACE_CURVES_MAX = 8, SURFACE_CURVES_NAME_MAX = 32 };

/* Of metrics that begin with this, the notes whose keys begin with this. */
#define SURFACE_CURVES_METRICS "surface."
#define SURFACE_CURVES_KEYS "curves_"

struct surface_curves {
    char axis[SURFACE_CURVES_NAME_MAX]; /* what is varied: "blocks" */
    double xs[SURFACE_CURVES_XS_MAX];   /* not falling */
    size_t x_count;
    char names[SURFACE_CURVES_MAX][SURFACE_CURVES_NAME_MAX]; /* "256 threads", "triad" */
    double gbs[SURFACE_CURVES_MAX][SURFACE_CURVES_XS_MAX];   /* NAN: not measured */
    size_t count;
};

/* As notes: curves_by (the axis), curves_at (its values), curves_of (names), and a list for each
 * curve, in the order of the names: curves_1, curves_2, ... */
void surface_curves_put(const struct surface_curves *curves, struct facts *out_notes);

/* Reads them; false if they are no curves. */
bool surface_curves_read(const struct facts *notes, struct surface_curves *out_curves);

#endif
