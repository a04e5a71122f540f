/* Stage STUDY_LEVEL of the caches of global memory: L1 data, texture and read-only. */
#ifndef GPUMEMTOPO_PROBES_METHOD_GLOBAL_LEVEL_H
#define GPUMEMTOPO_PROBES_METHOD_GLOBAL_LEVEL_H

#include "probes/probe.h"

/* !supported if loads past the cache (.cg) are hardly slower: then the path is not cached before L2
 * (thesis 4.2.1). -ENOTSUP if the GPU has no such path, -ENODATA if hits cannot be told from
 * misses. */
int global_level_measure(struct probe_context *context, struct study *study, struct err *err);

#endif
