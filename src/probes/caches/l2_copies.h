/* The parts of an L2 whose near part keeps copies of far lines. */
#ifndef GPUMEMTOPO_PROBES_CACHES_L2_COPIES_H
#define GPUMEMTOPO_PROBES_CACHES_L2_COPIES_H

#include "probes/caches/l2_parts.h"

/* near: the mean near hit; near_width: the range of 90 % of near hits. out_parts must be empty. */
int l2_look_for_copies(struct probe_context *context, double near, double near_width,
                       struct l2_parts *out_parts, struct err *err);

#endif
