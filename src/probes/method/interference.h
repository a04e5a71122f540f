/* Does spreading jobs over all SMs change what is measured? SMs may share more than L2. */
#ifndef GPUMEMTOPO_PROBES_METHOD_INTERFERENCE_H
#define GPUMEMTOPO_PROBES_METHOD_INTERFERENCE_H

#include "probes/probe.h"

/* Finds at_once: sizes measured on all SMs at once must look as they do alone. */
int interference_check(struct probe_context *context, struct study *study, struct err *err);

#endif
