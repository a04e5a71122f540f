/* The kernels of the screen for wrong results: one per path. Each block fills an SM; every warp
 * executes the same program (screen_program.h) and stores its hash. */
#include "screen_block.cuh"
#include "screen_memory.cuh"
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#include "screen_wgmma.cuh"
#endif

/* Paths whose words the host computes, too. */
#define DEFINE_HOST_STEP(ID, name)                                                                 \
    static __device__ uint64_t name##_step(const struct taker *taker, uint32_t step, uint64_t sum) \
    {                                                                                              \
        uint32_t words[SCREEN_WORDS];                                                              \
        screen_##name##_words(taker->at, taker->lane, words);                                      \
        _Pragma("unroll") for (uint32_t i = 0; i < SCREEN_TAKEN_##ID; i++) sum =                   \
            screen_take(taker, step * SCREEN_TAKEN_##ID + i, words[i], sum);                       \
        return sum;                                                                                \
    }

DEFINE_HOST_STEP(INT, int)
DEFINE_HOST_STEP(FP32, fp32)
DEFINE_HOST_STEP(FP64, fp64)
DEFINE_HOST_STEP(PREDICATES, predicates)

#define TAKE(word) sum = screen_take(taker, number++, (word), sum)

#define BINARY(instruction, d, a, b) asm(instruction " %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b))
#define TERNARY(instruction, d, a, b, c)                                                           \
    asm(instruction " %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c))

/* Two numbers of 16 bits at once. */
#if __CUDA_ARCH__ >= 530
static __device__ uint64_t half_step(const struct taker *taker, uint32_t step, uint64_t sum)
{
    uint32_t lane = taker->lane, number = step * SCREEN_TAKEN_HALF;
    uint32_t a = screen_operand(taker->at, lane, 0), b = screen_operand(taker->at, lane, 1), d;
    uint32_t c = screen_operand(taker->at, lane, 2);
    uint32_t near = a ^ 0x80008000u ^ (c & 0x00ff00ffu);
    BINARY("add.rn.f16x2", d, a, b);
    TAKE(d);
    BINARY("add.rn.f16x2", d, a, near);
    TAKE(d);
    BINARY("mul.rn.f16x2", d, a, b);
    TAKE(d);
    TERNARY("fma.rn.f16x2", d, a, b, d ^ 0x80008000u ^ (c & 0x001f001fu));
    TAKE(d);
    TERNARY("fma.rn.f16x2", d, a, b, c);
    TAKE(d);
#if __CUDA_ARCH__ >= 800
    TERNARY("fma.rn.bf16x2", d, a, b, c);
    TAKE(d);
    TERNARY("fma.rn.bf16x2", d, a, 0x3f803f80u, near);
    TAKE(d);
#endif
    return sum;
}
#endif

#define UNARY_FLOAT(instruction, x)                                                                \
    {                                                                                              \
        float d;                                                                                   \
        asm(instruction " %0, %1;" : "=f"(d) : "f"(x));                                            \
        TAKE(screen_float_word(d));                                                                \
    }

/* Of any number, and of numbers near 1, where most of a function's curve lies. */
static __device__ uint64_t special_step(const struct taker *taker, uint32_t step, uint64_t sum)
{
    uint32_t lane = taker->lane, number = step * SCREEN_TAKEN_SPECIAL;
    uint32_t a = screen_operand(taker->at, lane, 0), b = screen_operand(taker->at, lane, 1);
    float any = __uint_as_float(a), positive = __uint_as_float(a & 0x7fffffffu);
    float near = __uint_as_float(0x3c000000u + (b >> 6));
    float other = __uint_as_float(0x3c000000u + (b & 0x3ffffffu));
    UNARY_FLOAT("ex2.approx.f32", near);
    UNARY_FLOAT("lg2.approx.f32", positive);
    UNARY_FLOAT("lg2.approx.f32", other);
    UNARY_FLOAT("sin.approx.f32", near);
    UNARY_FLOAT("cos.approx.f32", any);
    UNARY_FLOAT("rcp.approx.f32", any);
    UNARY_FLOAT("rsqrt.approx.f32", positive);
    UNARY_FLOAT("sqrt.approx.f32", other);
#if __CUDA_ARCH__ >= 750
    UNARY_FLOAT("tanh.approx.f32", near);
#endif
    return sum;
}

static __device__ uint64_t convert_step(const struct taker *taker, uint32_t step, uint64_t sum)
{
    uint32_t lane = taker->lane, number = step * SCREEN_TAKEN_CONVERT;
    uint32_t a = screen_operand(taker->at, lane, 0), b = screen_operand(taker->at, lane, 1);
    uint64_t wide = (uint64_t)a << 32 | b;
    float any = __uint_as_float(a), whole = __uint_as_float(0x40000000u + (a >> 4) + (b & 7));
    double large = __longlong_as_double((long long)(0x3000000000000000u + (wide >> 3)));
    unsigned short half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(whole));
    TAKE(half);
    float back;
    asm("cvt.f32.f16 %0, %1;" : "=f"(back) : "h"((unsigned short)b));
    TAKE(screen_float_word(back));
    TAKE((uint32_t)__float2int_rn(any));
    TAKE(__float2uint_rz(whole));
    TAKE(__float_as_uint(__int2float_rn((int)a)));
    TAKE(__float_as_uint(__uint2float_rd(b)));
    TAKE(screen_double_word((double)any));
    TAKE(screen_float_word(__double2float_rn(large)));
    TAKE((uint32_t)__double2ll_rn(large));
    TAKE(screen_double_word(__ull2double_rn(wide)));
#if __CUDA_ARCH__ >= 800
    unsigned short brain;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(brain) : "f"(whole));
    TAKE(brain);
#endif
    return sum;
}

static __device__ __forceinline__ float texel(uint32_t bits)
{
    return (float)(bits % (SCREEN_TEXELS << 9)) / 512;
}

/* Between four texels, and four texels as they are; the texture has SCREEN_TEXELS in a row. */
static __device__ uint64_t texture_step(const struct taker *taker, uint32_t step, uint64_t sum)
{
    uint32_t a = screen_operand(taker->at, taker->lane, 0),
             b = screen_operand(taker->at, taker->lane, 1);
    uint32_t number = step * SCREEN_TAKEN_TEXTURE;
    float v[4];
    asm volatile("tex.2d.v4.f32.f32 {%0, %1, %2, %3}, [%4, {%5, %6}];"
                 : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3])
                 : "l"(taker->screen->texture), "f"(texel(a)), "f"(texel(a >> 16)));
    for (uint32_t i = 0; i < 4; i++)
        TAKE(screen_float_word(v[i]));
    asm volatile("tex.2d.v4.f32.f32 {%0, %1, %2, %3}, [%4, {%5, %6}];"
                 : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3])
                 : "l"(taker->screen->texture), "f"(texel(b >> 16)), "f"(texel(b)));
    for (uint32_t i = 0; i < 4; i++)
        TAKE(screen_float_word(v[i]));
    asm volatile("tld4.g.2d.v4.f32.f32 {%0, %1, %2, %3}, [%4, {%5, %6}];"
                 : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3])
                 : "l"(taker->screen->texture), "f"(texel(b)), "f"(texel(a)));
    for (uint32_t i = 0; i < 4; i++)
        TAKE(screen_float_word(v[i]));
    return sum;
}

