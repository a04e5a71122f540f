/* Filling L2 with an array and timing a sample of it. */
#ifndef GPUMEMTOPO_PROBES_L2_L2_LOOK_H
#define GPUMEMTOPO_PROBES_L2_L2_LOOK_H

#include "probes/probe.h"

/* "Fill L2 with an array by all warps of an SM, then time a sample of it by one thread", for up to
 * three sizes in one job: the array grows from one to the next. The sample is spread evenly over
 * the first `window` share of the smallest: what was filled first is evicted first. */
enum { L2_LOOK_SIZES = 3 };
struct l2_look {
    uint64_t sizes[L2_LOOK_SIZES]; /* bytes, rising */
    size_t count;
    uint64_t stride_bytes;
    int32_t sm;     /* that fills and times */
    double window;  /* 0..1 */
    uint32_t part;  /* one job times at most 1 / part of the elements, since misses evict */
    uint32_t loads; /* of the sample, about */
};
struct l2_shares {
    double beyond_near; /* of the loads: served by the far part or by main memory */
    double missed;      /* served by main memory */
    double far_missed;  /* served by main memory behind the far part; without copies: missed */
    double resident;    /* held by what is asked first: the near part, or all of L2 */
    double error;       /* the standard error of that */
    uint32_t n;
};

/* Shares corrected for misjudged latencies, 0..1; out_shares: one per size. */
int l2_look(struct probe_context *context, const struct l2_study *l2, const struct l2_look *look,
            struct l2_shares *out_shares, struct err *err);

#endif
