/* CPUs near a GPU, for as long as its host link is measured. */
#ifndef GPUMEMTOPO_DEVICE_CUDA_AFFINITY_H
#define GPUMEMTOPO_DEVICE_CUDA_AFFINITY_H

#include <sched.h>

#include "device/cuda/nvml_facts.h"

/* Zero-initialised: nothing changed. */
struct affinity {
    bool changed;
    cpu_set_t before;
};

/* Moves this thread to those of its CPUs that NVML calls near. False, and nothing is changed, when
 * NVML does not tell or this process may use none of them. */
bool affinity_near(struct affinity *affinity, const struct nvml_gpu *gpu);
void affinity_restore(struct affinity *affinity); /* fine when nothing was changed */

#endif
