/* The parts of an L2 that keeps no copies: every line has one home. */
#ifndef GPUMEMTOPO_PROBES_L2_L2_HOMES_H
#define GPUMEMTOPO_PROBES_L2_L2_HOMES_H

#include "probes/l2/l2_parts.h"

/* near: the mean near hit. out_parts must be empty. */
int l2_look_for_homes(const struct l2_hits *hits, double near, struct l2_parts *out_parts,
                      struct err *err);

#endif
