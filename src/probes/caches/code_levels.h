/* Levels of caches of instructions, from how long straight code of rising length takes. */
#ifndef GPUMEMTOPO_PROBES_CACHES_CODE_LEVELS_H
#define GPUMEMTOPO_PROBES_CACHES_CODE_LEVELS_H

#include <stddef.h>
#include <stdint.h>

enum { CODE_LEVELS_MAX = 6, CODE_POINTS_MAX = 256 };

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

#endif
