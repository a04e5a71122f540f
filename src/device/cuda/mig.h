/* MIG: a GPU cut into instances, each of which is a model of its own. */
#ifndef GPUMEMTOPO_DEVICE_CUDA_MIG_H
#define GPUMEMTOPO_DEVICE_CUDA_MIG_H

#include "device/cuda/nvml_facts.h"

/* True when MIG divides this GPU; then CUDA shows instances only. */
bool mig_enabled(const struct nvml *nvml, nvml_device handle);

/* The instance's profile, "1g.10gb" or "1c.2g.20gb". False where NVML does not tell. */
enum { MIG_PROFILE_BYTES = 48 };
bool mig_profile(const struct nvml *nvml, nvml_device instance,
                 char out_profile[MIG_PROFILE_BYTES]);

#endif
