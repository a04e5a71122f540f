/* The time that a survey spent per probe. */
#ifndef GPUMEMTOPO_REPORT_TIMING_H
#define GPUMEMTOPO_REPORT_TIMING_H

#include "base/str.h"
#include "inventory/gpu_result.h"

/* Appends the probes of a GPU (the slowest one) with their seconds, longest first. Appends nothing
 * if it has no timings. Errors only set out_text->failed. */
void timing_print(const struct gpu_result *slowest, struct strbuf *out_text);

#endif
