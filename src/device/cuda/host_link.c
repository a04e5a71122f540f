/* The turn at the host link; meanwhile this thread runs on CPUs near the GPU. */
#include "device/cuda/gpu.h"

int cuda_begin_link(struct device *device, const void *request, void *answer, struct err *err)
{
    struct cuda_gpu *gpu = cuda_of(device);
    struct device_link *out_link = answer;
    (void)request, (void)err;
    out_link->alone = turn_take(&gpu->link, TURN_LINK_MS);
    out_link->near = affinity_near(&gpu->affinity, &gpu->told);
    return 0;
}

void cuda_end_link(struct device *device)
{
    struct cuda_gpu *gpu = cuda_of(device);
    affinity_restore(&gpu->affinity);
    turn_give(&gpu->link);
}
