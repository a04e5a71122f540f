/* Division by a number known beforehand, without a division. */
#ifndef GPUMEMTOPO_CACHESIM_DIVIDER_H
#define GPUMEMTOPO_CACHESIM_DIVIDER_H

#include <stdint.h>

/* x / d for d and x with x * d below 2^64 (any x when d is a power of two). */
struct divider {
    uint64_t magic; /* ceil(2^64 / d); 0 for a power of two */
    uint64_t d;
    uint32_t shift;
};

static inline struct divider divider_of(uint64_t d)
{
    struct divider by = {.d = d, .shift = (uint32_t)__builtin_ctzll(d)};
    if (d & (d - 1))
        by.magic = UINT64_MAX / d + 1;
    return by;
}

static inline uint64_t divide(const struct divider *by, uint64_t x)
{
    return by->magic ? (uint64_t)(((unsigned __int128)x * by->magic) >> 64) : x >> by->shift;
}

#endif