#define ALL_LANES 0xffffffffu

static __device__ uint64_t lanes_step(const struct taker *taker, uint32_t step, uint64_t sum)
{
    uint32_t lane = taker->lane, number = step * SCREEN_TAKEN_LANES;
    uint32_t a = screen_operand(taker->at, lane, 0), b = screen_operand(taker->at, lane, 1);
    TAKE(__shfl_sync(ALL_LANES, a, b % 32));
    TAKE(__shfl_xor_sync(ALL_LANES, a, 1 + step % 31));
    TAKE(__shfl_up_sync(ALL_LANES, a, step % 32));
    TAKE(__shfl_down_sync(ALL_LANES, b, step % 32));
    TAKE(__ballot_sync(ALL_LANES, a >> (step % 32) & 1));
    TAKE((uint32_t)__any_sync(ALL_LANES, (a & 0x1f) == 3) +
         2 * (uint32_t)__all_sync(ALL_LANES, (a & 0x1f) != 7));
#if __CUDA_ARCH__ >= 700
    TAKE(__match_any_sync(ALL_LANES, a % 8));
#endif
#if __CUDA_ARCH__ >= 800
    TAKE(__reduce_add_sync(ALL_LANES, a));
    TAKE(__reduce_xor_sync(ALL_LANES, b));
    TAKE(__reduce_max_sync(ALL_LANES, a) ^ __reduce_and_sync(ALL_LANES, b | 0x0f0f0f0fu));
#endif
    return sum;
}

