/* The kernels that check whether SMs compute right: one per unit. Each block fills an SM; every
 * warp executes the same program (check_program.h) and stores its hash. */
#include "../check_program.h"
#include "check_block.cuh"
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#include "check_wgmma.cuh"
#endif

enum { CHECK_UNROLL = 16 };

/* Of y, x and the factor; Kepler has no instruction for all three. */
#if __CUDA_ARCH__ >= 500
#define EXCLUSIVE_OR "lop3.b32 %1, %1, %0, %2, 0x96;"
#else
#define EXCLUSIVE_OR "xor.b32 %1, %1, %0;\n\txor.b32 %1, %1, %2;"
#endif

/* Integer: a multiplication with addition and a logical operation, which use two pipes. */
static __device__ __forceinline__ uint32_t int_period(uint32_t seed, uint32_t lane)
{
    uint32_t x[CHECK_CHAINS], y[CHECK_CHAINS], word = 0;
#pragma unroll
    for (uint32_t k = 0; k < CHECK_CHAINS; k++) {
        x[k] = check_start(seed, lane, k);
        y[k] = ~x[k];
    }
#pragma unroll CHECK_UNROLL
    for (uint32_t s = 0; s < CHECK_STEPS; s++)
#pragma unroll
        for (uint32_t k = 0; k < CHECK_CHAINS; k++)
            asm volatile("mad.lo.u32 %0, %0, %2, %3;\n\t" EXCLUSIVE_OR
                         : "+r"(x[k]), "+r"(y[k])
                         : "r"(CHECK_FACTOR), "r"(CHECK_ADDEND));
#pragma unroll
    for (uint32_t k = 0; k < CHECK_CHAINS; k++)
        word += x[k] ^ y[k];
    return word;
}

static __device__ __forceinline__ uint32_t fp32_period(uint32_t seed, uint32_t lane)
{
    float x[CHECK_CHAINS], c[CHECK_CHAINS];
    uint32_t word = 0;
#pragma unroll
    for (uint32_t k = 0; k < CHECK_CHAINS; k++) {
        uint32_t start = check_start(seed, lane, k);
        x[k] = __uint_as_float(check_fp32_x(start));
        c[k] = __uint_as_float(check_fp32_c(start));
    }
#pragma unroll CHECK_UNROLL
    for (uint32_t s = 0; s < CHECK_STEPS; s++)
#pragma unroll
        for (uint32_t k = 0; k < CHECK_CHAINS; k++)
            asm volatile("{ .reg .f32 n; neg.f32 n, %0; fma.rn.f32 %0, n, %0, %1; }"
                         : "+f"(x[k])
                         : "f"(c[k]));
#pragma unroll
    for (uint32_t k = 0; k < CHECK_CHAINS; k++)
        word += __float_as_uint(x[k]);
    return word;
}

static __device__ __forceinline__ uint32_t fp64_period(uint32_t seed, uint32_t lane)
{
    double x[CHECK_CHAINS], c[CHECK_CHAINS];
    uint32_t word = 0;
#pragma unroll
    for (uint32_t k = 0; k < CHECK_CHAINS; k++) {
        uint32_t start = check_start(seed, lane, k);
        x[k] = __longlong_as_double((long long)check_fp64_x(start));
        c[k] = __longlong_as_double((long long)check_fp64_c(start));
    }
#pragma unroll CHECK_UNROLL
    for (uint32_t s = 0; s < CHECK_STEPS; s++)
#pragma unroll
        for (uint32_t k = 0; k < CHECK_CHAINS; k++)
            asm volatile("{ .reg .f64 n; neg.f64 n, %0; fma.rn.f64 %0, n, %0, %1; }"
                         : "+d"(x[k])
                         : "d"(c[k]));
#pragma unroll
    for (uint32_t k = 0; k < CHECK_CHAINS; k++) {
        uint64_t bits = (uint64_t)__double_as_longlong(x[k]);
        word += (uint32_t)bits ^ (uint32_t)(bits >> 32);
    }
    return word;
}

#if __CUDA_ARCH__ >= 800
/* The tensor units by mma. Tile t of B is negated in nb. Layout of the fragments: PTX manual,
 * mma.m16n8k16 (2 bytes) and mma.m16n8k32 (1 byte). */
