/* Which set of a cache a line belongs to. */
#ifndef GPUMEMTOPO_CACHESIM_SET_INDEX_H
#define GPUMEMTOPO_CACHESIM_SET_INDEX_H

#include "cachesim/cache.h"

/* Fibonacci hashing: the upper half of the product is well mixed. */
static inline uint64_t set_index_mix(uint64_t x)
{
    return (x * 0x9e3779b97f4a7c15u) >> 32;
}

static inline uint64_t set_index_modulo(const struct divider *by, uint64_t x)
{
    return x - divide(by, x) * by->d;
}

/* CACHE_HASHED rotates the sets anew for each aligned block of as many lines as there are sets, so
 * that any contiguous array still spreads evenly. The divisor of CACHE_PRIME is the largest prime
 * that is not above the number of sets: the sets beyond it stay empty. `set`: the plain modulo. */
static inline uint64_t set_index_special(const struct cache *cache, uint64_t line, uint64_t block,
                                         uint64_t set)
{
    uint64_t sets = cache->by_sets.d;
    if (cache->geometry.index == CACHE_HASHED) {
        set += (set_index_mix(block) * sets) >> 32;
        return set >= sets ? set - sets : set;
    }
    if (cache->geometry.index == CACHE_SHIFTED)
        return set_index_modulo(&cache->by_sets, line >> cache->geometry.index_shift);
    if (cache->geometry.index == CACHE_XOR)
        return set_index_modulo(&cache->by_sets, set ^ set_index_modulo(&cache->by_sets, block));
    return set;
}

static inline uint32_t set_index_of(const struct cache *cache, uint64_t line)
{
    line = cache->by_run.d > 1 ? divide(&cache->by_run, line) : line;
    uint64_t block = divide(&cache->by_sets, line);
    uint64_t set = line - block * cache->by_sets.d;
    if (cache->geometry.index != CACHE_MODULO)
        set = set_index_special(cache, line, block, set);
    return cache->slot_count ? cache->slots[set] : (uint32_t)set;
}

#endif
