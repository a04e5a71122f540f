/* Turns at the host link while it is measured, and what to say when one was not got. */
#ifndef GPUMEMTOPO_PROBES_METHOD_HOST_LINK_H
#define GPUMEMTOPO_PROBES_METHOD_HOST_LINK_H

#include "probes/probe.h"

/* Around each stream or batch that uses the link. What was not got once is kept in context->link.
 */
void host_link_begin(struct probe_context *context);
void host_link_end(struct probe_context *context);

/* Marks the metric, where there is one, as noisy or with a note, as context->link has it. 0 or
 * -ENOMEM. */
int host_link_remark(struct probe_context *context, const char *metric);

#endif
