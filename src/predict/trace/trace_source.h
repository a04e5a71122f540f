/* A trace as a launch that the model runs. */
#ifndef GPUMEMTOPO_PREDICT_TRACE_TRACE_SOURCE_H
#define GPUMEMTOPO_PREDICT_TRACE_TRACE_SOURCE_H

#include "predict/kernel.h"
#include "predict/trace/trace_read.h"

struct trace_source;

int trace_source_open(const char *path, struct trace_source **out_source, struct err *err);
void trace_source_close(struct trace_source *source); /* accepts NULL */

/* Makes a launch of it, from its first access on, as often as wanted: several threads may run it at
 * once. The launch is valid as long as the source. */
void trace_source_launch(struct trace_source *source, struct kernel_launch *out_launch);

const struct trace_head *trace_source_head(const struct trace_source *source);
const struct trace_totals *trace_source_totals(const struct trace_source *source);

#endif
