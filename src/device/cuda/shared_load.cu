/* Loads of shared memory: every word holds its own address, so that each load needs the result of
 * the one before and goes to the same banks. There is one kernel per width. */
#include "kernels.h"

extern __shared__ __align__(1024) uint32_t words[];

template <int WIDTH> static __device__ __forceinline__ uint32_t load(uint32_t at)
{
    uint32_t a, b, c, d;
    if (WIDTH == 4)
        asm volatile("ld.shared.u32 %0, [%1];" : "=r"(a) : "r"(at));
    else if (WIDTH == 8)
        asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(a), "=r"(b) : "r"(at));
    else
        asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
                     : "r"(at));
    return a;
}

/* The value decides on a store that never happens: the last load has ended when the clock is read.
 */
template <int WIDTH>
static __device__ __forceinline__ uint32_t chase(uint32_t at, uint32_t repeats, uint64_t *out_begin,
                                                 uint64_t *out_end)
{
    *out_begin = clock64();
#pragma unroll 1
    for (uint32_t r = 0; r < repeats; r++) {
#pragma unroll
        for (int i = 0; i < KERNEL_SHARED_UNROLL; i++)
            at = load<WIDTH>(at);
    }
    if (at == 0xffffffff)
        words[0] = at;
    *out_end = clock64();
    return at;
}

/* The first round brings the code into the caches of instructions. */
template <int WIDTH>
static __device__ __forceinline__ void load_all(const struct kernel_shared_load &asked)
{
    uint32_t base = (uint32_t)__cvta_generic_to_shared(words);
    uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    uint32_t at = base + warp % KERNEL_SHARED_PLACES * KERNEL_SHARED_PLACE_BYTES +
                  lane * asked.lane_stride_bytes;
    struct kernel_shared_result *result = (struct kernel_shared_result *)asked.result;
    uint64_t begin = 0, end = 0;
    for (uint32_t i = threadIdx.x; i < asked.bytes / 4; i += blockDim.x)
        words[i] = base + 4 * i;
    for (int round = 0; round < 2; round++) {
        __syncthreads();
        if (lane < asked.lanes)
            at = chase<WIDTH>(at, round ? asked.repeats : 1, &begin, &end);
    }
    if (lane == 0) {
        result->begin[warp] = begin;
        result->end[warp] = end;
    }
}

#define DEFINE_SHARED_LOAD(width)                                                                  \
    extern "C" __global__ void __launch_bounds__(1024)                                             \
        shared_load_##width(struct kernel_shared_load asked)                                       \
    {                                                                                              \
        load_all<width>(asked);                                                                    \
    }
DEFINE_SHARED_LOAD(4)
DEFINE_SHARED_LOAD(8)
DEFINE_SHARED_LOAD(16)
