/* Single accesses to a simulated cache. */
#include "cachesim/cache.h"

#include "cachesim/lookup.h"

/* True when the line's sector is present; otherwise brings the sector in. */
static inline bool use(struct cache *cache, uint32_t slot, uint32_t sector)
{
    struct cache_line *line = &cache->lines[slot];
    lookup_touch(cache, line);
    if (line->sectors & (UINT32_C(1) << sector))
        return true;
    line->sectors = (uint16_t)(line->sectors | cache->fetch_masks[sector]);
    cache->fills++;
    return false;
}

static bool miss(struct cache *cache, uint32_t set, uint64_t key, uint32_t sector, struct rng *rng)
{
    replace_miss(cache, set, key, cache->fetch_masks[sector], rng);
    return false;
}

static __attribute__((noinline)) bool access_linked(struct cache *cache, uint32_t set, uint64_t key,
                                                    uint32_t sector, struct rng *rng)
{
    uint32_t slot = lookup_find(cache, set, key);
    return slot == links_none ? miss(cache, set, key, sector, rng) : use(cache, slot, sector);
}

bool cache_access(struct cache *cache, uint64_t address, struct rng *rng)
{
    uint64_t number = divide(&cache->by_line, address), key = number + 1 + cache->base;
    uint32_t sector = (uint32_t)divide(&cache->by_sector, address - number * cache->by_line.d);
    if (cache->lines[cache->last].key == key)
        return use(cache, cache->last, sector);
    uint32_t set = set_index_of(cache, number);
    if (cache->links)
        return access_linked(cache, set, key, sector, rng);
    uint32_t slot = lookup_scanned(cache, set, key);
    if (slot == links_none)
        return miss(cache, set, key, sector, rng);
    lookup_order(cache, set, slot);
    return use(cache, slot, sector);
}

uint32_t cache_load(struct cache *cache, uint64_t address, uint32_t sectors, struct rng *rng)
{
    uint64_t number = divide(&cache->by_line, address), key = number + 1 + cache->base;
    uint32_t set = set_index_of(cache, number);
    return lookup_load(cache, set, key, lookup_find(cache, set, key), sectors, rng);
}

uint32_t cache_store(struct cache *cache, uint64_t address, uint32_t sectors, struct rng *rng)
{
    uint64_t number = divide(&cache->by_line, address), key = number + 1 + cache->base;
    uint32_t set = set_index_of(cache, number);
    return lookup_store(cache, set, key, lookup_find(cache, set, key), sectors, true, rng);
}

void cache_place(struct cache *cache, uint64_t address, uint32_t sectors, struct rng *rng)
{
    uint64_t number = divide(&cache->by_line, address), key = number + 1 + cache->base;
    uint32_t set = set_index_of(cache, number);
    lookup_store(cache, set, key, lookup_find(cache, set, key), sectors, false, rng);
}

bool cache_holds(struct cache *cache, uint64_t address, uint32_t sectors)
{
    uint64_t number = divide(&cache->by_line, address);
    uint32_t slot = lookup_only(cache, set_index_of(cache, number), number + 1 + cache->base);
    return slot != links_none && !(sectors & ~(uint32_t)cache->lines[slot].sectors);
}

void cache_drop(struct cache *cache, uint64_t address)
{
    uint64_t number = divide(&cache->by_line, address);
    lookup_drop(cache, set_index_of(cache, number), number + 1 + cache->base);
}
