/* What NVML tells of a GPU's NVLinks, and of the fabric behind them. */
#ifndef GPUMEMTOPO_DEVICE_CUDA_NVLINK_H
#define GPUMEMTOPO_DEVICE_CUDA_NVLINK_H

#include "device/cuda/nvml_facts.h"

struct nvlinks {
    int result; /* NVML_OK, or why nothing is known */
    int64_t active, down;
    struct nvml_value errors; /* of all links and counters together */
};
struct nvlinks nvlinks_read(const struct nvml_gpu *gpu);

/* Sets nvlinks_active, nvlinks_down, nvlink_errors and fabric_state. 0 or -ENOMEM. */
int nvlinks_tell(const struct nvml_gpu *gpu, const struct nvlinks *links, struct facts *health);

#endif
