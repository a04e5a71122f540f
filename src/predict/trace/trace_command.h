/* The command `gpumemtopo-predict trace`. */
#ifndef GPUMEMTOPO_PREDICT_TRACE_TRACE_COMMAND_H
#define GPUMEMTOPO_PREDICT_TRACE_TRACE_COMMAND_H

#include "base/err.h"
#include "base/str.h"

/* The arguments behind `trace`. Appends what goes to stdout. -EINVAL: bad usage or input. */
int trace_command(int count, char **arguments, struct strbuf *out_text, struct err *err);

#endif
