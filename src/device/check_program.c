/* The answers of the checks, computed on the host. */
#include "device/check_program.h"

#include <math.h>
#include <string.h>

const char *const device_unit_names[DEVICE_UNIT_COUNT] = {
    "int",       "fp32",       "fp64",      "mma_f16", "mma_bf16",  "mma_fp8",
    "wgmma_f16", "wgmma_bf16", "wgmma_fp8", "shared",  "registers", "atomics"};

const char *device_unit_name(enum device_unit unit)
{
    return device_unit_names[unit];
}

static uint32_t int_word(uint32_t seed, uint32_t lane)
{
    uint32_t word = 0;
    for (uint32_t k = 0; k < CHECK_CHAINS; k++) {
        uint32_t x = check_start(seed, lane, k), y = ~x;
        for (uint32_t s = 0; s < CHECK_STEPS; s++) {
            x = x * CHECK_FACTOR + CHECK_ADDEND;
            y ^= x ^ CHECK_FACTOR;
        }
        word += x ^ y;
    }
    return word;
}

static uint32_t fp32_word(uint32_t seed, uint32_t lane)
{
    uint32_t word = 0;
    for (uint32_t k = 0; k < CHECK_CHAINS; k++) {
        uint32_t start = check_start(seed, lane, k), bits = check_fp32_x(start);
        uint32_t c_bits = check_fp32_c(start);
        float x, c;
        memcpy(&x, &bits, sizeof x);
        memcpy(&c, &c_bits, sizeof c);
        for (uint32_t s = 0; s < CHECK_STEPS; s++)
            x = fmaf(-x, x, c);
        memcpy(&bits, &x, sizeof bits);
        word += bits;
    }
    return word;
}

static uint32_t fp64_word(uint32_t seed, uint32_t lane)
{
    uint32_t word = 0;
    for (uint32_t k = 0; k < CHECK_CHAINS; k++) {
        uint32_t start = check_start(seed, lane, k);
        uint64_t bits = check_fp64_x(start), c_bits = check_fp64_c(start);
        double x, c;
        memcpy(&x, &bits, sizeof x);
        memcpy(&c, &c_bits, sizeof c);
        for (uint32_t s = 0; s < CHECK_STEPS; s++)
            x = fma(-x, x, c);
        memcpy(&bits, &x, sizeof bits);
        word += (uint32_t)bits ^ (uint32_t)(bits >> 32);
    }
    return word;
}

static struct check_format format_of(enum device_unit unit)
{
    switch (unit) {
    case DEVICE_UNIT_MMA_F16:
    case DEVICE_UNIT_WGMMA_F16:
        return CHECK_F16;
    case DEVICE_UNIT_MMA_BF16:
    case DEVICE_UNIT_WGMMA_BF16:
        return CHECK_BF16;
    default:
        return CHECK_FP8;
    }
}

static uint32_t depth_of(enum device_unit unit)
{
    return CHECK_DEPTH_MAX / format_of(unit).bytes;
}

/* An element of A B. */
static uint32_t check_product(const struct check_run *run, uint32_t tile, uint32_t row,
                              uint32_t column)
{
    int32_t sum = 0, limit = format_of(run->unit).limit;
    for (uint32_t k = 0; k < depth_of(run->unit); k++)
        sum += check_element(run->seed, 0, row, k, limit) *
               check_element(run->seed, tile, column, k, limit);
    return (uint32_t)sum;
}

static bool by_mma(enum device_unit unit)
{
    return unit >= DEVICE_UNIT_MMA_F16 && unit <= DEVICE_UNIT_MMA_FP8;
}

static bool by_wgmma(enum device_unit unit)
{
    return unit >= DEVICE_UNIT_WGMMA_F16 && unit <= DEVICE_UNIT_WGMMA_FP8;
}

enum { WORDS_MAX = 256 };

/* The words of D that a lane has: four of each tile of 16 x 8 (PTX manual, mma and wgmma). */
static size_t tensor_words(const struct check_run *run, uint32_t lane, uint32_t *out_words)
{
    size_t count = 0;
    bool mma = by_mma(run->unit);
    uint32_t tiles = mma ? CHECK_TILES : CHECK_WGMMA_COLUMNS / CHECK_MMA_COLUMNS;
    for (uint32_t t = 0; t < tiles; t++)
        for (uint32_t i = 0; i < 4; i++) {
            uint32_t row = lane / 4 + 8 * (i / 2), column = lane % 4 * 2 + i % 2;
            out_words[count++] = mma ? check_product(run, 1 + t, row, column)
                                     : check_product(run, 1, row, t * CHECK_MMA_COLUMNS + column);
        }
    return count;
}

