/* What the probes of an SM's caches report with. */
#ifndef GPUMEMTOPO_PROBES_CACHES_CACHE_REPORT_H
#define GPUMEMTOPO_PROBES_CACHES_CACHE_REPORT_H

#include "probes/probe.h"

/* "memory.attribute" */
enum { CACHE_METRIC_MAX = 64 };

const char *cache_metric(char buffer[CACHE_METRIC_MAX], const char *memory, const char *attribute);

void cache_report_missing(struct probe_context *context, const char *memory, const char *attribute,
                          enum measure_status status, const char *reason);

/* Reports all of the NULL-terminated attributes as unsupported. */
void cache_report_unsupported(struct probe_context *context, const char *memory,
                              const char *const *attributes, const struct study *study);

#endif
