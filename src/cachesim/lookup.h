/* Finds and uses a line of a simulated cache. */
#ifndef GPUMEMTOPO_CACHESIM_LOOKUP_H
#define GPUMEMTOPO_CACHESIM_LOOKUP_H

#include "cachesim/links.h"
#include "cachesim/marks.h"
#include "cachesim/order.h"
#include "cachesim/replace.h"
#include "cachesim/tree.h"

/* Where the lines of a set begin; equal sets only. */
static inline uint32_t lookup_first(const struct cache *cache, uint32_t set)
{
    return set * cache->ways + (set < cache->larger_sets ? set : cache->larger_sets);
}

/* Tries the way in which the last search found its line first: an array loaded from end to end lies
 * in one way over many sets. Does not read the set's record, which would be one more memory access
 * to wait for. */
static inline __attribute__((always_inline)) uint32_t lookup_scanned(struct cache *cache,
                                                                     uint32_t set, uint64_t key)
{
    uint32_t first = lookup_first(cache, set);
    uint32_t ways = cache->ways + (set < cache->larger_sets), guess = cache->last_way;
    const struct cache_line *lines = &cache->lines[first];
    if (cache->marks) {
        uint32_t way = marks_find(cache, first, ways, key);
        return way < ways ? first + way : links_none;
    }
    if (guess < ways && lines[guess].key == key)
        return first + guess;
    for (uint32_t i = 0; i < ways; i++) {
        if (lines[i].key == key) {
            cache->last_way = i;
            return first + i;
        }
    }
    return links_none;
}

/* The slot of a line, without using it; links_none if it is not there. */
static inline __attribute__((always_inline)) uint32_t lookup_only(struct cache *cache, uint32_t set,
                                                                  uint64_t key)
{
    return cache->links ? links_find(cache, key) : lookup_scanned(cache, set, key);
}

/* A line is used: it is now the last one. */
static inline void lookup_order(struct cache *cache, uint32_t set, uint32_t slot)
{
    cache->last = slot;
    if (cache->links && !cache->fifo && cache->sets[set].newest != slot) {
        links_remove(cache, &cache->sets[set], slot);
        links_add_newest(cache, &cache->sets[set], slot);
    }
    if (cache->tree)
        tree_use(&cache->sets[set], slot - cache->sets[set].first);
    if (cache->ordered && !cache->fifo)
        cache->sets[set].order = order_use(cache->sets[set].order, slot - lookup_first(cache, set));
}

static inline __attribute__((always_inline)) uint32_t lookup_find(struct cache *cache, uint32_t set,
                                                                  uint64_t key)
{
    uint32_t slot = lookup_only(cache, set, key);
    if (slot != links_none)
        lookup_order(cache, set, slot);
    return slot;
}

static inline void lookup_touch(struct cache *cache, struct cache_line *line)
{
    if (!cache->fifo)
        line->used = replace_tick(cache);
    else if (cache->lfu)
        line->used += line->used < UINT32_MAX;
}

/* What a load of these sectors brings. */
static inline uint32_t lookup_fetched(const struct cache *cache, uint32_t sectors)
{
    uint32_t brought = cache->fetched[sectors % CACHE_FEW_MASKS];
    for (sectors &= ~(uint32_t)(CACHE_FEW_MASKS - 1); sectors; sectors &= sectors - 1)
        brought |= cache->fetch_masks[__builtin_ctz(sectors)];
    return brought;
}

/* Brings sectors that a line does not have. */
static inline void lookup_bring(struct cache *cache, struct cache_line *line, uint32_t missing)
{
    uint32_t brought = lookup_fetched(cache, missing) & ~(uint32_t)line->sectors;
    cache->brought += (uint64_t)__builtin_popcount(brought);
    line->sectors = (uint16_t)(line->sectors | brought);
    cache->fills++;
}

/* Load and store of a line that was found and ordered in `slot`, or is not there. Return the
 * sectors that were not there. */
static inline uint32_t lookup_load(struct cache *cache, uint32_t set, uint64_t key, uint32_t slot,
                                   uint32_t sectors, struct rng *rng)
{
    if (slot == links_none) {
        uint32_t brought = lookup_fetched(cache, sectors);
        cache->brought += (uint64_t)__builtin_popcount(brought);
        replace_miss(cache, set, key, brought, rng);
        return sectors;
    }
    struct cache_line *line = &cache->lines[slot];
    lookup_touch(cache, line);
    uint32_t missing = sectors & ~(uint32_t)line->sectors;
    if (missing)
        lookup_bring(cache, line, missing);
    return missing;
}

static inline void lookup_write(struct cache *cache, uint32_t set, struct cache_line *line,
                                uint32_t sectors)
{
    bool clean = !line->dirty;
    line->dirty = (uint16_t)(line->dirty | sectors);
    cache->stored = true;
    if (clean && ++cache->sets[set].dirty > cache->geometry.dirty_ways &&
        cache->geometry.dirty_ways)
        replace_clean(cache, &cache->sets[set]);
}

/* CACHE_STORE, or CACHE_PLACE: then nothing is dirty. */
static inline uint32_t lookup_store(struct cache *cache, uint32_t set, uint64_t key, uint32_t slot,
                                    uint32_t sectors, bool dirty, struct rng *rng)
{
    uint32_t missing = sectors;
    if (slot == links_none) {
        replace_miss(cache, set, key, sectors, rng);
        slot = cache->last;
    } else {
        struct cache_line *line = &cache->lines[slot];
        lookup_touch(cache, line);
        missing &= ~(uint32_t)line->sectors;
        line->sectors = (uint16_t)(line->sectors | sectors);
    }
    if (!dirty)
        return sectors;
    lookup_write(cache, set, &cache->lines[slot], sectors);
    return missing;
}

static inline void lookup_drop(struct cache *cache, uint32_t set, uint64_t key)
{
    uint32_t slot = lookup_only(cache, set, key);
    if (slot == links_none)
        return;
    cache->sets[set].dirty -= cache->lines[slot].dirty != 0;
    cache->lines[slot].sectors = cache->lines[slot].dirty = 0;
    cache->lines[slot].used = 0;
    cache->sets[set].order = 0;
    if (!cache->links)
        return;
    links_remove(cache, &cache->sets[set], slot);
    links_add_oldest(cache, &cache->sets[set], slot);
}

#endif
