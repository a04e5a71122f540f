/* How fast a kernel can be at best, by a GPU's own bandwidths and latencies. */
#ifndef GPUMEMTOPO_PREDICT_BOUND_H
#define GPUMEMTOPO_PREDICT_BOUND_H

#include "predict/machine.h"
#include "predict/model.h"

enum bound_limit {
    BOUND_L1,
    BOUND_L2_READ,
    BOUND_L2_WRITE,
    BOUND_MAIN_READ,
    BOUND_MAIN_WRITE,
    BOUND_LATENCY,
    BOUND_LIMITS
};

/* Seconds that each part needs at least; NaN: the inventory lacks its figure. The kernel needs at
 * least the longest of them. Arithmetic is not modelled. */
struct bound {
    double seconds[BOUND_LIMITS];
    double longest;         /* NaN: all figures are lacking */
    enum bound_limit limit; /* which one that is; BOUND_LIMITS: unknown */
};

struct bound bound_of(const struct model_counts *counts, const struct machine *machine);
const char *bound_limit_name(enum bound_limit limit); /* also of BOUND_LIMITS */

#endif
