/* The programs of the screen for wrong results: arithmetic on operands of any bits, with all signs
 * and exponents, denormal numbers, infinities and numbers that cancel each other out.
 *
 * Every warp executes the same program on the same operands, so all warps have the same hash. A
 * period is some steps of a few words per lane, each folded into the lane's sum (check_program.h).
 * Each step has other operands; a launch of SCREEN_PERIODS has those of its set, a longer one goes
 * on into the next sets.
 *
 * Plain C, which nvcc reads too: what the host knows is computed by the same lines. */
#ifndef GPUMEMTOPO_DEVICE_SCREEN_PROGRAM_H
#define GPUMEMTOPO_DEVICE_SCREEN_PROGRAM_H

#include <stdbool.h>

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
    SCREEN_STEPS = 64,    /* of a period, of paths that compute words of their own */
    SCREEN_PERIODS = 16,  /* of a launch */
    SCREEN_OPERANDS = 16, /* words of a lane and step, at most */
    SCREEN_WORDS = 12,    /* that the host computes, of a lane and step, at most */

    /* Tensor units by mma: in a step so many sums per tile, each of so many products. The first,
     * third, ... of these are an odd number: a bit that each of them toggles is wrong at the end.
     */
    SCREEN_MMA_SUMS = 5,
    SCREEN_MMA_PRODUCTS = 33,
    SCREEN_MMA_WORDS = 16, /* of a lane in the sums of all tiles */

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

/* Steps are numbered through: this is the first one of a set, for a path of so many a period. */
CHECK_INLINE uint32_t screen_first_step(uint32_t set, uint32_t steps)
{
    return set * SCREEN_PERIODS * steps;
}

/* Operand i of a lane in a step: any bits, of which a form makes what a unit takes. */
CHECK_INLINE uint32_t screen_bits(uint32_t step, uint32_t lane, uint32_t i)
{
    return check_mix(SCREEN_SEED + (step * SCREEN_OPERANDS + i) * CHECK_LANES + lane);
}

CHECK_INLINE uint32_t screen_operand(uint32_t step, uint32_t lane, uint32_t i)
{
    return SCREEN_ARMED_OPERAND(step * SCREEN_OPERANDS + i, screen_bits(step, lane, i));
}

