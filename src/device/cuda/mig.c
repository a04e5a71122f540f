/* MIG instances and their profiles. */
#include "device/cuda/mig.h"

#include <stdio.h>

bool mig_enabled(const struct nvml *nvml, nvml_device handle)
{
    unsigned current = 0, pending = 0;
    return handle && nvml->mig_mode && nvml->mig_mode(handle, &current, &pending) == NVML_OK &&
           current;
}

/* NVIDIA's names: slices of the GPU, then memory in GiB rounded up. The number of compute slices
 * comes first if the instance does not have all of them. */
bool mig_profile(const struct nvml *nvml, nvml_device instance, char out_profile[MIG_PROFILE_BYTES])
{
    struct nvml_attributes is = {0};
    if (!instance || !nvml->attributes || nvml->attributes(instance, &is) != NVML_OK)
        return false;
    unsigned long long gib = (is.memory_mib + 1023) / 1024;
    if (is.compute_slices < is.gpu_slices)
        snprintf(out_profile, MIG_PROFILE_BYTES, "%uc.%ug.%llugb", is.compute_slices, is.gpu_slices,
                 gib);
    else
        snprintf(out_profile, MIG_PROFILE_BYTES, "%ug.%llugb", is.gpu_slices, gib);
    return true;
}