struct fragments {
    uint32_t a[4];
    uint32_t b[CHECK_TILES][2], nb[CHECK_TILES][2];
};

/* Packs the elements from column on that one register holds: 2 of 2 bytes or 4 of 1 byte. */
static __device__ uint32_t pack(const struct check_format format, uint32_t seed, uint32_t tile,
                                uint32_t row, uint32_t column, uint32_t negative)
{
    uint32_t word = 0, bits = 8 * format.bytes;
    for (uint32_t i = 0; i < 4 / format.bytes; i++) {
        int32_t value = check_element(seed, tile, row, column + i, format.limit);
        word |= check_number(negative ? -value : value, format.exponent, format.mantissa)
                << (i * bits);
    }
    return word;
}

static __device__ void fill_fragments(const struct check_format format, uint32_t seed,
                                      uint32_t lane, struct fragments *f)
{
    uint32_t group = lane / 4, each = 4 / format.bytes, half = 16 / format.bytes;
    uint32_t column = lane % 4 * each;
    for (uint32_t r = 0; r < 4; r++)
        f->a[r] = pack(format, seed, 0, group + 8 * (r & 1), column + half * (r >> 1), 0);
    for (uint32_t t = 0; t < CHECK_TILES; t++)
        for (uint32_t r = 0; r < 2; r++) {
            f->b[t][r] = pack(format, seed, 1 + t, group, column + half * r, 0);
            f->nb[t][r] = pack(format, seed, 1 + t, group, column + half * r, 1);
        }
}

#define MMA(instruction, d, a, b)                                                                  \
    asm volatile(instruction " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"    \
                 : "+f"((d)[0]), "+f"((d)[1]), "+f"((d)[2]), "+f"((d)[3])                          \
                 : "r"((a)[0]), "r"((a)[1]), "r"((a)[2]), "r"((a)[3]), "r"((b)[0]), "r"((b)[1]))

#define DEFINE_MMA_PERIOD(name, instruction)                                                       \
    static __device__ __forceinline__ uint64_t name##_period(const struct fragments *f,            \
                                                             uint64_t sum)                         \
    {                                                                                              \
        float d[CHECK_TILES][4] = {};                                                              \
        _Pragma("unroll 1") for (uint32_t s = 0; s < CHECK_TENSOR_STEPS / 2; s++)                  \
        {                                                                                          \
            _Pragma("unroll") for (uint32_t t = 0; t < CHECK_TILES; t++)                           \
                MMA(instruction, d[t], f->a, f->b[t]);                                             \
            _Pragma("unroll") for (uint32_t t = 0; t < CHECK_TILES; t++)                           \
                MMA(instruction, d[t], f->a, f->nb[t]);                                            \
        }                                                                                          \
        _Pragma("unroll") for (uint32_t t = 0; t < CHECK_TILES; t++)                               \
        {                                                                                          \
            MMA(instruction, d[t], f->a, f->b[t]);                                                 \
            _Pragma("unroll") for (uint32_t i = 0; i < 4; i++) sum =                               \
                check_fold(sum, (uint32_t)(int32_t)d[t][i]);                                       \
        }                                                                                          \
        return sum;                                                                                \
    }

