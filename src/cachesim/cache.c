/* Lookup, fill and replacement of a simulated cache. */
#include "cachesim/cache.h"

#include "cachesim/links.h"
#include "cachesim/set_index.h"
#include "cachesim/tree.h"

/* Sets of which one gives a line, if there are tags but no data left. */
enum { SETS_DRAWN = 5 };

/* How often a fill replaces a valid line of an early-evicting set that has room left. */
static const double early_chance = 0.5;

/* Tries the way in which the last search found its line first: an array loaded from end to end lies
 * in one way over many sets. Does not read the set's record, which would be one more memory access
 * to wait for. */
static inline __attribute__((always_inline)) uint32_t find_scanned(struct cache *cache,
                                                                   uint32_t set, uint64_t key)
{
    uint32_t larger = set < cache->larger_sets;
    uint32_t first = set * cache->ways + (larger ? set : cache->larger_sets);
    uint32_t ways = cache->ways + larger, guess = cache->last_way;
    const struct cache_line *lines = &cache->lines[first];
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

/* Before the ticks overflow, all of them are lowered by the same amount. Lines not used for two
 * thousand million accesses then count as equally old. */
static __attribute__((noinline)) void renumber(struct cache *cache)
{
    static const uint32_t less = UINT32_C(1) << 31;
    for (uint32_t i = 0; i < cache->lines_max; i++)
        cache->lines[i].used = cache->lines[i].used > less ? cache->lines[i].used - less : 0;
    cache->tick -= less;
}

static inline uint32_t next_tick(struct cache *cache)
{
    if (cache->tick == UINT32_MAX)
        renumber(cache);
    return ++cache->tick;
}

static inline uint64_t age_of(const struct cache_line *lines, uint32_t i)
{
    return (uint64_t)lines[i].used << 32 | i;
}

static inline uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Two minima side by side, both without a branch: a branch on which way is oldest would be
 * mispredicted. */
static uint32_t oldest_scanned(const struct cache *cache, const struct cache_set *set)
{
    const struct cache_line *lines = &cache->lines[set->first];
    uint64_t even = age_of(lines, 0), odd = even;
    uint32_t i = 1;
    for (; i + 1 < set->filled; i += 2) {
        odd = smaller(odd, age_of(lines, i));
        even = smaller(even, age_of(lines, i + 1));
    }
    if (i < set->filled)
        odd = smaller(odd, age_of(lines, i));
    return set->first + (uint32_t)smaller(odd, even);
}

/* Fermi's L1 (Mei and Chu, section 4.5) replaces its four ways with probabilities 1/6, 1/2, 1/6,
 * 1/6: way 1 three times as often as each other one. */
static uint32_t fermi_way(uint32_t ways, struct rng *rng)
{
    if (ways < 2)
        return 0;
    uint64_t draw = rng_below(rng, ways + 2);
    return draw < ways ? (uint32_t)draw : 1;
}

static uint32_t choose_victim(const struct cache *cache, const struct cache_set *set,
                              struct rng *rng)
{
    if (cache->geometry.slack > 0 && rng_uniform(rng) < cache->geometry.slack)
        return set->first + (uint32_t)rng_below(rng, set->filled);
    switch (cache->geometry.policy) {
    case CACHE_RANDOM:
        return set->first + (uint32_t)rng_below(rng, set->filled);
    case CACHE_FERMI:
        return set->first + fermi_way(set->filled, rng);
    case CACHE_TREE:
        return set->first + tree_way(set);
    default:
        return cache->links ? set->oldest : oldest_scanned(cache, set);
    }
}

/* Which slot a new line takes. */
static uint32_t choose_slot(const struct cache *cache, struct cache_set *set, struct rng *rng)
{
    if (set->filled == set->ways)
        return choose_victim(cache, set, rng);
    if (cache->geometry.policy == CACHE_EARLY && set->filled &&
        set->filled >= cache->geometry.early_fill * set->ways && rng_uniform(rng) < early_chance)
        return set->first + (uint32_t)rng_below(rng, set->filled);
    return set->first + set->filled++;
}

static __attribute__((noinline)) void write_back(struct cache *cache, const struct cache_line *line)
{
    if (line->key > cache->base)
        cache->written_back += (uint64_t)__builtin_popcount(line->dirty);
}

static void place(struct cache *cache, struct cache_set *set, uint32_t slot, uint64_t key,
                  uint16_t sectors)
{
    if (cache->links) {
        if (cache->lines[slot].key > cache->base) {
            links_unchain(cache, slot);
            links_remove(cache, set, slot);
        }
        uint32_t *bucket = links_bucket(cache, key);
        cache->links[slot].chain = *bucket;
        *bucket = slot + 1;
        links_add_newest(cache, set, slot);
    }
    if (cache->stored)
        write_back(cache, &cache->lines[slot]);
    cache->lines[slot] =
        (struct cache_line){.key = key, .used = next_tick(cache), .sectors = sectors};
    cache->last = slot;
    cache->fills++;
    if (cache->tree)
        tree_use(set, slot - set->first);
}

static inline void touch(struct cache *cache, struct cache_line *line)
{
    if (!cache->fifo)
        line->used = next_tick(cache);
    else if (cache->lfu)
        line->used += line->used < UINT32_MAX;
}

/* True when the line's sector is present; otherwise brings the sector in. */
static inline bool use(struct cache *cache, uint32_t slot, uint32_t sector)
{
    struct cache_line *line = &cache->lines[slot];
    touch(cache, line);
    if (line->sectors & (UINT32_C(1) << sector))
        return true;
    line->sectors = (uint16_t)(line->sectors | cache->fetch_masks[sector]);
    cache->fills++;
    return false;
}

/* A line goes although its set has room for another one: of a few sets, drawn at random, the oldest
 * line of the fullest. That comes near to how the misses of Hopper's L1 rise. */
static void free_data(struct cache *cache, struct rng *rng)
{
    struct cache_set *best = NULL;
    uint32_t oldest = 0;
    for (uint32_t drawn = 0; drawn < SETS_DRAWN || !best; drawn++) {
        struct cache_set *set = &cache->sets[rng_below(rng, cache->set_count)];
        if (set->resets != cache->resets || !set->filled)
            continue;
        uint32_t own = oldest_scanned(cache, set);
        if (best &&
            (set->filled < best->filled ||
             (set->filled == best->filled && cache->lines[own].used >= cache->lines[oldest].used)))
            continue;
        best = set;
        oldest = own;
    }
    if (cache->stored)
        write_back(cache, &cache->lines[oldest]);
    uint32_t last = best->first + --best->filled;
    cache->lines[oldest] = cache->lines[last];
    cache->lines[last].key = 0;
    cache->held--;
}

static __attribute__((noinline)) bool miss(struct cache *cache, uint32_t set, uint64_t key,
                                           uint32_t sectors, struct rng *rng)
{
    struct cache_set *at = &cache->sets[set];
    if (at->resets != cache->resets) {
        at->resets = cache->resets;
        at->filled = 0;
        at->newest = at->oldest = links_none;
        at->tree = 0;
    }
    if (cache->geometry.tags && at->filled < at->ways) {
        if (cache->held == cache->room)
            free_data(cache, rng);
        cache->held++;
    }
    place(cache, at, choose_slot(cache, at, rng), key, (uint16_t)sectors);
    if (cache->lfu)
        cache->lines[cache->last].used = 1;
    return false;
}

/* The slot of a line, which counts as used from now on; links_none if it is not there. */
static inline __attribute__((always_inline)) uint32_t find_and_order(struct cache *cache,
                                                                     uint32_t set, uint64_t key)
{
    uint32_t slot = links_find(cache, key);
    if (slot == links_none)
        return links_none;
    if (!cache->fifo) {
        links_remove(cache, &cache->sets[set], slot);
        links_add_newest(cache, &cache->sets[set], slot);
    }
    return slot;
}

static inline __attribute__((always_inline)) uint32_t find(struct cache *cache, uint32_t set,
                                                           uint64_t key)
{
    uint32_t slot = cache->links ? find_and_order(cache, set, key) : find_scanned(cache, set, key);
    if (slot == links_none)
        return links_none;
    cache->last = slot;
    if (cache->tree)
        tree_use(&cache->sets[set], slot - cache->sets[set].first);
    return slot;
}

static __attribute__((noinline)) bool access_linked(struct cache *cache, uint32_t set, uint64_t key,
                                                    uint32_t sector, struct rng *rng)
{
    uint32_t slot = find(cache, set, key);
    if (slot == links_none)
        return miss(cache, set, key, cache->fetch_masks[sector], rng);
    return use(cache, slot, sector);
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
    uint32_t slot = find_scanned(cache, set, key);
    if (slot == links_none)
        return miss(cache, set, key, cache->fetch_masks[sector], rng);
    cache->last = slot;
    if (cache->tree)
        tree_use(&cache->sets[set], slot - cache->sets[set].first);
    return use(cache, slot, sector);
}

static uint32_t fetched(const struct cache *cache, uint32_t sectors)
{
    uint32_t brought = 0;
    for (; sectors; sectors &= sectors - 1)
        brought |= cache->fetch_masks[__builtin_ctz(sectors)];
    return brought;
}

uint32_t cache_load(struct cache *cache, uint64_t address, uint32_t sectors, struct rng *rng)
{
    uint64_t number = divide(&cache->by_line, address), key = number + 1 + cache->base;
    uint32_t set = set_index_of(cache, number), slot = find(cache, set, key);
    if (slot == links_none) {
        uint32_t brought = fetched(cache, sectors);
        cache->brought += (uint64_t)__builtin_popcount(brought);
        miss(cache, set, key, brought, rng);
        return sectors;
    }
    struct cache_line *line = &cache->lines[slot];
    touch(cache, line);
    uint32_t missing = sectors & ~(uint32_t)line->sectors;
    if (missing) {
        uint32_t brought = fetched(cache, missing) & ~(uint32_t)line->sectors;
        cache->brought += (uint64_t)__builtin_popcount(brought);
        line->sectors = (uint16_t)(line->sectors | brought);
        cache->fills++;
    }
    return missing;
}

uint32_t cache_store(struct cache *cache, uint64_t address, uint32_t sectors, struct rng *rng)
{
    uint64_t number = divide(&cache->by_line, address), key = number + 1 + cache->base;
    uint32_t set = set_index_of(cache, number), slot = find(cache, set, key);
    uint32_t missing = sectors;
    if (slot == links_none) {
        miss(cache, set, key, sectors, rng);
    } else {
        struct cache_line *line = &cache->lines[slot];
        touch(cache, line);
        missing &= ~(uint32_t)line->sectors;
        line->sectors = (uint16_t)(line->sectors | sectors);
    }
    struct cache_line *line = &cache->lines[cache->last];
    line->dirty = (uint16_t)(line->dirty | sectors);
    cache->stored = true;
    return missing;
}

void cache_prefetch(const struct cache *cache, uint64_t address)
{
    enum { HOST_LINE = 64 };
    uint64_t number = divide(&cache->by_line, address);
    if (cache->links) {
        __builtin_prefetch(links_bucket(cache, number + 1 + cache->base));
        return;
    }
    uint32_t set = set_index_of(cache, number);
    uint32_t first = set * cache->ways + (set < cache->larger_sets ? set : cache->larger_sets);
    const char *line = (const char *)&cache->lines[first];
    for (size_t at = 0; at < cache->ways * sizeof *cache->lines; at += HOST_LINE)
        __builtin_prefetch(line + at);
    __builtin_prefetch(&cache->sets[set]);
}

/* The slot of a line, without using it. */
static uint32_t find_unused(struct cache *cache, uint64_t number)
{
    uint64_t key = number + 1 + cache->base;
    return cache->links ? links_find(cache, key)
                        : find_scanned(cache, set_index_of(cache, number), key);
}

bool cache_holds(struct cache *cache, uint64_t address, uint32_t sectors)
{
    uint32_t slot = find_unused(cache, divide(&cache->by_line, address));
    return slot != links_none && !(sectors & ~(uint32_t)cache->lines[slot].sectors);
}

void cache_drop(struct cache *cache, uint64_t address)
{
    uint64_t number = divide(&cache->by_line, address);
    uint32_t slot = find_unused(cache, number);
    if (slot == links_none)
        return;
    cache->lines[slot].sectors = cache->lines[slot].dirty = 0;
    cache->lines[slot].used = 0;
    if (!cache->links)
        return;
    struct cache_set *set = &cache->sets[set_index_of(cache, number)];
    links_remove(cache, set, slot);
    links_add_oldest(cache, set, slot);
}
