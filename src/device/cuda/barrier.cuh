/* Barriers in shared memory, at which a bulk copy arrives: of compute capability 9.0 and newer, and
 * of CUDA 12. */
#ifndef GPUMEMTOPO_DEVICE_CUDA_BARRIER_CUH
#define GPUMEMTOPO_DEVICE_CUDA_BARRIER_CUH

#include <stdint.h>

static __device__ __forceinline__ void barrier_init(uint32_t barrier)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory");
}

static __device__ __forceinline__ void barrier_expect(uint32_t barrier, uint32_t bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}

/* Looks again and again: a wait that suspends the warp (try_wait) ends up to 150 cycles later on an
 * H200. */
static __device__ __forceinline__ void barrier_wait(uint32_t barrier, uint32_t phase)
{
    asm volatile("{\n\t"
                 ".reg .pred done;\n\t"
                 "again:\n\t"
                 "mbarrier.test_wait.parity.shared::cta.b64 done, [%0], %1;\n\t"
                 "@!done bra again;\n\t"
                 "}" ::"r"(barrier),
                 "r"(phase & 1)
                 : "memory");
}

#endif