DEFINE_MMA_PERIOD(f16, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
DEFINE_MMA_PERIOD(bf16, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32")
#endif
#if HAS_MMA_FP8
DEFINE_MMA_PERIOD(fp8, "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32")
#endif

/* A period that gives one word. */
#define DEFINE_WORD_CHECK(name)                                                                    \
    extern "C" __global__ void __launch_bounds__(1024) check_##name(const struct kernel_check c)   \
    {                                                                                              \
        uint32_t lane = threadIdx.x % 32;                                                          \
        uint64_t sum = 0;                                                                          \
        if (!check_takes_part(&c))                                                                 \
            return;                                                                                \
        long long begin = clock64();                                                               \
        _Pragma("unroll 1") for (uint32_t p = 0; p < c.periods; p++) sum =                         \
            check_fold(sum, name##_period(c.seed, lane));                                          \
        check_store(c.results, begin, sum);                                                        \
    }

#define DEFINE_MMA_CHECK(name, format)                                                             \
    extern "C" __global__ void __launch_bounds__(512)                                              \
        check_mma_##name(const struct kernel_check c)                                              \
    {                                                                                              \
        struct fragments f;                                                                        \
        uint64_t sum = 0;                                                                          \
        if (!check_takes_part(&c))                                                                 \
            return;                                                                                \
        fill_fragments(format, c.seed, threadIdx.x % 32, &f);                                      \
        long long begin = clock64();                                                               \
        _Pragma("unroll 1") for (uint32_t p = 0; p < c.periods; p++) sum = name##_period(&f, sum); \
        check_store(c.results, begin, sum);                                                        \
    }

DEFINE_WORD_CHECK(int)
DEFINE_WORD_CHECK(fp32)
DEFINE_WORD_CHECK(fp64)
#if __CUDA_ARCH__ >= 800
DEFINE_MMA_CHECK(f16, CHECK_F16)
DEFINE_MMA_CHECK(bf16, CHECK_BF16)
#endif
#if HAS_MMA_FP8
DEFINE_MMA_CHECK(fp8, CHECK_FP8)
#endif

/* The whole shared memory of the SM: one section per warp. In each period every warp writes its own
 * section and reads that of another warp, always another one. */
extern "C" __global__ void __launch_bounds__(1024) check_shared(const struct kernel_check c)
{
    extern __shared__ uint32_t words[];
    uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    uint64_t sum = 0;
    long long begin = clock64();
    for (uint32_t p = 0; p < c.periods; p++) {
        uint32_t *own = words + warp * c.section_words;
        uint32_t *other = words + (warp + 1 + p % (warps - 1)) % warps * c.section_words;
        for (uint32_t i = lane; i < c.section_words; i += 32)
            own[i] = check_shared_word(c.seed, i, p);
        __syncthreads();
        for (uint32_t i = lane; i < c.section_words; i += 32)
            sum = check_fold(sum, other[i]);
        __syncthreads();
    }
    check_store(c.results, begin, sum);
}

/* The registers of 256 threads: most of an SM's register file. */
extern "C" __global__ void __launch_bounds__(256, 1) check_registers(const struct kernel_check c)
{
    uint32_t lane = threadIdx.x % 32, r[CHECK_REGISTERS];
    uint64_t sum = 0;
    long long begin = clock64();
    for (uint32_t p = 0; p < c.periods; p++) {
#pragma unroll
        for (uint32_t i = 0; i < CHECK_REGISTERS; i++)
            r[i] = check_start(c.seed, lane, i) ^ (p & 1 ? 0xffffffffu : 0);
#pragma unroll 1
        for (uint32_t round = 0; round < CHECK_REGISTER_ROUNDS; round++)
#pragma unroll
            for (uint32_t i = 0; i < CHECK_REGISTERS; i++)
                r[i] = check_register_step(r[i], r[(i + 1) % CHECK_REGISTERS]);
#pragma unroll
        for (uint32_t i = 0; i < CHECK_REGISTERS; i++)
            sum = check_fold(sum, r[i]);
    }
    check_store(c.results, begin, sum);
}

static __device__ void use_atomics(uint32_t *words, uint32_t lane, uint32_t value, uint32_t warp)
{
    atomicAdd(words + lane, value);
    atomicXor(words + 32 + lane, value * (2 * warp + 1));
    atomicMax(words + 64 + lane, value);
}

/* Atomics in L2, on words of the block alone, and in shared memory. */
extern "C" __global__ void __launch_bounds__(1024) check_atomics(const struct kernel_check c)
{
    __shared__ uint32_t words[CHECK_ATOMIC_WORDS];
    uint32_t *global = (uint32_t *)c.words + blockIdx.x * CHECK_ATOMIC_WORDS;
    uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    uint64_t sum = 0;
    if (threadIdx.x < CHECK_ATOMIC_WORDS) {
        words[threadIdx.x] = 0;
        atomicExch(global + threadIdx.x, 0);
    }
    __syncthreads();
    long long begin = clock64();
    for (uint32_t p = 0; p < c.periods; p++) {
        uint32_t value = check_atomic_value(c.seed, lane, p);
        use_atomics(global, lane, value, warp);
        use_atomics(words, lane, value, warp);
    }
    __threadfence();
    __syncthreads();
    for (uint32_t i = lane; i < CHECK_ATOMIC_WORDS; i += 32) {
        sum = check_fold(sum, __ldcg(global + i));
        sum = check_fold(sum, words[i]);
    }
    check_store(c.results, begin, sum);
}
