/* Groups lines of L2 by how far they are from each SM: lines of one slice have the same profile.
 * The address hash need not be known. No device is needed. */
#ifndef GPUMEMTOPO_PROBES_METHOD_SLICE_GROUPS_H
#define GPUMEMTOPO_PROBES_METHOD_SLICE_GROUPS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

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

/* -ENOMEM. Released with slice_groups_fini. */
int slice_groups_find(const struct slice_profiles *profiles, struct slice_groups *out_groups,
                      struct err *err);
void slice_groups_fini(struct slice_groups *groups);

#endif
