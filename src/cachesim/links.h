/* Sets of many ways: a hash table finds a line, a list per set has its order of use. */
#ifndef GPUMEMTOPO_CACHESIM_LINKS_H
#define GPUMEMTOPO_CACHESIM_LINKS_H

#include "cachesim/set_index.h"

static const uint32_t links_none = UINT32_MAX;

static inline uint32_t *links_bucket(const struct cache *cache, uint64_t key)
{
    return &cache->buckets[set_index_mix(key) & cache->bucket_mask];
}

static inline uint32_t links_find(const struct cache *cache, uint64_t key)
{
    uint32_t slot = *links_bucket(cache, key) - 1;
    while (slot != links_none && cache->lines[slot].key != key)
        slot = cache->links[slot].chain - 1;
    return slot;
}

static inline void links_unchain(struct cache *cache, uint32_t slot)
{
    uint32_t *at = links_bucket(cache, cache->lines[slot].key);
    while (*at != slot + 1)
        at = &cache->links[*at - 1].chain;
    *at = cache->links[slot].chain;
}

static inline void links_remove(struct cache *cache, struct cache_set *set, uint32_t slot)
{
    struct cache_link *link = &cache->links[slot];
    if (link->newer != links_none)
        cache->links[link->newer].older = link->older;
    else
        set->newest = link->older;
    if (link->older != links_none)
        cache->links[link->older].newer = link->newer;
    else
        set->oldest = link->newer;
}

static inline void links_add_newest(struct cache *cache, struct cache_set *set, uint32_t slot)
{
    struct cache_link *link = &cache->links[slot];
    link->newer = links_none;
    link->older = set->newest;
    if (set->newest != links_none)
        cache->links[set->newest].newer = slot;
    else
        set->oldest = slot;
    set->newest = slot;
}

static inline void links_add_oldest(struct cache *cache, struct cache_set *set, uint32_t slot)
{
    struct cache_link *link = &cache->links[slot];
    link->older = links_none;
    link->newer = set->oldest;
    if (set->oldest != links_none)
        cache->links[set->oldest].older = slot;
    else
        set->newest = slot;
    set->oldest = slot;
}

#endif
