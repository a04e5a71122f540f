/* Where the time of a survey went. */
#ifndef GPUMEMTOPO_REPORT_TIMING_H
#define GPUMEMTOPO_REPORT_TIMING_H

#include "base/str.h"
#include "inventory/gpu_result.h"

/* Appends the probes of a GPU (the one that took longest), the longest first, with their seconds.
 * Nothing where it has no timings. Fails only by out_text->failed. */
void timing_print(const struct gpu_result *slowest, struct strbuf *out_text);

#endif
