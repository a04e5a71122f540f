/* Stage STUDY_LEVEL: what global_level.c and constant_level.c share. */
#ifndef GPUMEMTOPO_PROBES_METHOD_LEVEL_H
#define GPUMEMTOPO_PROBES_METHOD_LEVEL_H

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

#endif
