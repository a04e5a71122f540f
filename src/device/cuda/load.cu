/* The kernel of the sustained load: half of the warps of each block multiply matrices, the others
 * read main memory until those are done. So both run during the whole launch, and a launch has a
 * fixed amount of computing. */
#include "kernels.h"

enum { WARPS_COMPUTING = (KERNEL_LOAD_THREADS - KERNEL_LOAD_READERS) / 32 };

static __device__ __forceinline__ uint64_t real_time_ns(void)
{
    uint64_t ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}

#if __CUDA_ARCH__ >= 800

/* Two bf16 numbers of random sign between 1/2 and 2: operands that toggle many wires. */
static __device__ __forceinline__ uint32_t random_pair(uint32_t i)
{
    return (kernel_mixed(i) & 0x80ff80ffu) | 0x3f003f00u;
}

#endif

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/* wgmma: the four warps of a group multiply 64 x 16 by 16 x 128 numbers from shared memory. */
enum { UNIT = KERNEL_LOAD_WGMMA, SLICES = 4, PER_ROUND = 2 * SLICES };
enum { A_SLICE_BYTES = 64 * 16 * 2, B_SLICE_BYTES = 128 * 16 * 2 };
static const uint64_t WARP_OPERATIONS = 2ull * 64 * 128 * 16 * PER_ROUND / 4;

/* Core matrices of 8 rows of 16 bytes lie one after the other: along the rows 128 bytes apart, the
 * second half of the 16 columns behind all of the first. There is no swizzle. */
static __device__ __forceinline__ uint64_t descriptor(const void *matrix, uint32_t bytes)
{
    uint64_t at = (uint64_t)__cvta_generic_to_shared(matrix);
    return (at & 0x3ffff) >> 4 | (uint64_t)(bytes / 2 >> 4) << 16 | (uint64_t)(128 >> 4) << 32;
}

#define D4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define D16(i) D4(i), D4(i + 4), D4(i + 8), D4(i + 12)

/* SIGN -1 subtracts the product: what one slice adds, a later one takes away, so that the sums stay
 * small however long the load lasts. */
template <int SIGN>
static __device__ __forceinline__ void multiply(float d[64], uint64_t a, uint64_t b)
{
    asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
                 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
                 "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
                 "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"
                 "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}, "
                 "%64, %65, 1, %66, 1, 0, 0;"
                 : D16(0), D16(16), D16(32), D16(48)
                 : "l"(a), "l"(b), "n"(SIGN));
}

struct operands {
    alignas(128) uint32_t a[SLICES][A_SLICE_BYTES / 4];
    alignas(128) uint32_t b[SLICES][B_SLICE_BYTES / 4];
};

/* wgmma reads shared memory by another path than stores write it; the fence orders the two. */
static __device__ __forceinline__ void prepare(struct operands *operands)
{
    uint32_t *words = &operands->a[0][0];
    for (uint32_t i = threadIdx.x; i < sizeof *operands / 4; i += blockDim.x)
        words[i] = random_pair(i);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* One group of products is always in flight while the next one is issued. */
static __device__ __forceinline__ float compute(struct operands *operands, uint32_t rounds)
{
    float d[64] = {};
    uint64_t a[SLICES], b[SLICES];
    for (int k = 0; k < SLICES; k++) {
        a[k] = descriptor(operands->a[k], A_SLICE_BYTES);
        b[k] = descriptor(operands->b[k], B_SLICE_BYTES);
    }
    for (uint32_t r = 0; r < rounds; r++) {
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int k = 0; k < SLICES; k++)
            multiply<1>(d, a[k], b[k]);
#pragma unroll
        for (int k = 0; k < SLICES; k++)
            multiply<-1>(d, a[k], b[k]);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    float sum = 0;
    for (int i = 0; i < 64; i++)
        sum += d[i];
    return sum;
}

#elif __CUDA_ARCH__ >= 800

/* mma: each warp multiplies 16 x 16 by 16 x 8 numbers from registers. Eight sums that do not depend
 * on each other hide the latency. */
enum { UNIT = KERNEL_LOAD_MMA, PER_ROUND = 8 };
static const uint64_t WARP_OPERATIONS = 2ull * 16 * 8 * 16 * PER_ROUND;

struct operands {
    uint32_t unused;
};

static __device__ __forceinline__ void prepare(struct operands *operands)
{
    (void)operands;
}

/* The signs of A change with each round: what one round adds, the next one takes away. */
static __device__ __forceinline__ float compute(struct operands *operands, uint32_t rounds)
{
    float d[PER_ROUND][4] = {}, sum = 0;
    uint32_t a[4], b[2][2];
    for (int i = 0; i < 4; i++)
        a[i] = random_pair(8 * threadIdx.x + i);
    for (int i = 0; i < 4; i++)
        b[i / 2][i % 2] = random_pair(8 * threadIdx.x + 4 + i);
    (void)operands;
#pragma unroll 2
    for (uint32_t r = 0; r < rounds; r++) {
#pragma unroll
        for (int i = 0; i < PER_ROUND; i++)
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                         "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                         : "+f"(d[i][0]), "+f"(d[i][1]), "+f"(d[i][2]), "+f"(d[i][3])
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[i % 2][0]),
                           "r"(b[i % 2][1]));
#pragma unroll
        for (int i = 0; i < 4; i++)
            a[i] ^= 0x80008000u;
    }
    for (int i = 0; i < 4 * PER_ROUND; i++)
        sum += d[i / 4][i % 4];
    return sum;
}

#else