/* One word of two: the same bits wrong in both do not cancel out. */
CHECK_INLINE uint32_t screen_join(uint32_t a, uint32_t b)
{
    return a ^ (b << 7 | b >> 25);
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
    return screen_join((uint32_t)bits, (uint32_t)(bits >> 32));
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

/* The word i of a chunk, before the mark of the chunk is put on it: a word that is read from
 * another chunk is wrong. */
CHECK_INLINE uint32_t screen_data_word(uint32_t i)
{
    return check_mix(SCREEN_SEED ^ i);
}

/* With the same one, it is taken off again. inverted: 0 or 0xffffffff. */
CHECK_INLINE uint32_t screen_data_mark(uint32_t chunk, uint32_t i, uint32_t inverted)
{
    uint32_t mark = chunk * 0x9e3779b1u, by = i % 4 * 8;
    return (mark << by | mark >> (32 - by) % 32) ^ inverted;
}

/* What was read of memory: sums that any wrong word changes. Three words of four are multiplied,
 * the fourth is rotated: so they are added up by different units of an SM. */
struct screen_read {
    uint64_t products;
    uint32_t rotated;
};

/* Adds the four number i. */
CHECK_INLINE void screen_read_four(struct screen_read *sums, uint32_t i, const uint32_t words[4])
{
    for (uint32_t k = 0; k < 3; k++)
        sums->products += (uint64_t)words[k] * (0x9e3779b1u + (3 * i + k) * 0x0bd7d4d6u);
    sums->rotated = (sums->rotated << 7 | sums->rotated >> 25) + words[3];
}

/* After a chunk, or a part of one. */
CHECK_INLINE uint64_t screen_read_end(const struct screen_read *sums)
{
    return check_fold(sums->products, sums->rotated);
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
    words[0] = screen_join((uint32_t)(product >> 32), (uint32_t)product);
    words[1] = (uint32_t)((uint64_t)((int64_t)i * j) >> 32);
    words[2] = a * b + c;
    words[3] = (uint32_t)(wide >> by);
    words[4] = (uint32_t)((wide + ((uint64_t)c << 32 | a)) >> 32);
    words[5] = (a > b ? a - b : b - a) + c;
    words[6] = screen_join((uint32_t)(i < j ? i : j), a > c ? a : c);
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

/* Operands of the tensor units: any bits but infinities and NaNs, so that a wrong bit shows. FP16
 * and FP8 have all their exponents in one sum. Of the formats with more of them, the numbers of A
 * in a step have a few exponents around one of all that there are, and those of B around one for
 * which the products are finite and not denormal: beside a much larger product, a small one would
 * leave no trace. One number of sixteen is denormal. */
enum {
    SCREEN_BF16_EXPONENT = 254,
    SCREEN_FP64_EXPONENT = 2046
}; /* the largest of a finite number */

/* The exponents of A or B in a step are four less than this to three more. */
CHECK_INLINE uint32_t screen_exponent(uint32_t step, bool of_b, uint32_t largest)
{
    uint32_t margin = 8, a = margin + check_mix(~step) % (largest - 2 * margin + 1);
    if (!of_b)
        return a;
    uint32_t product =
        largest / 2 + largest / 8 + check_mix(step ^ SCREEN_SEED) % (largest * 3 / 4);
    uint32_t b = product > a + margin ? product - a : margin;
    return b < largest - margin ? b : largest - margin;
}

/* Two numbers of FP16. */
CHECK_INLINE uint32_t screen_f16(uint32_t bits, uint32_t exponent)
{
    (void)exponent;
    uint32_t high = (bits & 0x7c000000u) == 0x7c000000u, low = (bits & 0x7c00u) == 0x7c00u;
    return bits ^ high << 30 ^ low << 14;
}

/* One of TF32, of which BF16 is the upper half. */
CHECK_INLINE uint32_t screen_tf32(uint32_t bits, uint32_t exponent)
{
    exponent = bits >> 27 & 15 ? exponent - 4 + (bits >> 23 & 7) : 0;
    return (bits & 0x807fffffu) | exponent << 23;
}

CHECK_INLINE uint32_t screen_bf16(uint32_t bits, uint32_t exponent)
{
    return (screen_tf32(bits, exponent) & 0xffff0000u) | screen_tf32(bits << 16, exponent) >> 16;
}

/* Four numbers of FP8 (e4m3), of which one form is NaN. */
CHECK_INLINE uint32_t screen_fp8(uint32_t bits, uint32_t exponent)
{
    (void)exponent;
    return bits ^ (((bits & 0x7f7f7f7fu) + 0x01010101u) & 0x80808080u) >> 7;
}

/* Four of INT8. */
CHECK_INLINE uint32_t screen_int8(uint32_t bits, uint32_t exponent)
{
    (void)exponent;
    return bits;
}

CHECK_INLINE uint64_t screen_fp64(uint64_t bits, uint32_t exponent)
{
    exponent = bits >> 56 & 15 ? exponent - 4 + (uint32_t)(bits >> 52 & 7) : 0;
    return (bits & 0x800fffffffffffffu) | (uint64_t)exponent << 52;
}

#define SCREEN_FORMED(form, exponent, step, lane, i)                                               \
    SCREEN_ARMED_OPERAND((step)*SCREEN_OPERANDS + (i), form(screen_bits(step, lane, i), exponent))

CHECK_INLINE double screen_fp64_number(uint32_t exponent, uint32_t step, uint32_t lane, uint32_t i)
{
    uint32_t high = screen_bits(step, lane, i), low = screen_bits(step, lane, i + 1);
    uint64_t formed = screen_fp64((uint64_t)high << 32 | low, exponent);
    high = SCREEN_ARMED_OPERAND(step * SCREEN_OPERANDS + i, (uint32_t)(formed >> 32));
    low = SCREEN_ARMED_OPERAND(step * SCREEN_OPERANDS + i + 1, (uint32_t)formed);
    return SCREEN_DOUBLE((uint64_t)high << 32 | low);
}

#ifndef __CUDACC__
#include "device/device.h"

/* What every warp must have after a launch with the operands of a set; false if the host does not
 * know it. */
bool screen_host_hash(enum device_screen_path path, uint32_t set, uint64_t *out_hash);

/* The operands of a lane in a step of a period, and how many there are; 0: its words do not come
 * from operands of its own, but from those of many lanes or from memory. */
struct screen_place {
    uint32_t set, period, step, lane;
};
uint32_t screen_operands(enum device_screen_path path, const struct screen_place *place,
                         uint32_t operands[SCREEN_OPERANDS]);
#endif

#endif