/* All paths that compute have the same loop. */
#define DEFINE_SCREEN(ID, name, threads)                                                           \
    extern "C" __global__ void __launch_bounds__(threads)                                          \
        screen_##name(const struct kernel_screen s)                                                \
    {                                                                                              \
        struct taker taker = taker_begin(&s, SCREEN_STEPS_##ID);                                   \
        uint64_t sum = 0;                                                                          \
        long long begin = clock64();                                                               \
        _Pragma("unroll 1") for (; taker.period < s.periods; taker.period++)                       \
            _Pragma("unroll 1") for (uint32_t step = 0; step < SCREEN_STEPS_##ID;                  \
                                     step++, taker.at++) sum = name##_step(&taker, step, sum);     \
        check_store(s.results, begin, sum);                                                        \
    }

DEFINE_SCREEN(INT, int, 1024)
DEFINE_SCREEN(FP32, fp32, 1024)
DEFINE_SCREEN(FP64, fp64, 1024)
#if __CUDA_ARCH__ >= 530
DEFINE_SCREEN(HALF, half, 1024)
#endif
DEFINE_SCREEN(SPECIAL, special, 1024)
DEFINE_SCREEN(CONVERT, convert, 1024)
DEFINE_SCREEN(LANES, lanes, 1024)
DEFINE_SCREEN(PREDICATES, predicates, 1024)
DEFINE_SCREEN(TEXTURE, texture, 1024)

#if __CUDA_ARCH__ >= 800
/* The tensor units by mma: in each step other operands for A and for four tiles of B. Products with
 * a tile and with its opposite take turns, so that sums cancel out; for every second tile the other
 * one is any other. Each sum begins at 0 and is added up, so that what is wrong in it does not
 * vanish beside larger numbers later. So many products that the tensor units are busy for most of
 * the time. */
enum { MMA_TILES = 4 };

/* What a lane has of a tile's sum: four words. A wrong one changes the result. */
static __device__ __forceinline__ uint32_t add_up(uint32_t sums, const void *sum)
{
    uint32_t words[4];
    memcpy(words, sum, sizeof words);
    for (uint32_t i = 0; i < 4; i++)
        sums = sums * 0x9e3779b1u + words[i];
    return sums;
}

/* The number of the first of them, for the armed build. */
#define MMA_NUMBER(sum, product, tile)                                                             \
    ((((sum)*SCREEN_MMA_PRODUCTS + (product)) * MMA_TILES + (tile)) * 4)

/* A product of all tiles. */
#define MMA_ALL(instruction, b, sum, product)                                                      \
    _Pragma("unroll") for (uint32_t t = 0; t < MMA_TILES; t++)                                     \
    {                                                                                              \
        instruction(d[t], a, (b)[t]);                                                              \
        SCREEN_ARMED_SUM(MMA_NUMBER(sum, product, t), d[t]);                                       \
    }

#define BITS_float(x) __float_as_uint(x)
#define BITS_uint32_t(x) (x)

#define MMA_SCREEN_STEP(name, number, instruction, form, negative)                                 \
    static __device__ uint64_t name##_step(const struct taker *taker, uint32_t step, uint64_t sum) \
    {                                                                                              \
        uint32_t a[4], b[MMA_TILES][2], other[MMA_TILES][2], sums[MMA_TILES] = {};                 \
        uint32_t of_a = screen_exponent(taker->at, false, SCREEN_BF16_EXPONENT);                   \
        uint32_t of_b = screen_exponent(taker->at, true, SCREEN_BF16_EXPONENT);                    \
        number d[MMA_TILES][4];                                                                    \
        _Pragma("unroll") for (uint32_t i = 0; i < 4; i++) a[i] =                                  \
            SCREEN_FORMED(form, of_a, taker->at, taker->lane, i);                                  \
        _Pragma("unroll") for (uint32_t t = 0; t < MMA_TILES; t++)                                 \
            _Pragma("unroll") for (uint32_t i = 0; i < 2; i++)                                     \
        {                                                                                          \
            b[t][i] = SCREEN_FORMED(form, of_b, taker->at, taker->lane, 4 + 2 * t + i);            \
            other[t][i] = t % 2 ? form(b[t][i] * 0x9e3779b1u, of_b) : b[t][i] ^ negative;          \
        }                                                                                          \
        _Pragma("unroll 1") for (uint32_t k = 0; k < SCREEN_MMA_SUMS; k++)                         \
        {                                                                                          \
            _Pragma("unroll") for (uint32_t t = 0; t < MMA_TILES; t++)                             \
                _Pragma("unroll") for (uint32_t i = 0; i < 4; i++) d[t][i] = 0;                    \
            _Pragma("unroll 1") for (uint32_t p = 0; p + 1 < SCREEN_MMA_PRODUCTS;                  \
                                     p += 2){MMA_ALL(instruction, b, k, p) MMA_ALL(                \
                instruction, other, k, p + 1)} MMA_ALL(instruction, b, k, SCREEN_MMA_PRODUCTS - 1) \
                _Pragma("unroll") for (uint32_t t = 0; t < MMA_TILES; t++) sums[t] =               \
                    add_up(sums[t], d[t]);                                                         \
        }                                                                                          \
        uint32_t at = step * SCREEN_TAKEN_MMA_F16;                                                 \
        _Pragma("unroll") for (uint32_t t = 0; t < MMA_TILES; t++)                                 \
            _Pragma("unroll") for (uint32_t i = 0; i < 4; i++) sum =                               \
                screen_take(taker, at++, BITS_##number(d[t][i]), sum);                             \
        _Pragma("unroll") for (uint32_t t = 0; t < MMA_TILES; t++) sum =                           \
            screen_take(taker, at++, sums[t], sum);                                                \
        return sum;                                                                                \
    }

#define MMA_4_2(words, d, a, b, of)                                                                \
    asm volatile(words " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"          \
                 : "+" of((d)[0]), "+" of((d)[1]), "+" of((d)[2]), "+" of((d)[3])                  \
                 : "r"((a)[0]), "r"((a)[1]), "r"((a)[2]), "r"((a)[3]), "r"((b)[0]), "r"((b)[1]))
#define MMA_F16(d, a, b) MMA_4_2("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", d, a, b, "f")
#define MMA_BF16(d, a, b)                                                                          \
    MMA_4_2("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", d, a, b, "f")
#define MMA_TF32(d, a, b)                                                                          \
    MMA_4_2("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", d, a, b, "f")
#define MMA_INT8(d, a, b) MMA_4_2("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", d, a, b, "r")
#define MMA_FP8(d, a, b)                                                                           \
    MMA_4_2("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", d, a, b, "f")

MMA_SCREEN_STEP(mma_f16, float, MMA_F16, screen_f16, 0x80008000u)
MMA_SCREEN_STEP(mma_bf16, float, MMA_BF16, screen_bf16, 0x80008000u)
MMA_SCREEN_STEP(mma_tf32, float, MMA_TF32, screen_tf32, 0x80000000u)
MMA_SCREEN_STEP(mma_int8, uint32_t, MMA_INT8, screen_int8, 0xffffffffu)
#if HAS_MMA_FP8
MMA_SCREEN_STEP(mma_fp8, float, MMA_FP8, screen_fp8, 0x80808080u)
#endif

static __device__ __forceinline__ void mma_fp64(double d[2], double a, double b)
{
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                 : "+d"(d[0]), "+d"(d[1])
                 : "d"(a), "d"(b));
}

static __device__ uint64_t mma_fp64_step(const struct taker *taker, uint32_t step, uint64_t sum)
{
    double d[MMA_TILES][2], b[MMA_TILES], other[MMA_TILES];
    uint32_t of_a = screen_exponent(taker->at, false, SCREEN_FP64_EXPONENT);
    uint32_t of_b = screen_exponent(taker->at, true, SCREEN_FP64_EXPONENT);
    uint32_t sums[MMA_TILES] = {};
    double a = screen_fp64_number(of_a, taker->at, taker->lane, 0);
#pragma unroll
    for (uint32_t t = 0; t < MMA_TILES; t++) {
        b[t] = screen_fp64_number(of_b, taker->at, taker->lane, 2 + 2 * t);
        other[t] = t % 2 ? -0.75 * b[t] : -b[t];
    }
#pragma unroll 1
    for (uint32_t k = 0; k < SCREEN_MMA_SUMS; k++) {
#pragma unroll
        for (uint32_t t = 0; t < MMA_TILES; t++)
            d[t][0] = d[t][1] = 0;
#pragma unroll 1
        for (uint32_t p = 0; p + 1 < SCREEN_MMA_PRODUCTS; p += 2) {
            MMA_ALL(mma_fp64, b, k, p)
            MMA_ALL(mma_fp64, other, k, p + 1)
        }
        MMA_ALL(mma_fp64, b, k, SCREEN_MMA_PRODUCTS - 1)
#pragma unroll
        for (uint32_t t = 0; t < MMA_TILES; t++)
            sums[t] = add_up(sums[t], d[t]);
    }
    uint32_t at = step * SCREEN_TAKEN_MMA_FP64;
#pragma unroll
    for (uint32_t t = 0; t < MMA_TILES; t++)
#pragma unroll
        for (uint32_t i = 0; i < 2; i++)
            sum = screen_take(taker, at++, screen_double_word(d[t][i]), sum);
#pragma unroll
    for (uint32_t t = 0; t < MMA_TILES; t++)
        sum = screen_take(taker, at++, sums[t], sum);
    return sum;
}

DEFINE_SCREEN(MMA_F16, mma_f16, 512)
DEFINE_SCREEN(MMA_BF16, mma_bf16, 512)
DEFINE_SCREEN(MMA_TF32, mma_tf32, 512)
DEFINE_SCREEN(MMA_INT8, mma_int8, 512)
#if HAS_MMA_FP8
DEFINE_SCREEN(MMA_FP8, mma_fp8, 512)
#endif
DEFINE_SCREEN(MMA_FP64, mma_fp64, 512)
#endif
