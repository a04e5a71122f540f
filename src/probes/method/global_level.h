/* Stage STUDY_LEVEL of the caches of global memory: L1 data, texture and read-only. */
#ifndef GPUMEMTOPO_PROBES_METHOD_GLOBAL_LEVEL_H
#define GPUMEMTOPO_PROBES_METHOD_GLOBAL_LEVEL_H

#include "probes/probe.h"

/* Where loads past the cache (.cg) are hardly slower, the path is not cached before L2 (thesis
 * 4.2.1): !supported. -ENOTSUP where the GPU has no such path, -ENODATA where hits are not told
 * from misses. */
int global_level_measure(struct probe_context *context, struct study *study, struct err *err);

#endif
