/* The programs of the screen for wrong results: arithmetic on operands of any bits, with all signs
 * and exponents, denormal numbers, infinities and numbers that cancel each other out.
 *
 * Every warp executes the same program on the same operands, so all warps have the same hash. A
 * period is some steps of a few words per lane, each folded into the lane's sum (check_program.h).
 * Of the paths that compute and that the host knows, all periods are alike, of SCREEN_STEPS steps.
 *
 * Plain C, which nvcc reads too: what the host knows is computed by the same lines. */
#ifndef GPUMEMTOPO_DEVICE_SCREEN_PROGRAM_H
#define GPUMEMTOPO_DEVICE_SCREEN_PROGRAM_H

#include "../catalogue/screens.h"
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
    SCREEN_WORDS = 12,    /* that the host computes, of a lane and step, at most */

    /* Paths that read memory: chunks, of which each warp reads one at a time. */
    SCREEN_CHUNK_WORDS = 1024,
    SCREEN_CHUNKS = 6144,
    SCREEN_CONSTANT_CHUNKS = 8,
    SCREEN_TEXELS = 128, /* of 4 bytes, in a row of the texture and in a column */

/* SCREEN_STEPS_INT, SCREEN_TAKEN_INT: of a path (catalogue/screens.h). */
#define SCREEN_SHAPE(ID, name, words, host, warps, steps, taken, ...)                              \
    SCREEN_STEPS_##ID = steps, SCREEN_TAKEN_##ID = taken,
    SCREENS(SCREEN_SHAPE)
#undef SCREEN_SHAPE
};
#define SCREEN_SEED 0x243f6a88u

/* Tests make operands wrong. */
#ifndef SCREEN_ARMED_OPERAND
#define SCREEN_ARMED_OPERAND(number, bits) (bits)
#endif

/* Operand i of a lane in a step: any bits, of which a form makes what a unit takes. */
CHECK_INLINE uint32_t screen_bits(uint32_t step, uint32_t lane, uint32_t i)
{
    return check_mix(SCREEN_SEED + (step * SCREEN_OPERANDS + i) * CHECK_LANES + lane);
}
#define SCREEN_FORMED(form, step, lane, i)                                                         \
    SCREEN_ARMED_OPERAND((step)*SCREEN_OPERANDS + (i), form(screen_bits(step, lane, i)))
#define SCREEN_ANY(bits) (bits)

CHECK_INLINE uint32_t screen_operand(uint32_t step, uint32_t lane, uint32_t i)
{
    return SCREEN_FORMED(SCREEN_ANY, step, lane, i);
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
    return x ^ 0x80000000u ^ (random & 0x07ffffffu) >> (random >> 27);
}

CHECK_INLINE uint64_t screen_opposite64(uint64_t x, uint32_t random)
{
    uint64_t mantissa = (uint64_t)check_mix(random) << 22 | random;
    return x ^ 0x8000000000000000u ^ (mantissa & 0x1fffffffffffffu) >> (random >> 26);
}

/* The word i of a chunk. One word of four has the chunk's number added: four words that are read
 * from another chunk are wrong. */
CHECK_INLINE uint32_t screen_data_word(uint32_t i)
{
    return check_mix(SCREEN_SEED ^ i);
}

CHECK_INLINE uint32_t screen_data_mark(uint32_t chunk)
{
    return chunk * 0x9e3779b1u;
}

/* Takes four words of memory; a wrong word always changes the sum. */
CHECK_INLINE uint64_t screen_fold_four(uint64_t sum, const uint32_t words[4])
{
    sum = sum << 11 | sum >> 53;
    sum += (uint64_t)words[0] * 0x9e3779b1u + (uint64_t)words[1] * 0x85ebca6bu;
    return sum + (uint64_t)words[2] * 0xc2b2ae35u + (uint64_t)words[3] * 0x27d4eb2fu;
}

/* After a chunk, or a part of one. */
CHECK_INLINE uint64_t screen_fold_chunk(uint64_t sum)
{
    return check_fold(sum, 0);
}

/* Seven predicates at once, set by bits of an operand: which numbers are added, and which of two is
 * chosen. */
