/* Steps of the latency of L2 over the array size. */
#ifndef GPUMEMTOPO_PROBES_CACHES_L2_STEP_H
#define GPUMEMTOPO_PROBES_CACHES_L2_STEP_H

#include "probes/probe.h"

/* Finds the step, and how certain it is. */
int l2_find_step(struct probe_context *context, const struct l2_study *l2, struct l2_step *out_step,
                 struct err *err);

/* Measures once more around a step that was found. */
int l2_confirm_step(struct probe_context *context, const struct l2_study *l2,
                    const struct l2_step *step, double *out_bytes, struct err *err);

#endif
