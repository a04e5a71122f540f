/* The analysis of the map of the die: means over both sides of it, and lines of L2 grouped by
 * slice. No device is needed. */
#ifndef GPUMEMTOPO_PROBES_MAPS_DIE_MAP_H
#define GPUMEMTOPO_PROBES_MAPS_DIE_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* cycles: by SM, then by line. out_means: per SM. out_error: standard error of one of them, as far
 * as two halves of the lines show it. */
void die_sides_means(const double *cycles, size_t sms, size_t lines, double *out_means,
                     double *out_error);

enum { SLICE_GROUPS_MAX = 128 };

/* Latencies of `lines` lines from `sms` SMs; those of an SM are consecutive. */
struct slice_profiles {
    const double *cycles;
    size_t sms, lines;
    double noise_cycles; /* standard deviation of one of them */
};

struct slice_groups {
    size_t count;     /* SLICE_GROUPS_MAX: there may be more */
    uint8_t *of_line; /* group of each line */
    double *cycles;   /* by group, then by SM: mean over its lines */
    size_t sizes[SLICE_GROUPS_MAX];
};

/* Released with slice_groups_fini. */
void slice_groups_find(const struct slice_profiles *profiles, struct slice_groups *out_groups);

void slice_groups_fini(struct slice_groups *groups);

#endif
