/* What the kernels of checks and screens have in common: formats and results. */
#ifndef GPUMEMTOPO_DEVICE_CUDA_CHECK_BLOCK_CUH
#define GPUMEMTOPO_DEVICE_CUDA_CHECK_BLOCK_CUH

#include "../check_program.h"
#include "kernels.h"

/* Of CUDA 12.4 and newer. */
#define HAS_MMA_FP8                                                                                \
    (__CUDA_ARCH__ >= 890 && __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1204)

/* Warps without a bit in the mask do nothing: for tests of where a warp runs. */
static __device__ __forceinline__ bool check_takes_part(const struct kernel_check *c)
{
    return c->warp_mask >> (threadIdx.x / 32) & 1;
}

/* Stores the hash of the warp and how long it took. */
static __device__ __forceinline__ void check_store(uint64_t results, long long begin, uint64_t sum)
{
    struct kernel_check_result *result = (struct kernel_check_result *)results + blockIdx.x;
    uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    long long end = clock64();
    uint64_t hash = check_lane_hash(sum, lane);
    for (int apart = 16; apart > 0; apart /= 2)
        hash += __shfl_down_sync(0xffffffffu, (unsigned long long)hash, apart);
    if (lane)
        return;
    result->hashes[warp] = hash;
    result->cycles[warp] = (uint64_t)(end - begin);
    asm volatile("mov.u32 %0, %%smid;" : "=r"(result->sm_id));
}

#endif
