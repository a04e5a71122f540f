/* Turns at the host link while it is measured, and what to report if a turn was not obtained. */
#ifndef GPUMEMTOPO_PROBES_METHOD_HOST_LINK_H
#define GPUMEMTOPO_PROBES_METHOD_HOST_LINK_H

#include "probes/probe.h"

/* Called around each stream or batch that uses the link. What was not obtained even once is kept in
 * context->link. */
void host_link_begin(struct probe_context *context);
void host_link_end(struct probe_context *context);

/* Marks the metric, if it exists, as noisy or adds a note, depending on context->link. 0 or
 * -ENOMEM. */
int host_link_remark(struct probe_context *context, const char *metric);

#endif
