/* The kernels of the screen that read memory. Each chunk has the same words but for its mark
 * (screen_program.h), so whichever chunks a warp reads, it has the same hash, which the host knows.
 * Of two launches, the second one has all bits inverted. */
#ifndef GPUMEMTOPO_DEVICE_CUDA_SCREEN_MEMORY_CUH
#define GPUMEMTOPO_DEVICE_CUDA_SCREEN_MEMORY_CUH

#include "barrier.cuh"
#include "screen_block.cuh"

enum {
    CHUNK_BYTES = 4 * SCREEN_CHUNK_WORDS,
    LANE_BYTES = 16,
    WARP_BYTES = 32 * LANE_BYTES, /* that a warp reads at once */
    READS = CHUNK_BYTES / WARP_BYTES,
    SM_APART = 47, /* chunks between those with which two SMs begin */
};

extern "C" {
__constant__ uint4 screen_constants[SCREEN_CONSTANT_CHUNKS * SCREEN_CHUNK_WORDS / 4];
}

static __device__ __forceinline__ uint4 data_of(uint32_t at, uint32_t chunk, uint32_t inverted)
{
    uint32_t i = at % SCREEN_CHUNK_WORDS;
    return make_uint4(screen_data_word(i) ^ screen_data_mark(chunk, 0, inverted),
                      screen_data_word(i + 1) ^ screen_data_mark(chunk, 1, inverted),
                      screen_data_word(i + 2) ^ screen_data_mark(chunk, 2, inverted),
                      screen_data_word(i + 3) ^ screen_data_mark(chunk, 3, inverted));
}

extern "C" __global__ void __launch_bounds__(1024) screen_fill(const struct kernel_screen s)
{
    uint32_t count = s.chunks * (SCREEN_CHUNK_WORDS / 4);
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        ((uint4 *)s.data)[i] = data_of(4 * i, 4 * i / SCREEN_CHUNK_WORDS, s.inverted);
}

/* The four number i that was read of a chunk, as if it had no mark and were not inverted; number:
 * of the first word. */
static __device__ __forceinline__ void take_four(const struct taker *taker, uint32_t number,
                                                 uint32_t i, uint4 read, uint32_t chunk,
                                                 struct screen_read *sums)
{
    const uint32_t at[4] = {read.x, read.y, read.z, read.w};
    uint32_t words[4];
#pragma unroll
    for (uint32_t k = 0; k < 4; k++)
        words[k] = screen_see(taker, number + 4 * i + k,
                              at[k] ^ screen_data_mark(chunk, k, taker->screen->inverted));
    screen_read_four(sums, i, words);
}

static __device__ __forceinline__ uint64_t take_chunk(const struct taker *taker, uint32_t number,
                                                      const uint4 read[READS], uint32_t chunk,
                                                      uint64_t sum)
{
    struct screen_read sums = {sum, 0};
#pragma unroll
    for (uint32_t i = 0; i < READS; i++)
        take_four(taker, number, i, read[i], chunk, &sums);
    return screen_read_end(&sums);
}

static __device__ __forceinline__ uint32_t chunk_after(uint32_t chunk, uint32_t apart,
                                                       uint32_t chunks)
{
    return chunk + apart < chunks ? chunk + apart : chunk + apart - chunks;
}

#define READ_CHUNK(instruction, address, read)                                                     \
    _Pragma("unroll") for (uint32_t j = 0; j < READS; j++) asm volatile(                           \
        instruction " {%0, %1, %2, %3}, [%4];" : "=r"((read)[j].x), "=r"((read)[j].y),             \
        "=r"((read)[j].z),                                                                         \
        "=r"((read)[j].w) : "l"((address) + taker.lane * LANE_BYTES + j * WARP_BYTES) : "memory")

