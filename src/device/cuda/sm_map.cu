/* The kernels that measure every SM: what it reads of L2 alone, in a group or beside all others,
 * and how far it is from regions of main memory. */
#include "gate.cuh"
#include "kernels.h"

#if __CUDA_ARCH__ < 750 || (__CUDA_ARCH__ >= 800 && __CUDA_ARCH__ < 1100)
#define FULL_BLOCKS 2
#else
#define FULL_BLOCKS 1
#endif

static __device__ __forceinline__ struct kernel_sm_place own_place(uint64_t places)
{
    uint32_t id;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
    return ((const struct kernel_sm_place *)places)[id];
}

static __device__ __forceinline__ uint64_t real_time_ns(void)
{
    uint64_t ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns)::"memory");
    return ns;
}

/* Reads a chunk with all lanes of the warp; all loads are in flight before the first is used. */
static __device__ __forceinline__ uint32_t read_chunk(uint64_t at)
{
    uint4 v[KERNEL_SM_MAP_UNROLL];
    uint32_t sum = 0;
#pragma unroll
    for (int u = 0; u < KERNEL_SM_MAP_UNROLL; u++)
        asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(v[u].x), "=r"(v[u].y), "=r"(v[u].z), "=r"(v[u].w)
                     : "l"(at + u * 512));
#pragma unroll
    for (int u = 0; u < KERNEL_SM_MAP_UNROLL; u++)
        sum ^= v[u].x ^ v[u].y ^ v[u].z ^ v[u].w;
    return sum;
}

/* Each warp reads at places of its own draw: warps that follow each other through the same
 * addresses would be answered together (see stream.cu). A chunk counts if it begins inside the
 * window, which is the same number of cycles for all warps. */
extern "C" __global__ void __launch_bounds__(KERNEL_SM_MAP_THREADS, FULL_BLOCKS)
    sm_map_read(const struct kernel_sm_read r)
{
    if (!pass_gate(r.gate, r.expected))
        return;
    const struct kernel_sm_place place = own_place(r.places);
    if (place.sm == UINT32_MAX || (r.turn != UINT32_MAX && place.turn != r.turn))
        return;
    const uint32_t lane = threadIdx.x % 32;
    uint32_t draw = kernel_mixed((blockIdx.x * blockDim.x + threadIdx.x) / 32 ^ r.seed), sum = 0;
    uint32_t chunks = 0;
    const uint64_t start_ns = real_time_ns();
    const long long start = clock64();
    const long long skip = r.skip_cycles, end = skip + r.window_cycles;
    long long past = 0;
#pragma unroll 1
    do {
        draw = draw * 1664525 + 1013904223;
        chunks += past >= skip;
        sum ^= read_chunk(
            r.base + (uint64_t)(draw >> 8 & r.chunk_mask) * KERNEL_SM_MAP_CHUNK_BYTES + lane * 16);
        past = __shfl_sync(0xffffffffu, clock64() - start, 0);
    } while (past < end);
    if (lane || r.turn == UINT32_MAX)
        return;
    struct kernel_sm_result *result = (struct kernel_sm_result *)r.results + place.sm;
    const double window_ns = (double)(real_time_ns() - start_ns) * r.window_cycles / (double)past;
    /* The comparison is false for all that is stored; it keeps the loads. */
    const uint64_t bytes = (uint64_t)chunks * KERNEL_SM_MAP_CHUNK_BYTES;
    atomicAdd((unsigned long long *)&result->bytes, bytes + (sum == 0xffffffff));
    atomicMax((unsigned long long *)&result->ns, (unsigned long long)window_ns);
}

static __device__ __forceinline__ uint64_t load_after(uint64_t at, uint64_t before)
{
    uint64_t v;
    asm volatile("ld.global.cg.u64 %0, [%1];" : "=l"(v) : "l"(at + before) : "memory");
    return v;
}

/* One thread per SM. The memory has zeros, so adding what was loaded makes loads depend on each
 * other and moves nothing. Each SM has slots of its own, spread over the region, and begins at
 * another region: neither lines nor rows of the memory are in another SM's use. The second half of
 * a slot is never timed: it brings the page into the TLBs. */
extern "C" __global__ void __launch_bounds__(KERNEL_SM_MAP_THREADS, FULL_BLOCKS)
    sm_map_memory(const struct kernel_sm_memory m)
{
    if (!pass_gate(m.gate, m.expected))
        return;
    const struct kernel_sm_place place = own_place(m.places);
    if (threadIdx.x || place.sm == UINT32_MAX || atomicExch((uint32_t *)m.claims + place.sm, 1))
        return;
    uint64_t v = 0;
#pragma unroll 1
    for (uint32_t i = 0; i < m.regions; i++) {
        const uint32_t region = (i + place.sm * m.regions / m.sms) % m.regions;
        const uint64_t from = m.base + region * m.region_bytes;
        const uint32_t pages =
            KERNEL_SM_MAP_SLOTS / (KERNEL_SM_MAP_PAGE_BYTES / KERNEL_SM_MAP_SLOT_BYTES);
        for (uint32_t page = 0; page < pages; page++)
            v = load_after(
                from + KERNEL_SM_MAP_SLOT_BYTES / 2 + page * (uint64_t)KERNEL_SM_MAP_PAGE_BYTES, v);
        const long long start = clock64() + (long long)v;
#pragma unroll 1
        for (uint32_t k = 0; k < m.loads; k++) {
            /* An odd factor: every slot once. */
            const uint32_t slot = (k * m.sms + place.sm) * 5669u % KERNEL_SM_MAP_SLOTS;
            v = load_after(from + (uint64_t)slot * KERNEL_SM_MAP_SLOT_BYTES, v);
        }
        ((uint64_t *)m.results)[place.sm * (uint64_t)m.regions + region] =
            (uint64_t)(clock64() + (long long)v - start);
    }
}

static __device__ __forceinline__ uint32_t add_nothing(uint64_t at)
{
    uint32_t v;
    asm volatile("atom.global.add.u32 %0, [%1], 0;" : "=r"(v) : "l"(at) : "memory");
    return v;
}

/* One thread per SM. Each atomic waits for the one before, since its address depends on that, and
 * each SM begins at another line. The first atomic of a line brings it into L2. */
extern "C" __global__ void __launch_bounds__(KERNEL_SM_MAP_THREADS, FULL_BLOCKS)
    sm_map_atomics(const struct kernel_sm_atomics m)
{
    if (!pass_gate(m.gate, m.expected))
        return;
    const struct kernel_sm_place place = own_place(m.places);
    if (threadIdx.x || place.sm == UINT32_MAX || atomicExch((uint32_t *)m.claims + place.sm, 1))
        return;
    uint32_t v = 0;
#pragma unroll 1
    for (uint32_t i = 0; i < m.lines; i++) {
        const uint32_t line = (i + place.sm * m.lines / m.sms) % m.lines;
        const uint64_t at =
            m.base + (uint64_t)(kernel_mixed(line) & m.slot_mask) * KERNEL_SM_MAP_SLOT_BYTES;
        v = add_nothing(at + (v & m.zero));
        if (v & m.zero) /* never: it has come before the clock is read */
            return;
        const long long start = clock64();
#pragma unroll 1
        for (uint32_t k = 0; k < m.atomics; k++)
            v = add_nothing(at + (v & m.zero));
        if (v & m.zero)
            return;
        ((uint64_t *)m.results)[place.sm * (uint64_t)m.lines + line] =
            (uint64_t)(clock64() - start);
    }
}
