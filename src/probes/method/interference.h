/* Checks whether spreading jobs over all SMs changes what is measured: SMs may share more than
 * L2. */
#ifndef GPUMEMTOPO_PROBES_METHOD_INTERFERENCE_H
#define GPUMEMTOPO_PROBES_METHOD_INTERFERENCE_H

#include "probes/probe.h"

/* Sets at_once: with it, sizes measured on several SMs at once look as they do alone. */
int interference_check(struct probe_context *context, struct study *study, struct err *err);

#endif
