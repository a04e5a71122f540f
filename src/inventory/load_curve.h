/* What is kept of a GPU's sustained load: how it began, and clock, power and temperatures over
 * time. Notes of a measure, and `load` of a GPU in the inventory. */
#ifndef GPUMEMTOPO_INVENTORY_LOAD_CURVE_H
#define GPUMEMTOPO_INVENTORY_LOAD_CURVE_H

#include <stdbool.h>
#include <stddef.h>

/* The measure with these notes. */
#define LOAD_CURVE_METRIC "load.clock.steady"

/* The notes. The last one is LOAD_CURVE_KEY. */
#define LOAD_CURVE_KEY "curve"
enum { LOAD_CURVE_KEYS = 4 };
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

/* Reads "s MHz W C C; 0.25 1980 690 45 50; ..."; false if the text is not a curve. */
bool load_curve_read(const char *text, struct load_curve *out_curve);

#endif
