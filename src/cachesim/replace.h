/* Which line goes when another one comes. */
#ifndef GPUMEMTOPO_CACHESIM_REPLACE_H
#define GPUMEMTOPO_CACHESIM_REPLACE_H

#include "cachesim/cache.h"

/* Brings in a line that is not there. */
void replace_miss(struct cache *cache, uint32_t set, uint64_t key, uint32_t sectors,
                  struct rng *rng);

/* Lowers all ticks before they overflow. */
void replace_renumber(struct cache *cache);

static inline uint32_t replace_tick(struct cache *cache)
{
    if (cache->tick == UINT32_MAX)
        replace_renumber(cache);
    return ++cache->tick;
}

/* Writes back the dirty line of a set that was used longest ago. */
void replace_clean(struct cache *cache, struct cache_set *set);

#endif
