/* The gate: where the blocks of a launch wait until all of them run. */
#ifndef GPUMEMTOPO_DEVICE_CUDA_GATE_CUH
#define GPUMEMTOPO_DEVICE_CUDA_GATE_CUH

#include "kernels.h"

static __device__ __forceinline__ uint32_t look_at(const uint32_t *word)
{
    uint32_t value;
    asm volatile("ld.volatile.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
    return value;
}

/* Waits until all blocks of the launch run. As many are launched as the SMs can hold, so every SM
 * is then full, and no block that ends early makes room for another one. False if they do not come:
 * another process has a part of the GPU. */
static __device__ bool pass_gate(uint64_t address, uint32_t expected)
{
    const long long patience_cycles = 1 << 26;
    struct kernel_sm_gate *gate = (struct kernel_sm_gate *)address;
    __shared__ bool passed;
    if (threadIdx.x == 0) {
        const long long start = clock64();
        atomicAdd(&gate->came, 1);
        while (look_at(&gate->came) < expected && !look_at(&gate->closed)) {
            if (clock64() - start > patience_cycles)
                atomicExch(&gate->closed, 1);
#if __CUDA_ARCH__ >= 700
            __nanosleep(200);
#endif
        }
        passed = look_at(&gate->came) >= expected && !look_at(&gate->closed);
    }
    __syncthreads();
    return passed;
}

#endif
