/* The parasite: a few warps that take a share of a memory, or of the SMs' issue slots, at a steady
 * rate. And the truth: streams of its own, by ticket, which see what the parasite leaves. */
#include "parasite.h"

static __device__ __forceinline__ uint32_t word_now(uint64_t at)
{
    uint32_t value;
    asm volatile("ld.volatile.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
    return value;
}

/* Sleeping leaves the issue slots to others; a sleep takes up to twice as long as it was asked to.
 */
static __device__ __forceinline__ void wait_until(long long cycle)
{
    for (long long left = cycle - clock64(); left > 0; left = cycle - clock64())
        if (left > 256)
            __nanosleep((unsigned)left / 4);
}

static __device__ __forceinline__ void arrive(const struct parasite_work &work)
{
    if (threadIdx.x == 0 && (atomicAdd((uint32_t *)work.arrived, 1) + 1) % gridDim.x == 0) {
        *(volatile uint32_t *)work.resident = work.epoch;
        __threadfence_system();
    }
}

/* Calls take(number) once per interval. A warp that is late catches up, but not more than eight
 * intervals. */
template <typename F>
static __device__ __forceinline__ void paced(const struct parasite_work &work, F take)
{
    const uint32_t warps = gridDim.x * (blockDim.x / 32);
    const uint32_t warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    const long long interval = work.interval_cycles, begin = clock64();
    long long next = begin + interval * warp / warps;
    uint64_t number = (uint64_t)work.epoch * 0x9e3779b1 + warp;
    uint32_t taken = 0;
    arrive(work);
    while (next - begin < (long long)work.limit_cycles && word_now(work.stop) != work.epoch) {
        wait_until(next);
        take(number);
        taken++;
        number += warps;
        next += interval;
        if (clock64() - next > 8 * interval)
            next = clock64();
    }
    if (threadIdx.x % 32 == 0)
        atomicAdd((uint32_t *)work.taken, taken);
}

extern "C" __global__ void __launch_bounds__(PARASITE_THREADS)
    parasite_load(const struct parasite_work work)
{
    uint64_t policy;
    uint32_t sum = 0;
    if (work.keep)
        asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    else
        asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    paced(work, [&](uint64_t number) {
        const uint64_t at = work.base + (number & (work.pieces - 1)) * PARASITE_PIECE_BYTES +
                            threadIdx.x % 32 * sizeof(uint4);
        uint4 v[4];
#pragma unroll
        for (int u = 0; u < 4; u++)
            asm volatile("ld.global.L1::no_allocate.L2::cache_hint.v4.u32 {%0,%1,%2,%3}, [%4], %5;"
                         : "=r"(v[u].x), "=r"(v[u].y), "=r"(v[u].z), "=r"(v[u].w)
                         : "l"(at + u * 32 * sizeof(uint4)), "l"(policy));
#pragma unroll
        for (int u = 0; u < 4; u++)
            sum ^= v[u].x ^ v[u].y ^ v[u].z ^ v[u].w;
    });
    if (sum == 0xffffffff)
        *(uint32_t *)work.taken = sum; /* never: keeps the loads */
}

extern "C" __global__ void __launch_bounds__(PARASITE_THREADS)
    parasite_issue(const struct parasite_work work)
{
    float a[4] = {1, 2, 3, 4};
    const float by = 1.0f + (float)work.keep;
    paced(work, [&](uint64_t) {
#pragma unroll
        for (int i = 0; i < PARASITE_BURST; i++)
            asm volatile("fma.rn.f32 %0, %0, %1, %1;" : "+f"(a[i % 4]) : "f"(by));
    });
    if (a[0] + a[1] + a[2] + a[3] == -1)
        *(uint32_t *)work.taken = 0;
}

template <bool WRITES>
static __device__ __forceinline__ void truth_stream(uint64_t base, uint32_t chunks,
                                                    uint32_t tickets, uint64_t counter)
{
    __shared__ uint32_t next;
    uint32_t sum = 0;
    for (;;) {
        __syncthreads();
        if (threadIdx.x == 0)
            next = atomicAdd((uint32_t *)counter, 1);
        __syncthreads();
        const uint32_t ticket = next;
        if (ticket >= tickets)
            break;
        const uint64_t at =
            base + (uint64_t)(ticket % chunks) * TRUTH_CHUNK_BYTES + threadIdx.x * sizeof(uint4);
#pragma unroll 1
        for (uint32_t i = 0; i < TRUTH_CHUNK_BYTES; i += 4 * TRUTH_THREADS * sizeof(uint4)) {
            uint4 v[4];
#pragma unroll
            for (int u = 0; u < 4; u++) {
                const uint64_t to = at + i + u * TRUTH_THREADS * sizeof(uint4);
                if (WRITES)
                    __stcg((uint4 *)to, make_uint4(TRUTH_WORD, TRUTH_WORD, TRUTH_WORD, TRUTH_WORD));
                else
                    asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3}, [%4];"
                                 : "=r"(v[u].x), "=r"(v[u].y), "=r"(v[u].z), "=r"(v[u].w)
                                 : "l"(to));
            }
#pragma unroll
            for (int u = 0; u < 4 && !WRITES; u++)
                sum ^= v[u].x ^ v[u].y ^ v[u].z ^ v[u].w;
        }
    }
    if (sum == 0xffffffff)
        *(uint32_t *)counter = sum;
}

extern "C" __global__ void __launch_bounds__(TRUTH_THREADS, 3)
    truth_read(uint64_t base, uint32_t chunks, uint32_t tickets, uint64_t counter)
{
    truth_stream<false>(base, chunks, tickets, counter);
}

extern "C" __global__ void __launch_bounds__(TRUTH_THREADS, 3)
    truth_write(uint64_t base, uint32_t chunks, uint32_t tickets, uint64_t counter)
{
    truth_stream<true>(base, chunks, tickets, counter);
}

/* `chunks` is not used: the same arguments as the streams. A ticket is a burst of every thread. */
extern "C" __global__ void __launch_bounds__(TRUTH_THREADS, 3)
    truth_fma(uint64_t base, uint32_t chunks, uint32_t tickets, uint64_t counter)
{
    float a[TRUTH_FMA_CHAINS] = {1, 2, 3, 4};
    const float by = (float)(base & 1) + 1;
#pragma unroll 1
    for (uint32_t t = 0; t < tickets; t++)
#pragma unroll
        for (int i = 0; i < PARASITE_BURST; i++)
            asm volatile("fma.rn.f32 %0, %0, %1, %1;" : "+f"(a[i % TRUTH_FMA_CHAINS]) : "f"(by));
    if (a[0] + a[1] + a[2] + a[3] == -1)
        *(uint32_t *)counter = chunks;
}
