/* The part of the stand-in for libcuda.so.1 that launches clusters. */
#include "fake_cluster.h"

#include <cuda.h>
#include <stdlib.h>

#include "fake_kernels.h"

#define EXPORT __attribute__((visibility("default")))

enum { BEGIN_NS = 5000 };

/* FAKE_CUDA_TOGETHER="1": all blocks on one SM. FAKE_CUDA_SHARED="1": not at once. */
void fake_cluster_run(const struct kernel_cluster *run, unsigned grid, const uint32_t *sm_ids)
{
    struct kernel_cluster_result *results = (struct kernel_cluster_result *)(uintptr_t)run->results;
    for (unsigned i = 0; i < grid; i++) {
        results[i].sm_id = sm_ids[getenv("FAKE_CUDA_TOGETHER") ? 0 : i];
        results[i].at_once = !getenv("FAKE_CUDA_SHARED");
        results[i].begin_ns = BEGIN_NS;
        results[i].end_ns = BEGIN_NS + run->count;
        for (uint64_t k = 0; k < KERNEL_CLUSTER_MAX; k++)
            results[i].cycles[k] = (FAKE_CLUSTER_CYCLES + i + k) * run->count;
    }
}

#ifndef FAKE_CUDA_OLDER
EXPORT CUresult cuOccupancyMaxActiveClusters(int *clusters, CUfunction function,
                                             const CUlaunchConfig *config)
{
    unsigned size = config->attrs[0].value.clusterDim.x;
    (void)function;
    if (size > FAKE_CLUSTER_MAX)
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    *clusters = (int)(FAKE_SMS / size);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function,
                                 void **parameters, void **extra)
{
    if (config->gridDimX % config->attrs[0].value.clusterDim.x)
        return CUDA_ERROR_INVALID_VALUE;
    return cuLaunchKernel(function, config->gridDimX, 1, 1, config->blockDimX, 1, 1,
                          config->sharedMemBytes, config->hStream, parameters, extra);
}
#endif
