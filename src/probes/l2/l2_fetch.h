/* The fetch unit of L2: what a miss brings from main memory. */
#ifndef GPUMEMTOPO_PROBES_L2_L2_FETCH_H
#define GPUMEMTOPO_PROBES_L2_L2_FETCH_H

#include "probes/probe.h"

/* Stage L2_FETCH. */
int l2_measure_fetch(struct probe_context *context, struct l2_study *l2, struct err *err);

#endif
