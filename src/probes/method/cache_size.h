/* Size and reach of an SM's cache. */
#ifndef GPUMEMTOPO_PROBES_METHOD_CACHE_SIZE_H
#define GPUMEMTOPO_PROBES_METHOD_CACHE_SIZE_H

#include "probes/probe.h"

/* Adds .size and .reach; see cache_report.h for the other attributes. */
int cache_size_report(struct probe_context *context, enum study_id id, struct err *err);

#endif