/* FP32: each thread has sixteen sums that do not depend on each other. */
enum { UNIT = KERNEL_LOAD_FP32, SUMS = 16, PER_ROUND = 4 * SUMS };
static const uint64_t WARP_OPERATIONS = 2ull * 32 * PER_ROUND;

struct operands {
    uint32_t unused;
};

static __device__ __forceinline__ void prepare(struct operands *operands)
{
    (void)operands;
}

static __device__ __forceinline__ float compute(struct operands *operands, uint32_t rounds)
{
    float d[SUMS], sum = 0;
    float factor = -0.75f - 0.001f * (float)(threadIdx.x & 63), addend = 1.0f / (1 + threadIdx.x);
    for (int i = 0; i < SUMS; i++)
        d[i] = (float)i;
    (void)operands;
    for (uint32_t r = 0; r < rounds; r++)
#pragma unroll
        for (int i = 0; i < PER_ROUND; i++)
            asm volatile("fma.rn.f32 %0, %0, %1, %2;"
                         : "+f"(d[i % SUMS])
                         : "f"(factor), "f"(addend));
    for (int i = 0; i < SUMS; i++)
        sum += d[i];
    return sum;
}

#endif

/* The same in all lanes of a warp, so that they leave a loop together. */
static __device__ __forceinline__ uint32_t warps_done(const volatile uint32_t *done)
{
    return __shfl_sync(0xffffffffu, *done, 0);
}

/* Reads chunks until the computing warps are done, or `rounds` chunks if none computes. Blocks take
 * every gridDim.x-th chunk; the memory is far larger than L2, so none is read twice from there. */
static __device__ __forceinline__ uint32_t read_chunks(const struct kernel_load *load,
                                                       const volatile uint32_t *done,
                                                       uint64_t *out_bytes)
{
    uint64_t chunk = (load->first_chunk + blockIdx.x) % load->chunks;
    uint32_t reader = threadIdx.x - (KERNEL_LOAD_THREADS - KERNEL_LOAD_READERS), sum = 0, read = 0;
    bool computes = load->what & KERNEL_LOAD_COMPUTES;
    while (computes ? warps_done(done) < WARPS_COMPUTING : read < load->rounds) {
        const uint4 *at = (const uint4 *)(load->base + chunk * KERNEL_LOAD_CHUNK_BYTES) + reader;
        uint4 v[KERNEL_LOAD_UNROLL];
#pragma unroll
        for (int u = 0; u < KERNEL_LOAD_UNROLL; u++)
            v[u] = __ldcs(at + u * KERNEL_LOAD_READERS);
#pragma unroll
        for (int u = 0; u < KERNEL_LOAD_UNROLL; u++)
            sum ^= v[u].x ^ v[u].y ^ v[u].z ^ v[u].w;
        chunk += gridDim.x;
        chunk -= chunk >= load->chunks ? load->chunks : 0;
        read++;
    }
    *out_bytes = (uint64_t)read * KERNEL_LOAD_UNROLL * 16;
    return sum;
}

static __device__ __forceinline__ void add(uint64_t *to, uint64_t number)
{
    atomicAdd((unsigned long long *)to, (unsigned long long)number);
}

/* Lane 0 counts the work of its warp. */
extern "C" __global__ void __launch_bounds__(KERNEL_LOAD_THREADS, 1)
    load_both(const struct kernel_load load)
{
    __shared__ struct operands operands;
    __shared__ volatile uint32_t done;
    struct kernel_load_result *result = (struct kernel_load_result *)load.result;
    uint32_t kept = 0;
    if (threadIdx.x == 0)
        done = 0;
    prepare(&operands);
    __syncthreads();
    long long begin = clock64();
    uint64_t begin_ns = real_time_ns(), bytes = 0;
    if (threadIdx.x < KERNEL_LOAD_THREADS - KERNEL_LOAD_READERS) {
        if (load.what & KERNEL_LOAD_COMPUTES) {
            kept = __float_as_uint(compute(&operands, load.rounds));
            if (threadIdx.x % 32 == 0) {
                add(&result->operations, load.rounds * WARP_OPERATIONS);
                atomicAdd((uint32_t *)&done, 1u);
            }
        }
    } else if (load.what & KERNEL_LOAD_READS) {
        kept = read_chunks(&load, &done, &bytes);
        if (threadIdx.x % 32 == 0)
            add(&result->bytes, 32 * bytes);
    }
    if (kept == 0x7fc0dead) /* a sum that practically never comes */
        result->sink = kept;
    __syncthreads();
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        result->cycles += (uint64_t)(clock64() - begin);
        result->elapsed_ns += real_time_ns() - begin_ns;
        result->unit = UNIT;
    }
}

/* Random bits in all of the memory that will be read: equal words would draw less power. */
extern "C" __global__ void load_fill(uint64_t base, uint64_t count)
{
    uint64_t threads = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += threads) {
        uint32_t x = kernel_mixed((uint32_t)i), y = kernel_mixed(x + (uint32_t)(i >> 32));
        __stcs((uint4 *)base + i, make_uint4(x, y, x ^ 0x9e3779b9u, ~y));
    }
}

/* One thread waits while all SMs have nothing to do. stamps: address of the times at which it began
 * and ended. */
extern "C" __global__ void load_pause(uint64_t ns, uint64_t stamps)
{
    uint64_t begin = real_time_ns(), now = begin;
    while (now - begin < ns) {
#if __CUDA_ARCH__ >= 700
        __nanosleep(1000);
#endif
        now = real_time_ns();
    }
    ((uint64_t *)stamps)[0] = begin;
    ((uint64_t *)stamps)[1] = now;
}
