/* Writes a kernel of the table as a trace. */
#ifndef GPUMEMTOPO_PREDICT_TRACE_TRACE_MAKE_H
#define GPUMEMTOPO_PREDICT_TRACE_TRACE_MAKE_H

#include "predict/kernel.h"
#include "predict/trace/head.h"

/* page_bytes: 0 for TRACE_PAGE_BYTES. */
int trace_make(const struct kernel_launch *launch, uint32_t page_bytes, const char *path,
               struct trace_totals *out_totals, struct err *err);

#endif
