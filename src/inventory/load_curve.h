/* What is kept of a GPU's sustained load: how it began, and clock, power and temperatures over
 * time. Notes of a measure, and `load` of a GPU in the inventory. */
#ifndef GPUMEMTOPO_INVENTORY_LOAD_CURVE_H
#define GPUMEMTOPO_INVENTORY_LOAD_CURVE_H

#include <stdbool.h>
#include <stddef.h>

#include "schema/facts.h"

/* The measure with these notes. */
#define LOAD_CURVE_METRIC "load.clock.steady"

/* The notes. The last ones are the columns of the curve: lists. */
enum { LOAD_CURVE_KEYS = 8 };
extern const char *const load_curve_keys[LOAD_CURVE_KEYS];

enum { LOAD_CURVE_POINTS_MAX = 200 };
enum load_curve_column {
    LOAD_CURVE_S,
    LOAD_CURVE_MHZ,
    LOAD_CURVE_W,
    LOAD_CURVE_C,
    LOAD_CURVE_MEMORY_C,
    LOAD_CURVE_COLUMNS
};
struct load_curve {
    double points[LOAD_CURVE_POINTS_MAX][LOAD_CURVE_COLUMNS]; /* rising in time; 0: not known */
    size_t count;
};

/* Whether the note is a column of the curve. */
bool load_curve_has(const char *key);

/* Sets the notes of the curve. */
void load_curve_put(const struct load_curve *curve, struct facts *out_notes);

/* Reads them; false if they are not a curve. */
bool load_curve_read(const struct facts *notes, struct load_curve *out_curve);

#endif
