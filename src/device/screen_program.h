/* The programs of the screen for wrong results: arithmetic on operands of any bits, with all signs
 * and exponents, denormal numbers, infinities and numbers that cancel each other out.
 *
 * Every warp executes the same program on the same operands, so all warps have the same hash. A
 * period is some steps of a few words per lane, each folded into the lane's sum (check_program.h).
 * Of the paths that the host knows, all periods are alike, of SCREEN_STEPS steps each.
 *
 * Plain C, which nvcc reads too: what the host knows is computed by the same lines. */
#ifndef GPUMEMTOPO_DEVICE_SCREEN_PROGRAM_H
#define GPUMEMTOPO_DEVICE_SCREEN_PROGRAM_H

#include "check_program.h"

#ifdef __CUDA_ARCH__
#define SCREEN_BITS(x) __float_as_uint(x)
#define SCREEN_FLOAT(x) __uint_as_float(x)
#define SCREEN_BITS64(x) ((uint64_t)__double_as_longlong(x))
#define SCREEN_DOUBLE(x) __longlong_as_double((long long)(x))
#else
#include <math.h>
#include <string.h>
static inline uint32_t SCREEN_BITS(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
static inline float SCREEN_FLOAT(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
static inline uint64_t SCREEN_BITS64(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
static inline double SCREEN_DOUBLE(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
#endif

enum {
    SCREEN_STEPS = 64,    /* of a period */
    SCREEN_PERIODS = 16,  /* of a launch */
    SCREEN_OPERANDS = 16, /* words of a lane and step, at most */
    SCREEN_WORDS = 12,    /* that the host knows, of a lane and step, at most */
};
#define SCREEN_SEED 0x243f6a88u

/* Tests make operands wrong. */
#ifndef SCREEN_ARMED_OPERAND
#define SCREEN_ARMED_OPERAND(number, bits) (bits)
#endif

/* Operand i of a lane in a step: any bits. */
CHECK_INLINE uint32_t screen_operand(uint32_t step, uint32_t lane, uint32_t i)
{
    uint32_t number = step * SCREEN_OPERANDS + i;
    return SCREEN_ARMED_OPERAND(number, check_mix(SCREEN_SEED + number * CHECK_LANES + lane));
}

/* NaNs have one form: their bits are not the same everywhere. */
CHECK_INLINE uint32_t screen_float_word(float x)
{
    uint32_t bits = SCREEN_BITS(x);
    return (bits & 0x7fffffffu) > 0x7f800000u ? 0x7fffffffu : bits;
}

CHECK_INLINE uint32_t screen_double_word(double x)
{
    uint64_t bits = SCREEN_BITS64(x);
    if ((bits & 0x7fffffffffffffffu) > 0x7ff0000000000000u)
        return 0x7fffffffu;
    return (uint32_t)bits ^ (uint32_t)(bits >> 32) * 3;
}

/* A number of about the size of x, of the other sign, whose mantissa differs in few or many bits:
 * with x it cancels out in part. */
CHECK_INLINE uint32_t screen_opposite(uint32_t x, uint32_t random)
{
    return x ^ 0x80000000u ^ (random & 0x01ffffffu) >> (random >> 27);
}

CHECK_INLINE uint64_t screen_opposite64(uint64_t x, uint32_t random)
{
    uint64_t mantissa = (uint64_t)check_mix(random) << 22 | random;
    return x ^ 0x8000000000000000u ^ (mantissa & 0x1fffffffffffffu) >> (random >> 26);
}

CHECK_INLINE uint32_t screen_int_words(uint32_t step, uint32_t lane, uint32_t words[SCREEN_WORDS])
{
    uint32_t a = screen_operand(step, lane, 0), b = screen_operand(step, lane, 1);
    uint32_t c = screen_operand(step, lane, 2), by = c % 32;
    int32_t i = (int32_t)a, j = (int32_t)b;
    uint64_t wide = (uint64_t)a << 32 | b, product = (uint64_t)a * b + wide;
    words[0] = (uint32_t)(product >> 32) ^ (uint32_t)product;
    words[1] = (uint32_t)((uint64_t)((int64_t)i * j) >> 32);
    words[2] = a * b + c;
    words[3] = (uint32_t)(wide >> by);
    words[4] = (uint32_t)((wide + ((uint64_t)c << 32 | a)) >> 32);
    words[5] = (a > b ? a - b : b - a) + c;
    words[6] = (uint32_t)(i < j ? i : j) ^ (a > c ? a : c);
    words[7] = (a & b) | (~a & c);
#ifdef __CUDA_ARCH__
    words[8] = (uint32_t)__popc(a) + 64 * (uint32_t)__clz((int)(b >> by));
    words[9] = __brev(c);
#else
    uint32_t bits = b >> by, zeros = 32, ones = 0, reversed = 0;
    for (; bits; bits >>= 1)
        zeros--;
    for (uint32_t k = 0; k < 32; k++) {
        ones += a >> k & 1;
        reversed |= (c >> k & 1) << (31 - k);
    }
    words[8] = ones + 64 * zeros;
    words[9] = reversed;
#endif
    return 10;
}

CHECK_INLINE uint32_t screen_fp32_words(uint32_t step, uint32_t lane, uint32_t words[SCREEN_WORDS])
{
    uint32_t a_bits = screen_operand(step, lane, 0), random = screen_operand(step, lane, 2);
    float a = SCREEN_FLOAT(a_bits), b = SCREEN_FLOAT(screen_operand(step, lane, 1));
    float positive = SCREEN_FLOAT(a_bits & 0x7fffffffu);
#ifdef __CUDA_ARCH__
    float product = __fmul_rn(a, b);
    float opposite = SCREEN_FLOAT(screen_opposite(SCREEN_BITS(product), random));
    words[0] = screen_float_word(__fadd_rn(a, SCREEN_FLOAT(screen_opposite(a_bits, random))));
    words[1] = screen_float_word(product);
    words[2] = screen_float_word(__fmaf_rn(a, b, opposite));
    words[3] = screen_float_word(__fdiv_rn(a, b));
    words[4] = screen_float_word(__fsqrt_rn(positive));
    words[5] = screen_float_word(__frcp_rn(b));
    words[6] = screen_float_word(__fadd_rn(a, b));
#else
    float product = a * b;
    uint32_t product_bits = screen_float_word(product);
    float opposite = SCREEN_FLOAT(screen_opposite(product_bits, random));
    float other = SCREEN_FLOAT(screen_opposite(a_bits, random));
    words[0] = screen_float_word(a + other);
    words[1] = product_bits;
    words[2] = screen_float_word(fmaf(a, b, opposite));
    words[3] = screen_float_word(a / b);
    words[4] = screen_float_word(sqrtf(positive));
    words[5] = screen_float_word(1 / b);
    words[6] = screen_float_word(a + b);
#endif
    return 7;
}

CHECK_INLINE uint64_t screen_operand64(uint32_t step, uint32_t lane, uint32_t i)
{
    return (uint64_t)screen_operand(step, lane, i) << 32 | screen_operand(step, lane, i + 1);
}

CHECK_INLINE uint32_t screen_fp64_words(uint32_t step, uint32_t lane, uint32_t words[SCREEN_WORDS])
{
    uint64_t a_bits = screen_operand64(step, lane, 0);
    uint32_t random = screen_operand(step, lane, 4);
    double a = SCREEN_DOUBLE(a_bits), b = SCREEN_DOUBLE(screen_operand64(step, lane, 2));
    double positive = SCREEN_DOUBLE(a_bits & 0x7fffffffffffffffu);
    double other = SCREEN_DOUBLE(screen_opposite64(a_bits, random));
#ifdef __CUDA_ARCH__
    double product = __dmul_rn(a, b);
    double opposite = SCREEN_DOUBLE(screen_opposite64(SCREEN_BITS64(product), random));
    words[0] = screen_double_word(__dadd_rn(a, other));
    words[2] = screen_double_word(__fma_rn(a, b, opposite));
    words[3] = screen_double_word(__ddiv_rn(a, b));
    words[4] = screen_double_word(__dsqrt_rn(positive));
    words[5] = screen_double_word(__dadd_rn(a, b));
#else
    double product = a * b;
    double opposite = SCREEN_DOUBLE(screen_opposite64(SCREEN_BITS64(product), random));
    words[0] = screen_double_word(a + other);
    words[2] = screen_double_word(fma(a, b, opposite));
    words[3] = screen_double_word(a / b);
    words[4] = screen_double_word(sqrt(positive));
    words[5] = screen_double_word(a + b);
#endif
    words[1] = screen_double_word(product);
    return 6;
}

/* Operands of the tensor units: any bits but infinities and NaNs, and exponents whose products and
 * sums stay finite, so that a wrong bit shows. */

/* Two numbers of FP16. */
CHECK_INLINE uint32_t screen_f16(uint32_t bits)
{
    uint32_t high = (bits & 0x7c000000u) == 0x7c000000u, low = (bits & 0x7c00u) == 0x7c00u;
    return bits ^ high << 30 ^ low << 14;
}

/* The upper 16 bits as a number of BF16: denormal, or with an exponent of 73 to 180. */
CHECK_INLINE uint32_t screen_bf16_high(uint32_t bits)
{
    uint32_t exponent = bits >> 23 & 0xff;
    exponent = exponent < 16 ? 0 : 66 + exponent * 115 / 256;
    return (bits & 0x807fffffu) | exponent << 23;
}

CHECK_INLINE uint32_t screen_bf16(uint32_t bits)
{
    return (screen_bf16_high(bits) & 0xffff0000u) | screen_bf16_high(bits << 16) >> 16;
}

/* Four numbers of FP8 (e4m3), of which one form is NaN. */
CHECK_INLINE uint32_t screen_fp8(uint32_t bits)
{
    for (uint32_t at = 0; at < 32; at += 8)
        bits ^= (uint32_t)((bits >> at & 0x7f) == 0x7f) << at;
    return bits;
}

CHECK_INLINE uint64_t screen_fp64(uint64_t bits)
{
    uint64_t exponent = 512 + (bits >> 52 & 0x7ff) * 1000 / 2048;
    return (bits & 0x800fffffffffffffu) | exponent << 52;
}

#ifndef __CUDACC__
#include "device/device.h"

/* What every warp must have after a launch; false if the host does not know it. */
bool screen_host_hash(enum device_screen_path path, uint64_t *out_hash);
#endif

#endif
