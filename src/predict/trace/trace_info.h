/* What a trace holds, for people; and whether all of it can be read. */
#ifndef GPUMEMTOPO_PREDICT_TRACE_TRACE_INFO_H
#define GPUMEMTOPO_PREDICT_TRACE_TRACE_INFO_H

#include "base/str.h"
#include "predict/trace/trace_read.h"

/* Appends what the first and the last page say. */
void trace_info_print(const struct trace_reader *reader, const char *path, struct strbuf *out_text);

/* Reads all accesses and compares them with the totals. */
int trace_info_check(struct trace_reader *reader, struct err *err);

#endif
