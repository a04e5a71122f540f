/* Tells two levels apart by the latency of a load, from the distributions of both. */
#ifndef GPUMEMTOPO_PROBES_METHOD_CONTRAST_H
#define GPUMEMTOPO_PROBES_METHOD_CONTRAST_H

#include "probes/method/pool.h"

struct contrast {
    double threshold;   /* cycles, timer included: a load above it belongs to the slower level */
    double stray_share; /* share of loads of the faster level above it */
    double slip_share;  /* share of loads of the slower level not above it */
};

/* The threshold that misjudges the fewest loads of both. Among equal ones, the nearest to the
 * middle between the two centres. */
struct contrast contrast_between(const struct pool *faster, const struct pool *slower);

#endif
