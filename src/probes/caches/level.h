/* Hit and miss latency of a cache and the threshold between them: stage STUDY_LEVEL. */
#ifndef GPUMEMTOPO_PROBES_CACHES_LEVEL_H
#define GPUMEMTOPO_PROBES_CACHES_LEVEL_H

#include "probes/method/pool.h"
#include "probes/probe.h"

/* A reference is taken on this many SMs, evenly spread, or on all if there are fewer. */
enum { LEVEL_SMS = 8 };

size_t level_sm_count(const struct probe_context *context, size_t most);

int32_t level_sm(const struct probe_context *context, size_t number, size_t count);

/* Sets the study's latencies, scatter and threshold from loads of both kinds. */
void level_settle(struct study *study, const struct pool *hits, const struct pool *misses);

/* -ENODATA if too many loads would be misjudged to conclude anything from single ones. */
int level_check(const struct study *study, struct err *err);

/* !supported if loads past the cache (.cg) are hardly slower: then the path is not cached before L2
 * (thesis 4.2.1). -ENOTSUP if the GPU has no such path, -ENODATA if hits cannot be told from
 * misses. */
int level_measure_global(struct probe_context *context, struct study *study, struct err *err);

/* Measures constant L1 and, together with it, L1.5. */
int level_measure_constant(struct probe_context *context, struct err *err);

/* Adds the load with which a job in constant memory begins: the first one of an SM in a launch
 * takes longer, whatever it loads. */
void level_prime_constant(const struct probe_context *context, struct device_job *job,
                          uint32_t agent);

#endif
