/* Stage L2_LEVEL: latencies of near, far and missed loads, and how many parts L2 has. */
#ifndef GPUMEMTOPO_PROBES_L2_L2_LEVEL_H
#define GPUMEMTOPO_PROBES_L2_L2_LEVEL_H

#include "probes/probe.h"

int l2_measure_level(struct probe_context *context, struct l2_study *l2, struct err *err);

#endif
