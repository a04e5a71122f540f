/* Whether a survey looked for what another one had found. */
#ifndef GPUMEMTOPO_REPORT_LOOKED_FOR_H
#define GPUMEMTOPO_REPORT_LOOKED_FOR_H

#include <stdbool.h>

#include "inventory/gpu_result.h"
#include "inventory/inventory.h"

/* True if the survey would have shown a finding of this metric on the GPU. A survey that did not
 * look for it does not show that it is gone. metric: NULL for a finding without one. */
bool report_looked_for(const struct inventory_gpu *gpu, const char *metric);
bool report_result_looked_for(const struct gpu_result *result, const char *metric);

#endif
