/* Whether L2 prefetches from main memory what follows in ascending order. */
#ifndef GPUMEMTOPO_PROBES_L2_L2_PREFETCH_H
#define GPUMEMTOPO_PROBES_L2_L2_PREFETCH_H

#include "probes/probe.h"

enum l2_prefetch_kind {
    L2_PREFETCH_NONE,
    L2_PREFETCH_FOUND,
    L2_PREFETCH_BEYOND,    /* no miss after it began: ahead_bytes is the least that it can be */
    L2_PREFETCH_IRREGULAR, /* loads hit, but the misses between them are not evenly apart */
};
struct l2_prefetch {
    enum l2_prefetch_kind kind;
    uint64_t ahead_bytes;     /* that a miss brings beyond its own fetch unit */
    uint64_t from_bytes;      /* loaded in order before the first load that hits */
    uint64_t footprint_bytes; /* loaded in order */
    double hit_share;         /* of all first loads */
    double agreement;         /* share of the distances between misses that say the same; NONE: of
                               * the loads that missed */
    uint32_t n;               /* loads */
};

/* After the stage L2_FETCH. */
int l2_measure_prefetch(struct probe_context *context, const struct l2_study *l2,
                        struct l2_prefetch *out_prefetch, struct err *err);

#endif