static size_t register_words(const struct check_run *run, uint32_t lane, uint32_t period,
                             uint32_t *out_words)
{
    for (uint32_t i = 0; i < CHECK_REGISTERS; i++)
        out_words[i] = check_start(run->seed, lane, i) ^ (period & 1 ? 0xffffffffu : 0);
    for (uint32_t round = 0; round < CHECK_REGISTER_ROUNDS; round++)
        for (uint32_t i = 0; i < CHECK_REGISTERS; i++)
            out_words[i] = check_register_step(out_words[i], out_words[(i + 1) % CHECK_REGISTERS]);
    return CHECK_REGISTERS;
}

static size_t shared_words(const struct check_run *run, uint32_t lane, uint32_t period,
                           uint32_t *out_words)
{
    size_t count = 0;
    for (uint32_t i = lane; i < run->section_words && count < WORDS_MAX; i += CHECK_LANES)
        out_words[count++] = check_shared_word(run->seed, i, period);
    return count;
}

/* Atomics have one period, whatever run->periods is: their words exist only at the end. */
static size_t atomic_words(const struct check_run *run, uint32_t lane, uint32_t *out_words)
{
    uint32_t words[3] = {0};
    for (uint32_t p = 0; p < run->periods; p++) {
        uint32_t value = check_atomic_value(run->seed, lane, p);
        words[0] += value * run->warps;
        for (uint32_t w = 0; w < run->warps; w++)
            words[1] ^= value * (2 * w + 1);
        words[2] = value > words[2] ? value : words[2];
    }
    for (size_t i = 0; i < 6; i++)
        out_words[i] = words[i / 2]; /* in global and in shared memory */
    return 6;
}

/* The words that a lane folds in a period. They are the same in every period, or in every second
 * one for shared memory and registers. */
static size_t words_of(const struct check_run *run, uint32_t lane, uint32_t period,
                       uint32_t *out_words)
{
    switch (run->unit) {
    case DEVICE_UNIT_INT:
        out_words[0] = int_word(run->seed, lane);
        return 1;
    case DEVICE_UNIT_FP32:
        out_words[0] = fp32_word(run->seed, lane);
        return 1;
    case DEVICE_UNIT_FP64:
        out_words[0] = fp64_word(run->seed, lane);
        return 1;
    case DEVICE_UNIT_SHARED:
        return shared_words(run, lane, period, out_words);
    case DEVICE_UNIT_REGISTERS:
        return register_words(run, lane, period, out_words);
    case DEVICE_UNIT_ATOMICS:
        return atomic_words(run, lane, out_words);
    default:
        return tensor_words(run, lane, out_words);
    }
}

uint64_t check_hash(const struct check_run *run, uint32_t wrong_bits)
{
    uint32_t periods = run->unit == DEVICE_UNIT_ATOMICS ? 1 : run->periods;
    uint64_t hash = 0;
    for (uint32_t lane = 0; lane < CHECK_LANES; lane++) {
        uint32_t words[2][WORDS_MAX];
        size_t count = words_of(run, lane, 0, words[0]);
        memcpy(words[1], words[0], count * sizeof words[0][0]);
        if (run->unit == DEVICE_UNIT_SHARED || run->unit == DEVICE_UNIT_REGISTERS)
            words_of(run, lane, 1, words[1]);
        uint64_t sum = 0;
        for (uint32_t p = 0; p < periods; p++)
            for (size_t i = 0; i < count; i++)
                sum = check_fold(sum, words[p & 1][i] ^ (lane || p || i ? 0 : wrong_bits));
        hash += check_lane_hash(sum, lane);
    }
    return hash;
}

uint64_t check_operations(const struct check_run *run)
{
    uint64_t chains = (uint64_t)CHECK_LANES * CHECK_CHAINS * CHECK_STEPS * 2;
    uint64_t tensor = (uint64_t)CHECK_TENSOR_STEPS * CHECK_ROWS * 2;
    if (run->unit <= DEVICE_UNIT_FP64)
        return chains;
    if (by_mma(run->unit))
        return tensor * CHECK_TILES * CHECK_MMA_COLUMNS * depth_of(run->unit);
    if (by_wgmma(run->unit))
        return tensor * CHECK_WGMMA_COLUMNS * depth_of(run->unit);
    if (run->unit == DEVICE_UNIT_SHARED)
        return run->section_words;
    if (run->unit == DEVICE_UNIT_REGISTERS)
        return (uint64_t)CHECK_LANES * CHECK_REGISTERS * CHECK_REGISTER_ROUNDS;
    return 2 * CHECK_ATOMIC_WORDS;
}
