/* The kernels of clusters and bulk copies. Both exist from compute capability 9.0 on; before, the
 * host does not launch them. CUDA 11.8 knows clusters but no bulk copies: its flavour lacks the
 * kernels that copy. */
#include "barrier.cuh"
#include "gate.cuh"
#include "kernels.h"

#if __CUDA_ARCH__ >= 900

extern __shared__ __align__(128) unsigned char shared_bytes[];

/* The part of shared memory that is filled, as an address of shared::cta. */
static __device__ __forceinline__ uint32_t filled_part(void)
{
    return (uint32_t)__cvta_generic_to_shared(shared_bytes);
}

static __device__ __forceinline__ uint64_t real_time_ns(void)
{
    uint64_t ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns)::"memory");
    return ns;
}

static __device__ __forceinline__ uint32_t own_rank(void)
{
    uint32_t rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

static __device__ __forceinline__ uint32_t cluster_size(void)
{
    uint32_t size;
    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
    return size;
}

/* The address in the window of the cluster. */
static __device__ __forceinline__ uint32_t address_in(uint32_t own, uint32_t rank)
{
    uint32_t address;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(own), "r"(rank));
    return address;
}

static __device__ __forceinline__ void meet_cluster(void)
{
    __syncwarp();
    asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
}

static __device__ __forceinline__ struct kernel_cluster_result *own_result(uint64_t results)
{
    struct kernel_cluster_result *result = (struct kernel_cluster_result *)results + blockIdx.x;
    if (threadIdx.x == 0)
        asm volatile("mov.u32 %0, %%smid;" : "=r"(result->sm_id));
    return result;
}

static __device__ __forceinline__ uint32_t load_cluster(uint32_t address)
{
    uint32_t value;
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
    return value;
}

static __device__ __forceinline__ void store_cluster(uint32_t address, uint32_t value)
{
    asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(address), "r"(value) : "memory");
}

/* Every block has a word of its own in each block's memory, which holds its own address: each load
 * needs the one before. The first pass brings the code into the caches of instructions. */
static __device__ uint64_t chase(uint32_t rank, uint32_t loads)
{
    uint32_t at = address_in(filled_part() + 128 * own_rank(), rank);
    uint64_t cycles = 0;
    store_cluster(at, at);
    while (load_cluster(at) != at)
        ;
    for (int pass = 0; pass < 2; pass++) {
        const long long start = clock64();
#pragma unroll 1
        for (uint32_t i = 0; i < loads; i += KERNEL_CLUSTER_LOADS_STEP)
#pragma unroll
            for (int k = 0; k < KERNEL_CLUSTER_LOADS_STEP; k++)
                at = load_cluster(at);
        cycles = (uint64_t)(clock64() - start) + (at == 1);
    }
    return cycles;
}

/* No gate: the blocks of a cluster always run at once, and one load at a time disturbs no other
 * cluster. */
extern "C" __global__ void cluster_loads(const struct kernel_cluster c)
{
    struct kernel_cluster_result *result = own_result(c.results);
    const uint32_t rank = own_rank(), size = cluster_size();
    meet_cluster();
    for (uint32_t turn = 0; turn < size; turn++) {
        if (turn == rank && threadIdx.x == 0 && c.count)
            for (uint32_t k = 0; k < size; k++)
                result->cycles[k] = chase(k, c.count);
        meet_cluster();
    }
    if (threadIdx.x == 0)
        result->at_once = 1;
}

/* All lanes of a warp read 512 bytes in a row; all loads are in flight before the first is used. */
static __device__ __forceinline__ uint32_t read_round(uint32_t at)
{
    uint4 v[KERNEL_CLUSTER_READ_UNROLL];
    uint32_t sum = 0;
#pragma unroll
    for (int u = 0; u < KERNEL_CLUSTER_READ_UNROLL; u++)
        asm volatile("ld.shared::cluster.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(v[u].x), "=r"(v[u].y), "=r"(v[u].z), "=r"(v[u].w)
                     : "r"(at + u * KERNEL_CLUSTER_READ_THREADS * 16));
#pragma unroll
    for (int u = 0; u < KERNEL_CLUSTER_READ_UNROLL; u++)
        sum |= v[u].x | v[u].y | v[u].z | v[u].w;
    return sum;
}

/* Begins all blocks at once, and ends when the last warp has ended. The result is written while the
 * other blocks of the cluster may still read this one's memory; the block leaves after all. */
static __device__ void begin(const struct kernel_cluster *c, struct kernel_cluster_result *result)
{
    meet_cluster();
    const bool passed = pass_gate(c->gate, c->expected);
    if (threadIdx.x == 0) {
        result->at_once = passed;
        result->begin_ns = real_time_ns();
        result->cycles[0] = clock64();
    }
    __syncthreads();
}

static __device__ void end(struct kernel_cluster_result *result)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        result->cycles[0] = clock64() - result->cycles[0];
        result->end_ns = real_time_ns();
    }
    meet_cluster();
}

extern "C" __global__ void __launch_bounds__(KERNEL_CLUSTER_READ_THREADS)
    cluster_read(const struct kernel_cluster c)
{
    struct kernel_cluster_result *result = own_result(c.results);
    const uint32_t rank = own_rank(), size = cluster_size();
    for (uint32_t i = threadIdx.x; i < KERNEL_CLUSTER_PART_BYTES / 4; i += blockDim.x)
        ((uint32_t *)shared_bytes)[i] = 0;
    begin(&c, result);
    uint32_t sum = 0, other = 0;
#pragma unroll 1
    for (uint32_t i = 0; i < c.count; i++) {
        other = other + 1 < size ? other + 1 : size > 1;
        const uint32_t target = rank + other < size ? rank + other : rank + other - size;
        sum |= read_round(address_in(filled_part() + 16 * threadIdx.x, target));
    }
    end(result);
    if (sum)
        result->at_once = 0;
}

