/* The attributes of an SM's cache, whatever path leads to it: what the probes of l1_data, texture
 * and read_only have in common. */
#ifndef GPUMEMTOPO_PROBES_CACHE_H
#define GPUMEMTOPO_PROBES_CACHE_H

#include "probes/probe.h"

/* Each adds its metrics to the context's measures,
 * as unsupported where the path is not cached. */
int cache_report_line(struct probe_context *context, enum study_id id,
                      struct err *err); /* .fetch, .line */
int cache_report_size(struct probe_context *context, enum study_id id,
                      struct err *err); /* .size, .reach */
int cache_report_latency(struct probe_context *context, enum study_id id,
                         struct err *err); /* .latency */

#endif
