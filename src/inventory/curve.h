/* A sweep as stored with a size: latency and share of misses by array size. */
#ifndef GPUMEMTOPO_INVENTORY_CURVE_H
#define GPUMEMTOPO_INVENTORY_CURVE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

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

/* As text for a note: "hit 29 miss 280; bytes cycles missed; 111360 29.1 0; ..." */
void curve_print(const struct curve *curve, struct strbuf *out_text);

/* Reads such a text; false if it is not a curve. */
bool curve_read(const char *text, struct curve *out_curve);

#endif
