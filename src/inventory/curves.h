/* Curves as lists in the notes of a measure: of a sweep, of a sustained load, of latency under
 * load, of a surface. */
#ifndef GPUMEMTOPO_INVENTORY_CURVES_H
#define GPUMEMTOPO_INVENTORY_CURVES_H

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

/* Latency under load: of the measures that end with this; the key that only its curve has. */
#define LATENCY_CURVE_METRICS ".latency_loaded"
#define LATENCY_CURVE_KEY "curve_gbs"

enum { LATENCY_CURVE_POINTS_MAX = 32 };
struct latency_curve_point {
    double gbs;       /* that other SMs read */
    double cycles;    /* mean of a load */
    double spread;    /* half range of the repetitions of that mean */
    double deviation; /* standard deviation of single loads */
};
struct latency_curve {
    struct latency_curve_point points[LATENCY_CURVE_POINTS_MAX]; /* the first one without load */
    size_t count;
};

/* As notes: the lists curve_gbs, curve_cycles, curve_spread, curve_deviation. */
void latency_curve_put(const struct latency_curve *curve, struct facts *out_notes);

/* Reads them; false if they are not a curve. */
bool latency_curve_read(const struct facts *notes, struct latency_curve *out_curve);

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
