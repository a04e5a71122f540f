/* The command `gpumemtopo-predict trace`. */
#ifndef GPUMEMTOPO_PREDICT_TRACE_TRACE_COMMAND_H
#define GPUMEMTOPO_PREDICT_TRACE_TRACE_COMMAND_H

#include "base/err.h"
#include "base/str.h"
#include "predict/kernel.h"
#include "predict/trace/head.h"
#include "predict/trace/trace_read.h"

/* Writes a kernel of the table as a trace. page_bytes: 0 for TRACE_PAGE_BYTES. */
int trace_make(const struct kernel_launch *launch, uint32_t page_bytes, const char *path,
               struct trace_totals *out_totals, struct err *err);

/* Appends what the first and the last page say. */
void trace_info_print(const struct trace_reader *reader, const char *path, struct strbuf *out_text);

/* Reads all accesses and compares them with the totals. */
int trace_info_check(struct trace_reader *reader, struct err *err);

/* The arguments behind `trace`. Appends what goes to stdout. -EINVAL: bad usage or input. */
int trace_command(int count, char **arguments, struct strbuf *out_text, struct err *err);

#endif
