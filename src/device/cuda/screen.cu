/* The kernels of the screen for wrong results: one per path. Each block fills an SM; every warp
 * executes the same program (screen_program.h) and stores its hash. */
#include "screen_block.cuh"
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#include "screen_wgmma.cuh"
#endif

/* Paths whose words the host computes, too. */
#define DEFINE_HOST_SCREEN(name)                                                                   \
    static __device__ uint64_t name##_step(const struct kernel_screen *s, uint32_t p,              \
                                           uint32_t step, uint32_t lane, uint64_t sum)             \
    {                                                                                              \
        uint32_t words[SCREEN_WORDS];                                                              \
        uint32_t count = screen_##name##_words(step, lane, words);                                 \
        _Pragma("unroll") for (uint32_t i = 0; i < SCREEN_WORDS; i++) if (i < count) sum =         \
            screen_take(s, p, step * SCREEN_WORDS + i, words[i], sum);                             \
        return sum;                                                                                \
    }

DEFINE_HOST_SCREEN(int)
DEFINE_HOST_SCREEN(fp32)
DEFINE_HOST_SCREEN(fp64)

#define TAKE(word) sum = screen_take(s, p, step * SCREEN_WORDS + taken++, (word), sum)

#define BINARY(instruction, d, a, b) asm(instruction " %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b))
#define TERNARY(instruction, d, a, b, c)                                                           \
    asm(instruction " %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c))

/* Two numbers of 16 bits at once. */
#if __CUDA_ARCH__ >= 530
static __device__ uint64_t half_step(const struct kernel_screen *s, uint32_t p, uint32_t step,
                                     uint32_t lane, uint64_t sum)
{
    uint32_t a = screen_operand(step, lane, 0), b = screen_operand(step, lane, 1), d;
    uint32_t c = screen_operand(step, lane, 2), taken = 0;
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

/* Of any number, and of one near 1, where most of a function's curve lies. */
static __device__ uint64_t special_step(const struct kernel_screen *s, uint32_t p, uint32_t step,
                                        uint32_t lane, uint64_t sum)
{
    uint32_t a = screen_operand(step, lane, 0), b = screen_operand(step, lane, 1), taken = 0;
    float any = __uint_as_float(a & 0x7fffffffu), near = __uint_as_float(0x3c000000u + (b >> 6));
    UNARY_FLOAT("ex2.approx.f32", near);
    UNARY_FLOAT("lg2.approx.f32", any);
    UNARY_FLOAT("lg2.approx.f32", near);
    UNARY_FLOAT("sin.approx.f32", near);
    UNARY_FLOAT("cos.approx.f32", any);
    UNARY_FLOAT("rcp.approx.f32", any);
    UNARY_FLOAT("rsqrt.approx.f32", any);
    UNARY_FLOAT("sqrt.approx.f32", near);
#if __CUDA_ARCH__ >= 750
    UNARY_FLOAT("tanh.approx.f32", near);
#endif
    return sum;
}

static __device__ uint64_t convert_step(const struct kernel_screen *s, uint32_t p, uint32_t step,
                                        uint32_t lane, uint64_t sum)
{
    uint32_t a = screen_operand(step, lane, 0), b = screen_operand(step, lane, 1), taken = 0;
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

#define ALL_LANES 0xffffffffu

static __device__ uint64_t lanes_step(const struct kernel_screen *s, uint32_t p, uint32_t step,
                                      uint32_t lane, uint64_t sum)
{
    uint32_t a = screen_operand(step, lane, 0), b = screen_operand(step, lane, 1), taken = 0;
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

#define DEFINE_SCREEN(name)                                                                        \
    extern "C" __global__ void __launch_bounds__(1024) screen_##name(const struct kernel_screen s) \
    {                                                                                              \
        uint32_t lane = threadIdx.x % 32;                                                          \
        uint64_t sum = 0;                                                                          \
        long long begin = clock64();                                                               \
        _Pragma("unroll 1") for (uint32_t p = 0; p < s.periods; p++)                               \
            _Pragma("unroll 1") for (uint32_t step = 0; step < SCREEN_STEPS; step++) sum =         \
                name##_step(&s, p, step, lane, sum);                                               \
        check_store(s.results, begin, sum);                                                        \
    }

DEFINE_SCREEN(int)
DEFINE_SCREEN(fp32)
DEFINE_SCREEN(fp64)
#if __CUDA_ARCH__ >= 530
DEFINE_SCREEN(half)
#endif
DEFINE_SCREEN(special)
DEFINE_SCREEN(convert)
DEFINE_SCREEN(lanes)

#if __CUDA_ARCH__ >= 800
/* The tensor units by mma: in each step other operands for A and for four tiles of B, of which
 * every second one is followed by its opposite, so that sums cancel out. */
enum { MMA_TILES = 4, MMA_ROUNDS = 4, MMA_STEPS = 8 };

#define MMA_SCREEN_STEP(name, number, instruction, a_words, b_words, form, negative)               \
    static __device__ uint64_t name##_step(const struct kernel_screen *s, uint32_t p,              \
                                           uint32_t step, uint32_t lane, uint64_t sum)             \
    {                                                                                              \
        uint32_t a[a_words], b[MMA_TILES][b_words], nb[MMA_TILES][b_words];                        \
        number d[MMA_TILES][4] = {};                                                               \
        _Pragma("unroll") for (uint32_t i = 0; i < a_words; i++) a[i] =                            \
            form(screen_operand(step, lane, i));                                                   \
        _Pragma("unroll") for (uint32_t t = 0; t < MMA_TILES; t++)                                 \
            _Pragma("unroll") for (uint32_t i = 0; i < b_words; i++)                               \
        {                                                                                          \
            b[t][i] = form(screen_operand(step, lane, 4 + 2 * t + i));                             \
            nb[t][i] = t % 2 ? form(b[t][i] * 0x9e3779b1u) : b[t][i] ^ negative;                   \
        }                                                                                          \
        _Pragma("unroll 1") for (uint32_t r = 0; r < MMA_ROUNDS; r++)                              \
        {                                                                                          \
            _Pragma("unroll") for (uint32_t t = 0; t < MMA_TILES; t++) instruction(d[t], a, b[t]); \
            _Pragma("unroll") for (uint32_t t = 0; t < MMA_TILES; t++)                             \
                instruction(d[t], a, nb[t]);                                                       \
        }                                                                                          \
        _Pragma("unroll") for (uint32_t t = 0; t < MMA_TILES; t++) instruction(d[t], a, b[t]);     \
        _Pragma("unroll") for (uint32_t t = 0; t < MMA_TILES; t++)                                 \
            _Pragma("unroll") for (uint32_t i = 0; i < 4; i++) sum =                               \
                screen_take(s, p, (step * MMA_TILES + t) * 4 + i, *(uint32_t *)&d[t][i], sum);     \
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
#define ANY_BITS(bits) (bits)

MMA_SCREEN_STEP(mma_f16, float, MMA_F16, 4, 2, screen_f16, 0x80008000u)
MMA_SCREEN_STEP(mma_bf16, float, MMA_BF16, 4, 2, screen_bf16, 0x80008000u)
MMA_SCREEN_STEP(mma_tf32, float, MMA_TF32, 4, 2, screen_bf16_high, 0x80000000u)
MMA_SCREEN_STEP(mma_int8, uint32_t, MMA_INT8, 4, 2, ANY_BITS, 0xffffffffu)

static __device__ uint64_t mma_fp64_step(const struct kernel_screen *s, uint32_t p, uint32_t step,
                                         uint32_t lane, uint64_t sum)
{
    double d[MMA_TILES][2] = {}, a, b[MMA_TILES];
    a = __longlong_as_double((long long)screen_fp64(screen_operand64(step, lane, 0)));
#pragma unroll
    for (uint32_t t = 0; t < MMA_TILES; t++)
        b[t] =
            __longlong_as_double((long long)screen_fp64(screen_operand64(step, lane, 2 + 2 * t)));
#pragma unroll
    for (uint32_t r = 0; r < 2 * MMA_ROUNDS + 1; r++)
#pragma unroll
        for (uint32_t t = 0; t < MMA_TILES; t++) {
            double factor = r % 2 ? t % 2 ? -0.75 * b[t] : -b[t] : b[t];
            asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, "
                         "{%0, %1};"
                         : "+d"(d[t][0]), "+d"(d[t][1])
                         : "d"(a), "d"(factor));
        }
#pragma unroll
    for (uint32_t t = 0; t < MMA_TILES; t++)
#pragma unroll
        for (uint32_t i = 0; i < 2; i++)
            sum =
                screen_take(s, p, (step * MMA_TILES + t) * 2 + i, screen_double_word(d[t][i]), sum);
    return sum;
}

#define DEFINE_MMA_SCREEN(name)                                                                    \
    extern "C" __global__ void __launch_bounds__(512) screen_##name(const struct kernel_screen s)  \
    {                                                                                              \
        uint32_t lane = threadIdx.x % 32;                                                          \
        uint64_t sum = 0;                                                                          \
        long long begin = clock64();                                                               \
        _Pragma("unroll 1") for (uint32_t p = 0; p < s.periods; p++)                               \
            _Pragma("unroll 1") for (uint32_t step = 0; step < MMA_STEPS; step++) sum =            \
                name##_step(&s, p, step, lane, sum);                                               \
        check_store(s.results, begin, sum);                                                        \
    }
DEFINE_MMA_SCREEN(mma_f16)
DEFINE_MMA_SCREEN(mma_bf16)
DEFINE_MMA_SCREEN(mma_tf32)
DEFINE_MMA_SCREEN(mma_int8)
DEFINE_MMA_SCREEN(mma_fp64)
#endif