/* Each warp reads in turn what the others have brought into L1. */
extern "C" __global__ void __launch_bounds__(1024) screen_l1(const struct kernel_screen s)
{
    struct taker taker = taker_begin(&s, 0);
    uint32_t of_turn = taker.warp % s.l1_chunks;
    uint64_t sum = 0;
    long long begin = clock64();
#pragma unroll 1
    for (; taker.period < s.periods; taker.period++)
#pragma unroll 1
        for (uint32_t step = 0; step < SCREEN_STEPS_L1; step++) {
            uint32_t chunk = taker.period % SCREEN_PERIODS * SCREEN_STEPS_L1 + of_turn;
            uint4 read[READS];
            of_turn = chunk_after(of_turn, 1, s.l1_chunks);
            READ_CHUNK("ld.global.ca.v4.u32", s.data + (uint64_t)chunk * CHUNK_BYTES, read);
            sum = take_chunk(&taker, step * SCREEN_TAKEN_L1, read, chunk, sum);
        }
    check_store(s.results, begin, sum);
}

/* Each SM reads all chunks. */
extern "C" __global__ void __launch_bounds__(1024) screen_l2(const struct kernel_screen s)
{
    struct taker taker = taker_begin(&s, 0);
    uint32_t chunk = (SM_APART * taker.sm + taker.warp) % s.chunks;
    uint64_t sum = 0;
    long long begin = clock64();
#pragma unroll 1
    for (; taker.period < s.periods; taker.period++)
#pragma unroll 1
        for (uint32_t step = 0; step < SCREEN_STEPS_L2; step++) {
            uint4 read[READS];
            READ_CHUNK("ld.global.cg.v4.u32", s.data + (uint64_t)chunk * CHUNK_BYTES, read);
            sum = take_chunk(&taker, step * SCREEN_TAKEN_L2, read, chunk, sum);
            chunk = chunk_after(chunk, 32, s.chunks);
        }
    check_store(s.results, begin, sum);
}

/* All lanes read the same constants, half a chunk in a period. */
extern "C" __global__ void __launch_bounds__(1024) screen_constant(const struct kernel_screen s)
{
    enum { AT_ONCE = SCREEN_TAKEN_CONSTANT / 4 };
    struct taker taker = taker_begin(&s, 0);
    uint64_t sum = 0;
    long long begin = clock64();
#pragma unroll 1
    for (; taker.period < s.periods; taker.period++)
#pragma unroll 1
        for (uint32_t step = 0; step < SCREEN_STEPS_CONSTANT; step++) {
            uint32_t turn = taker.period % SCREEN_PERIODS * SCREEN_STEPS_CONSTANT + step;
            uint32_t chunk = turn * SCREEN_TAKEN_CONSTANT / SCREEN_CHUNK_WORDS;
            struct screen_read sums = {sum, 0};
#pragma unroll
            for (uint32_t i = 0; i < AT_ONCE; i++)
                take_four(&taker, step * SCREEN_TAKEN_CONSTANT, i,
                          screen_constants[turn * AT_ONCE + i], chunk, &sums);
            sum = screen_read_end(&sums);
        }
    check_store(s.results, begin, sum);
}

#if __CUDA_ARCH__ >= 900

extern __shared__ __align__(128) unsigned char screen_shared[];

static __device__ __forceinline__ uint32_t shared_address(const void *at)
{
    return (uint32_t)__cvta_generic_to_shared(at);
}

/* Each block writes its shared memory, other words in each period; then each warp reads what other
 * warps of the neighbour have written. */
extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(1024)
    screen_cluster(const struct kernel_screen s)
{
    enum { APART = 32 / SCREEN_STEPS_CLUSTER };
    struct taker taker = taker_begin(&s, 0);
    uint32_t neighbour, own = shared_address(screen_shared);
    uint64_t sum = 0;
    asm volatile("{ .reg .b32 rank; mov.u32 rank, %%cluster_ctarank; xor.b32 rank, rank, 1;\n\t"
                 "mapa.shared::cluster.u32 %0, %1, rank; }"
                 : "=r"(neighbour)
                 : "r"(own));
    long long begin = clock64();
#pragma unroll 1
    for (; taker.period < s.periods; taker.period++) {
        uint32_t first = taker.period % SCREEN_PERIODS * 32;
#pragma unroll 1
        for (uint32_t j = 0; j < READS; j++) {
            uint32_t at = 4 * taker.lane + j * (WARP_BYTES / 4);
            ((uint4 *)screen_shared)[(taker.warp * SCREEN_CHUNK_WORDS + at) / 4] =
                data_of(at, first + taker.warp, s.inverted);
        }
        asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::
                         : "memory");
#pragma unroll 1
        for (uint32_t step = 0; step < SCREEN_STEPS_CLUSTER; step++) {
            uint32_t of_warp = (taker.warp + taker.period + step * APART) % 32;
            uint32_t from = neighbour + of_warp * CHUNK_BYTES + taker.lane * LANE_BYTES;
            uint4 read[READS];
#pragma unroll
            for (uint32_t j = 0; j < READS; j++)
                asm volatile("ld.shared::cluster.v4.u32 {%0, %1, %2, %3}, [%4];"
                             : "=r"(read[j].x), "=r"(read[j].y), "=r"(read[j].z), "=r"(read[j].w)
                             : "r"(from + j * WARP_BYTES)
                             : "memory");
            sum = take_chunk(&taker, step * SCREEN_TAKEN_CLUSTER, read, first + of_warp, sum);
        }
        asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::
                         : "memory");
    }
    check_store(s.results, begin, sum);
}

/* CUDA 11.8 knows no bulk copies. */
#if __CUDACC_VER_MAJOR__ >= 12

/* A chunk comes by a bulk copy, and goes by another one to the memory behind the chunks. Both are
 * read: in shared memory, and where it went. */
extern "C" __global__ void __launch_bounds__(512) screen_bulk(const struct kernel_screen s)
{
    enum { VISITS = SCREEN_STEPS_BULK / 2 };
    __shared__ __align__(8) uint64_t barriers[16];
    struct taker taker = taker_begin(&s, 0);
    const unsigned char *slot = screen_shared + taker.warp * CHUNK_BYTES;
    uint32_t to = shared_address(slot), barrier = shared_address(&barriers[taker.warp]), phase = 0;
    uint64_t gone = s.data + ((uint64_t)s.chunks + blockIdx.x * 16 + taker.warp) * CHUNK_BYTES;
    uint32_t chunk = (SM_APART * taker.sm + taker.warp) % s.chunks;
    uint64_t sum = 0;
    if (taker.lane == 0)
        barrier_init(barrier);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    __syncthreads();
    long long begin = clock64();
#pragma unroll 1
    for (; taker.period < s.periods; taker.period++)
#pragma unroll 1
        for (uint32_t visit = 0; visit < VISITS; visit++) {
            uint32_t number = 2 * visit * SCREEN_TAKEN_BULK;
            uint4 read[READS];
            asm volatile("fence.proxy.async;" ::: "memory");
            __syncwarp();
            if (taker.lane == 0) {
                barrier_expect(barrier, CHUNK_BYTES);
                asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                             "[%0], [%1], %2, [%3];" ::"r"(to),
                             "l"(s.data + (uint64_t)chunk * CHUNK_BYTES),
                             "r"((uint32_t)CHUNK_BYTES), "r"(barrier)
                             : "memory");
            }
            barrier_wait(barrier, phase++);
            for (uint32_t j = 0; j < READS; j++)
                read[j] = ((const uint4 *)slot)[taker.lane + j * 32];
            sum = take_chunk(&taker, number, read, chunk, sum);
            if (taker.lane == 0) {
                asm volatile(
                    "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(gone),
                    "r"(to), "r"((uint32_t)CHUNK_BYTES)
                    : "memory");
                asm volatile("cp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group 0;" ::
                                 : "memory");
            }
            __syncwarp();
            asm volatile("fence.proxy.async;" ::: "memory");
            READ_CHUNK("ld.global.cg.v4.u32", gone, read);
            sum = take_chunk(&taker, number + SCREEN_TAKEN_BULK, read, chunk, sum);
            chunk = chunk_after(chunk, 16, s.chunks);
        }
    check_store(s.results, begin, sum);
}

#endif
#endif

#endif
