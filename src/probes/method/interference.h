/* Checks whether spreading jobs over all SMs changes what is measured: SMs may share more than
 * L2. */
#ifndef GPUMEMTOPO_PROBES_METHOD_INTERFERENCE_H
#define GPUMEMTOPO_PROBES_METHOD_INTERFERENCE_H

#include "probes/probe.h"

/* Sets at_once: with it, sizes measured on several SMs at once look as they do alone. */
int interference_check(struct probe_context *context, struct study *study, struct err *err);

/* Whether another SM finds lines in this cache that SM 0 loaded. Jobs of both that load the same
 * lines at once then spare each other misses, which interference_check does not see. */
int interference_shared(struct probe_context *context, const struct study *study, bool *out_shared,
                        struct err *err);

#endif
