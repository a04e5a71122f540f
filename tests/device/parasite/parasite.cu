/* The parasite: a few warps that take a share of a memory at a steady rate. And the truth: streams
 * of its own, by ticket, which see what the parasite leaves. */
#include "parasite.h"

static __device__ __forceinline__ struct parasite_orders orders_now(uint64_t at)
{
    struct parasite_orders orders;
    asm volatile("ld.volatile.global.v2.u32 {%0, %1}, [%2];"
                 : "=r"(orders.stop), "=r"(orders.mode)
                 : "l"(at)
                 : "memory");
    return orders;
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

static __device__ __forceinline__ uint32_t load_piece(uint64_t at, uint64_t policy)
{
    uint4 v[4];
    uint32_t sum = 0;
#pragma unroll
    for (int u = 0; u < 4; u++)
        asm volatile("ld.global.L1::no_allocate.L2::cache_hint.v4.u32 {%0,%1,%2,%3}, [%4], %5;"
                     : "=r"(v[u].x), "=r"(v[u].y), "=r"(v[u].z), "=r"(v[u].w)
                     : "l"(at + u * 32 * sizeof(uint4)), "l"(policy));
#pragma unroll
    for (int u = 0; u < 4; u++)
        sum ^= v[u].x ^ v[u].y ^ v[u].z ^ v[u].w;
    return sum;
}

static __device__ __forceinline__ void store_piece(uint64_t at, uint64_t policy)
{
#pragma unroll
    for (int u = 0; u < 4; u++)
        asm volatile("st.global.L2::cache_hint.v4.u32 [%0], {%1,%1,%1,%1}, %2;" ::"l"(
                         at + u * 32 * sizeof(uint4)),
                     "r"(TRUTH_WORD), "l"(policy)
                     : "memory");
}

static __device__ __forceinline__ long long interval_of(const struct parasite_work &work,
                                                        uint32_t mode)
{
    return mode == PARASITE_WRITES ? work.interval_cycles[PARASITE_WRITES]
                                   : work.interval_cycles[PARASITE_READS];
}

/* A warp that is late catches up, but not more than eight intervals. */
extern "C" __global__ void __launch_bounds__(PARASITE_THREADS)
    parasite_take(const struct parasite_work work)
{
    const uint32_t warps = gridDim.x * (blockDim.x / 32);
    const uint32_t warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    const long long begin = clock64();
    struct parasite_orders orders = orders_now(work.orders);
    long long interval = interval_of(work, orders.mode), look = begin;
    long long next = begin + interval * warp / warps;
    uint64_t number = (uint64_t)work.epoch * 0x9e3779b1 + warp, policy;
    uint32_t sum = 0;
    if (work.keep)
        asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    else
        asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    arrive(work);
    while (next - begin < (long long)work.limit_cycles && orders.stop != work.epoch) {
        const uint64_t at = work.base + (number & (work.pieces - 1)) * PARASITE_PIECE_BYTES +
                            threadIdx.x % 32 * sizeof(uint4);
        wait_until(next);
        if (interval && orders.mode == PARASITE_WRITES)
            store_piece(at, policy);
        else if (interval)
            sum ^= load_piece(at, policy);
        number += warps;
        next += interval ? interval : PARASITE_LOOK_CYCLES;
        const long long now = clock64();
        if (now - next > 8 * interval)
            next = now;
        if (now - look > PARASITE_LOOK_CYCLES / 2) {
            look = now;
            orders = orders_now(work.orders);
            interval = interval_of(work, orders.mode);
        }
    }
    if (sum == 0xffffffff)
        *(uint32_t *)work.arrived = sum; /* never: keeps the loads */
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