#if __CUDACC_VER_MAJOR__ >= 12

static __device__ __forceinline__ uint32_t copied_part(void)
{
    return filled_part() + KERNEL_CLUSTER_PART_BYTES;
}

/* Barriers of a warp's copies: one that data have come, one that they have been taken. */
static __device__ __forceinline__ uint32_t barrier_of(uint32_t warp, uint32_t taken)
{
    return filled_part() + 2 * KERNEL_CLUSTER_PART_BYTES + 8 * (2 * warp + taken);
}

static __device__ __forceinline__ void barrier_arrive(uint32_t barrier, uint32_t rank)
{
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(
                     address_in(barrier, rank))
                 : "memory");
}

/* By the one lane that a warp has left. */
static __device__ void init_barriers(void)
{
    const uint32_t warp = threadIdx.x / 32;
    barrier_init(barrier_of(warp, 0));
    barrier_init(barrier_of(warp, 1));
    asm volatile("fence.mbarrier_init.release.cluster;\n\tfence.proxy.async.shared::cta;" ::
                     : "memory");
}

/* A copy to the next block of the cluster. */
struct passed_on {
    uint32_t to, from, bytes, barrier;
};

static __device__ __forceinline__ void pass_on(const struct passed_on &copy)
{
    asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(copy.to),
                 "r"(copy.from), "r"(copy.bytes), "r"(copy.barrier)
                 : "memory");
}

/* One copy in the whole cluster: a block passes it on when it has come. */
static __device__ void go_round(const struct passed_on &copy, uint32_t come, uint32_t rank,
                                uint32_t rounds)
{
#pragma unroll 1
    for (uint32_t i = 0; i < rounds; i++) {
        barrier_expect(come, copy.bytes);
        if (rank == 0)
            pass_on(copy);
        barrier_wait(come, i);
        if (rank)
            pass_on(copy);
    }
}

/* Each block copies to the next one when that has taken the copy before. */
static __device__ void go_all(const struct passed_on &copy, uint32_t come, uint32_t taken,
                              uint32_t before, uint32_t rounds)
{
#pragma unroll 1
    for (uint32_t i = 0; i < rounds; i++) {
        if (i)
            barrier_wait(taken, i - 1);
        barrier_expect(come, copy.bytes);
        pass_on(copy);
        barrier_wait(come, i);
        barrier_arrive(taken, before);
    }
}

/* Each warp has one copy in flight, and one lane. */
extern "C" __global__ void __launch_bounds__(32 * KERNEL_CLUSTER_FLIGHTS_MAX)
    cluster_copy(const struct kernel_cluster c)
{
    struct kernel_cluster_result *result = own_result(c.results);
    const uint32_t rank = own_rank(), size = cluster_size(), warp = threadIdx.x / 32;
    const uint32_t next = rank + 1 < size ? rank + 1 : 0, before = rank ? rank - 1 : size - 1;
    const uint32_t come = barrier_of(warp, 0), taken = barrier_of(warp, 1);
    const struct passed_on copy = {address_in(filled_part() + warp * c.bytes, next),
                                   copied_part() + warp * c.bytes, c.bytes, address_in(come, next)};
    if (threadIdx.x % 32)
        return;
    init_barriers();
    begin(&c, result);
    if (c.in_flight)
        go_all(copy, come, taken, before, c.count / c.in_flight);
    else
        go_round(copy, come, rank, c.count);
    end(result);
}

/* Copies from a memory of which every block and warp has its own part in turn. */
static __device__ void copy_parts(const struct kernel_cluster &c, uint32_t *phase)
{
    const uint32_t warp = threadIdx.x / 32, come = barrier_of(warp, 0);
    const uint64_t step = (uint64_t)gridDim.x * c.in_flight * c.stride_bytes;
    const uint64_t first = ((uint64_t)blockIdx.x * c.in_flight + warp) * c.stride_bytes;
    uint64_t at = first;
#pragma unroll 1
    for (uint32_t i = 0; i < c.count / c.in_flight; i++) {
        barrier_expect(come, c.bytes);
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                     "[%0], [%1], %2, [%3];" ::"r"(filled_part() + warp * c.bytes),
                     "l"(c.base + at), "r"(c.bytes), "r"(come)
                     : "memory");
        at = at + step + c.bytes <= c.footprint_bytes ? at + step : first;
        barrier_wait(come, (*phase)++);
    }
}

extern "C" __global__ void __launch_bounds__(32 * KERNEL_CLUSTER_FLIGHTS_MAX)
    bulk_copy(const struct kernel_cluster c)
{
    struct kernel_cluster_result *result = own_result(c.results);
    uint32_t phase = 0;
    if (threadIdx.x % 32)
        return;
    init_barriers();
    if (c.warm)
        copy_parts(c, &phase);
    begin(&c, result);
    copy_parts(c, &phase);
    end(result);
}

#endif

#else

extern "C" __global__ void cluster_loads(const struct kernel_cluster c)
{
    (void)c;
}
extern "C" __global__ void cluster_read(const struct kernel_cluster c)
{
    (void)c;
}
extern "C" __global__ void cluster_copy(const struct kernel_cluster c)
{
    (void)c;
}
extern "C" __global__ void bulk_copy(const struct kernel_cluster c)
{
    (void)c;
}

#endif
