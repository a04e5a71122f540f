/* Stage STUDY_LEVEL of the constant caches. */
#ifndef GPUMEMTOPO_PROBES_METHOD_CONSTANT_LEVEL_H
#define GPUMEMTOPO_PROBES_METHOD_CONSTANT_LEVEL_H

#include "probes/probe.h"

/* Measures constant L1 and, together with it, L1.5. */
int constant_level_measure(struct probe_context *context, struct err *err);

/* Adds the load with which a job in constant memory begins: the first one of an SM in a launch
 * takes longer, whatever it loads. */
void constant_level_prime(const struct probe_context *context, struct device_job *job,
                          uint32_t agent);

#endif
