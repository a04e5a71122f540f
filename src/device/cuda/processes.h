/* Which processes compute on a GPU. */
#ifndef GPUMEMTOPO_DEVICE_CUDA_PROCESSES_H
#define GPUMEMTOPO_DEVICE_CUDA_PROCESSES_H

#include "device/cuda/nvml_facts.h"

struct processes {
    int result;     /* NVML_OK, -ENOMEM, or why NVML does not know them */
    uint32_t count; /* all of them */
    bool own;       /* this process is among them, by its id */
};

/* Counts ordinary processes and clients of MPS. */
struct processes processes_count(const struct nvml_gpu *gpu);

#endif
