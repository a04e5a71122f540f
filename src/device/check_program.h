/* The programs that check whether SMs compute right, and the answers that they must have.
 *
 * Every warp of a check executes the same program on the same data, so all warps end with the same
 * hash, and the host can compute it. A program is a *period* that is repeated: each of the 32 lanes
 * computes a word, always from the same start, and folds it into its sum. A wrong word changes the
 * sum for good. The host computes one period and folds it as often.
 *
 * Plain C, which nvcc reads too. */
#ifndef GPUMEMTOPO_DEVICE_CHECK_PROGRAM_H
#define GPUMEMTOPO_DEVICE_CHECK_PROGRAM_H

#include <stdint.h>

#ifdef __CUDACC__
#define CHECK_INLINE __host__ __device__ static inline
#else
#define CHECK_INLINE static inline
#endif

enum {
    CHECK_LANES = 32,
    CHECK_CHAINS = 4,   /* independent chains of a lane: integer and floating point */
    CHECK_STEPS = 1024, /* of a chain in a period */

    /* Tensor units: D = D + A B, then D = D - A B, and so on; an odd number, so that D ends as A B.
     * The elements are integers of so few bits that every sum is exact in every format, in any
     * order. */
    CHECK_TENSOR_STEPS = 255,
    CHECK_TILES = 4, /* of B, for mma */
    CHECK_ROWS = 16, /* of A */
    CHECK_MMA_COLUMNS = 8,
    CHECK_WGMMA_COLUMNS = 128,
    CHECK_DEPTH_MAX = 32, /* columns of A, rows of B: 16 elements of 2 bytes or 32 of 1 byte */

    CHECK_REGISTERS = 192, /* of a thread, that hold a pattern */
    CHECK_REGISTER_ROUNDS = 64,
    CHECK_ATOMIC_WORDS = 3 * CHECK_LANES, /* added to, toggled, replaced by a larger value */
};

/* A format of the tensor units: its bits, and the largest integer that is used. */
struct check_format {
    uint32_t bytes, exponent, mantissa;
    int32_t limit;
};
#define CHECK_F16 ((struct check_format){2, 5, 10, 31})
#define CHECK_BF16 ((struct check_format){2, 8, 7, 31})
#define CHECK_FP8 ((struct check_format){1, 4, 3, 7}) /* e4m3 */

/* Constants of the integer program. */
#define CHECK_FACTOR 0x2c9277b5u
#define CHECK_ADDEND 0xac564b05u

CHECK_INLINE uint32_t check_mix(uint32_t x)
{
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    return x ^ x >> 16;
}

CHECK_INLINE uint64_t check_fold(uint64_t sum, uint32_t word)
{
    sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
    return sum ^ sum >> 29;
}

/* A lane's part of its warp's hash: the hash is the sum over all lanes. */
CHECK_INLINE uint64_t check_lane_hash(uint64_t sum, uint32_t lane)
{
    return check_fold(sum, lane);
}

CHECK_INLINE uint32_t check_start(uint32_t seed, uint32_t lane, uint32_t chain)
{
    return check_mix(seed + chain * CHECK_LANES + lane);
}

/* Floating point: x becomes c - x x. For these c the sequence is chaotic: it uses every bit of x,
 * and a wrong bit grows. Both are given as the bits of a number: x in [0.5, 1), c in [1.875, 2). */
CHECK_INLINE uint32_t check_fp32_x(uint32_t start)
{
    return 0x3f000000u | start >> 9;
}

CHECK_INLINE uint32_t check_fp32_c(uint32_t start)
{
    return 0x3ff00000u | check_mix(start) >> 12;
}

CHECK_INLINE uint64_t check_fp64_x(uint32_t start)
{
    return 0x3fe0000000000000u | (uint64_t)check_mix(start) << 20 | start >> 12;
}

CHECK_INLINE uint64_t check_fp64_c(uint32_t start)
{
    return 0x3ffe000000000000u | (uint64_t)(check_mix(start + 1) >> 15) << 32 | start;
}

/* Elements of A (tile 0) and of B (tile 1 and on): from -limit to limit. */
CHECK_INLINE int32_t check_element(uint32_t seed, uint32_t tile, uint32_t row, uint32_t column,
                                   int32_t limit)
{
    uint32_t i = (tile * CHECK_WGMMA_COLUMNS + row) * CHECK_DEPTH_MAX + column;
    return (int32_t)(check_mix(seed * 0x9e3779b1u + i) % (2 * (uint32_t)limit + 1)) - limit;
}

/* The bits of a small integer as a floating-point number of `exponent` and `mantissa` bits. */
CHECK_INLINE uint32_t check_number(int32_t value, uint32_t exponent, uint32_t mantissa)
{
    uint32_t sign = value < 0, size = (uint32_t)(value < 0 ? -value : value), power = 0;
    if (!size)
        return 0;
    while (size >> (power + 1))
        power++;
    uint32_t bias = (1u << (exponent - 1)) - 1;
    uint32_t fraction = (size << mantissa >> power) & ((1u << mantissa) - 1);
    return sign << (exponent + mantissa) | (power + bias) << mantissa | fraction;
}

/* Shared memory: what a section has at its word i; every second period inverted. */
CHECK_INLINE uint32_t check_shared_word(uint32_t seed, uint32_t i, uint32_t period)
{
    return check_mix(seed ^ i) ^ (period & 1 ? 0xffffffffu : 0);
}

/* Registers: in each round every register takes in the next one. */
CHECK_INLINE uint32_t check_register_step(uint32_t value, uint32_t next)
{
    uint32_t sum = value + next;
    return sum << 7 | sum >> 25;
}

/* Atomics: what a warp adds, toggles and offers as largest, by lane and period. */
CHECK_INLINE uint32_t check_atomic_value(uint32_t seed, uint32_t lane, uint32_t period)
{
    return check_mix(seed ^ (period * CHECK_LANES + lane));
}

#ifndef __CUDACC__
#include "device/device.h"

/* How a program is executed. */
struct check_run {
    enum device_unit unit;
    uint32_t seed, periods;
    uint32_t warps;         /* of the block */
    uint32_t section_words; /* DEVICE_UNIT_SHARED: of each warp */
};

/* The hash that every warp must have, if bits of lane 0's first word are wrong; 0: none are. */
uint64_t check_hash(const struct check_run *run, uint32_t wrong_bits);

/* What a warp does in a period: additions and multiplications, or words that are checked. */
uint64_t check_operations(const struct check_run *run);
#endif

#endif
