/* Bandwidth by one variable, a curve for each value of a second one, as stored with a figure. */
#ifndef GPUMEMTOPO_INVENTORY_SURFACE_CURVES_H
#define GPUMEMTOPO_INVENTORY_SURFACE_CURVES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

enum { SURFACE_CURVES_XS_MAX = 32, SURFACE_CURVES_MAX = 8, SURFACE_CURVES_NAME_MAX = 32 };

/* Of metrics that begin with this, the note with this key. */
#define SURFACE_CURVES_METRICS "surface."
#define SURFACE_CURVES_KEY "curves"

struct surface_curves {
    char axis[SURFACE_CURVES_NAME_MAX]; /* what is varied: "blocks" */
    double xs[SURFACE_CURVES_XS_MAX];   /* not falling */
    size_t x_count;
    char names[SURFACE_CURVES_MAX][SURFACE_CURVES_NAME_MAX]; /* "256 threads", "triad" */
    double gbs[SURFACE_CURVES_MAX][SURFACE_CURVES_XS_MAX];   /* NAN: not measured */
    size_t count;
};

/* As text: "GB/s by blocks: 1 17 33; 128 threads: 25 50 -; 256 threads: 50 100 190". */
void surface_curves_print(const struct surface_curves *curves, struct strbuf *out_text);

/* Reads such a text; false if it is none. */
bool surface_curves_read(const char *text, struct surface_curves *out_curves);

#endif
