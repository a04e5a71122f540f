/* Bandwidth by access width, threads, blocks and accesses in flight. */
#ifndef GPUMEMTOPO_PROBES_METHOD_BANDWIDTH_SURFACE_H
#define GPUMEMTOPO_PROBES_METHOD_BANDWIDTH_SURFACE_H

#include "base/str.h"
#include "probes/method/bandwidth_stream.h"

/* Measures every width, number of threads and number of blocks once, then the best of them with
 * other numbers of accesses in flight (thesis, section 6.1). out_text: compact, released by
 * strbuf_fini. -ENOTSUP when the device has none of these streams. */
int bandwidth_surface(struct probe_context *context, const struct bandwidth_task *task,
                      struct bandwidth_shape *out_best, struct strbuf *out_text, struct err *err);

#endif
