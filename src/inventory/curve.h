/* A sweep as stored with a size: latency and share of misses by array size. */
#ifndef GPUMEMTOPO_INVENTORY_CURVE_H
#define GPUMEMTOPO_INVENTORY_CURVE_H

#include <stdbool.h>
#include <stddef.h>

#include "schema/facts.h"

enum { CURVE_POINTS_MAX = 100 };

struct curve_point {
    double bytes;
    double cycles; /* mean of a load, without the timer overhead */
    double missed; /* share of the loads */
};

struct curve {
    struct curve_point points[CURVE_POINTS_MAX]; /* rising in size */
    size_t count;
    double hit, far, miss; /* cycles of the levels; far 0: there is none */
};

/* As notes: the lists curve_bytes, curve_cycles, curve_missed, and curve_levels: hit, far, miss. */
void curve_put(const struct curve *curve, struct facts *out_notes);

/* Reads them; false if they are not a curve. */
bool curve_read(const struct facts *notes, struct curve *out_curve);

#endif
