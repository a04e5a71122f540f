/* The attributes of an SM's cache on any path: what the probes of l1_data, texture and read_only
 * share. */
#ifndef GPUMEMTOPO_PROBES_METHOD_CACHE_REPORT_H
#define GPUMEMTOPO_PROBES_METHOD_CACHE_REPORT_H

#include "probes/probe.h"

/* Each adds its metrics to the context's measures; unsupported if the path is not cached. In a
 * further round only judged metrics are measured, with as little work as confirms them. */
int cache_report_line(struct probe_context *context, enum study_id id,
                      struct err *err); /* .fetch, .line */
int cache_report_latency(struct probe_context *context, enum study_id id,
                         struct err *err); /* .latency, .miss_penalty */

/* "memory.attribute" */
enum { CACHE_METRIC_MAX = 64 };
const char *cache_metric(char buffer[CACHE_METRIC_MAX], const char *memory, const char *attribute);

int cache_report_missing(struct probe_context *context, const char *memory, const char *attribute,
                         enum measure_status status, const char *reason, struct err *err);

/* Reports all of the NULL-terminated attributes as unsupported. */
int cache_report_unsupported(struct probe_context *context, const char *memory,
                             const char *const *attributes, const struct study *study,
                             struct err *err);

#endif