CHECK_INLINE uint32_t screen_by_predicates(uint32_t a, uint32_t b)
{
#ifdef __CUDA_ARCH__
    uint32_t sum;
    asm volatile("{\n\t"
                 ".reg .pred p<8>;\n\t"
                 ".reg .b32 t<8>;\n\t"
                 "and.b32 t0, %1, 1;\n\tand.b32 t1, %1, 2;\n\tand.b32 t2, %1, 4;\n\t"
                 "and.b32 t3, %1, 8;\n\tand.b32 t4, %1, 16;\n\tand.b32 t5, %1, 32;\n\t"
                 "and.b32 t6, %1, 64;\n\t"
                 "setp.ne.u32 p0, t0, 0;\n\tsetp.ne.u32 p1, t1, 0;\n\t"
                 "setp.ne.u32 p2, t2, 0;\n\tsetp.ne.u32 p3, t3, 0;\n\t"
                 "setp.ne.u32 p4, t4, 0;\n\tsetp.ne.u32 p5, t5, 0;\n\t"
                 "setp.ne.u32 p6, t6, 0;\n\t"
                 "mov.u32 %0, %2;\n\t"
                 "@p0 add.u32 %0, %0, 0x3c6ef372;\n\t@p1 xor.b32 %0, %0, 0xa54ff53a;\n\t"
                 "@p2 add.u32 %0, %0, 0x510e527f;\n\t@p3 xor.b32 %0, %0, 0x9b05688c;\n\t"
                 "@p4 add.u32 %0, %0, 0x1f83d9ab;\n\t@p5 xor.b32 %0, %0, 0x5be0cd19;\n\t"
                 "@p6 add.u32 %0, %0, 0x6a09e667;\n\t"
                 "xor.pred p7, p0, p3;\n\t@!p7 add.u32 %0, %0, 0xbb67ae85;\n\t"
                 "and.pred p7, p1, p5;\n\tor.pred p7, p7, p6;\n\t"
                 "@p7 xor.b32 %0, %0, 0x428a2f98;\n\t"
                 "selp.b32 t7, %1, %2, p4;\n\tadd.u32 %0, %0, t7;\n\t"
                 "}"
                 : "=&r"(sum)
                 : "r"(a), "r"(b));
    return sum;
#else
    uint32_t sum = b;
    sum += a & 1 ? 0x3c6ef372u : 0;
    sum ^= a & 2 ? 0xa54ff53au : 0;
    sum += a & 4 ? 0x510e527fu : 0;
    sum ^= a & 8 ? 0x9b05688cu : 0;
    sum += a & 16 ? 0x1f83d9abu : 0;
    sum ^= a & 32 ? 0x5be0cd19u : 0;
    sum += a & 64 ? 0x6a09e667u : 0;
    sum += (a & 1) == (a >> 3 & 1) ? 0xbb67ae85u : 0;
    sum ^= ((a >> 1 & a >> 5) | a >> 6) & 1 ? 0x428a2f98u : 0;
    return sum + (a & 16 ? a : b);
#endif
}

CHECK_INLINE uint32_t screen_predicates_words(uint32_t step, uint32_t lane,
                                              uint32_t words[SCREEN_WORDS])
{
    uint32_t a = screen_operand(step, lane, 0), b = screen_operand(step, lane, 1);
    for (uint32_t i = 0; i < SCREEN_TAKEN_PREDICATES; i++)
        words[i] = screen_by_predicates(a >> 3 * i, b);
    return SCREEN_TAKEN_PREDICATES;
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
 * sums stay finite, so that a wrong bit shows. Of formats with many exponents, half of the numbers
 * are near 1: beside a much larger product, a small one leaves no trace. */

/* Two numbers of FP16. */
CHECK_INLINE uint32_t screen_f16(uint32_t bits)
{
    uint32_t high = (bits & 0x7c000000u) == 0x7c000000u, low = (bits & 0x7c00u) == 0x7c00u;
    return bits ^ high << 30 ^ low << 14;
}

/* The upper 16 bits as a number of BF16: near 1, or denormal, or with an exponent of 73 to 180. */
CHECK_INLINE uint32_t screen_bf16_high(uint32_t bits)
{
    uint32_t exponent = bits >> 23 & 0xff;
    if (exponent < 128)
        exponent = 124 + exponent % 8;
    else
        exponent = exponent < 136 ? 0 : 66 + exponent * 115 / 256;
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
    uint64_t exponent = bits >> 52 & 0x7ff;
    exponent = exponent < 1024 ? 1020 + exponent % 8 : 512 + exponent * 1000 / 2048;
    return (bits & 0x800fffffffffffffu) | exponent << 52;
}

CHECK_INLINE double screen_fp64_number(uint32_t step, uint32_t lane, uint32_t i)
{
    uint32_t high = screen_bits(step, lane, i), low = screen_bits(step, lane, i + 1);
    uint64_t formed = screen_fp64((uint64_t)high << 32 | low);
    high = SCREEN_ARMED_OPERAND(step * SCREEN_OPERANDS + i, (uint32_t)(formed >> 32));
    low = SCREEN_ARMED_OPERAND(step * SCREEN_OPERANDS + i + 1, (uint32_t)formed);
    return SCREEN_DOUBLE((uint64_t)high << 32 | low);
}

#ifndef __CUDACC__
#include "device/device.h"

/* What every warp must have after a launch; false if the host does not know it. */
bool screen_host_hash(enum device_screen_path path, uint64_t *out_hash);

/* The operands of a lane in a step, and how many there are; 0: its words do not come from operands
 * of its own, but from those of many lanes or from memory. */
uint32_t screen_operands(enum device_screen_path path, uint32_t step, uint32_t lane,
                         uint32_t operands[SCREEN_OPERANDS]);
#endif

#endif
