/* Two levels told apart by the latency of a load, from the distributions of both. */
#ifndef GPUMEMTOPO_PROBES_METHOD_CONTRAST_H
#define GPUMEMTOPO_PROBES_METHOD_CONTRAST_H

#include "probes/method/pool.h"

struct contrast {
    double threshold;   /* cycles, timer included: a load above it is one of the slower level */
    double stray_share; /* loads of the faster level above it */
    double slip_share;  /* loads of the slower level at most there */
};

/* The threshold that misjudges the least of both; of equal ones the nearest to the middle between
 * their centres. */
struct contrast contrast_between(const struct pool *faster, const struct pool *slower);

#endif
