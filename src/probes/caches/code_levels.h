/* Levels of caches of instructions, from how long straight code of rising length takes. */
#ifndef GPUMEMTOPO_PROBES_CACHES_CODE_LEVELS_H
#define GPUMEMTOPO_PROBES_CACHES_CODE_LEVELS_H

#include <stddef.h>
#include <stdint.h>

enum {
    CODE_LEVELS_MAX = 6,
    CODE_POINTS_MAX = 256,
    CODE_ACROSS = 3, /* costs of code are found across so many lengths */
};

/* Cycles of one pass over so many instructions, by rising length. */
struct code_curve {
    uint32_t lengths[CODE_POINTS_MAX];
    double cycles[CODE_POINTS_MAX];
    size_t count;
};

struct code_level {
    double cycles;     /* of one more instruction, in code that this level holds */
    double holds;      /* instructions; the last level: 0, not known */
    size_t first, end; /* points that lie in the level, behind the transition into it */
};

/* The nearest first. The last one holds all code that is longer than what the others hold. */
struct code_levels {
    struct code_level levels[CODE_LEVELS_MAX];
    size_t count;
};

/* count 0: the curve has no level part. */
void code_levels_find(const struct code_curve *curve, struct code_levels *out_levels);

/* Shares of what is replaced, by rising code. From `low` to `high` they rise evenly; what else is
 * in some sets may replace a little before. */
struct code_rise {
    const double *at, *shares;
    size_t count;
    double low, high;
};

/* The first point from which on all are above `low`; `count` if there is none. */
size_t code_rise_first(const struct code_rise *rise);

/* Where the line through the rise begins. If it has too few points: before the first one. NAN if
 * that is the first of all, or if the line begins long before it: then it is no rise of one level.
 * out_error: the standard error, as far as the points scatter around the line, or how far the line
 * begins before the last point of which nothing is replaced, whichever is larger. */
double code_rise_begin(const struct code_rise *rise, double *out_error);

#endif
