/* Lookup, fill and replacement of a simulated cache. */
#include "device/sim/cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static const uint32_t none = UINT32_MAX;

/* How often a fill replaces a valid line of an early-evicting set that has room left. */
static const double early_chance = 0.5;

static struct divider divider_of(uint64_t d)
{
    struct divider by = {.d = d};
    if (d > 1)
        by.magic = (uint64_t)((((unsigned __int128)1 << 64) + d - 1) / d);
    return by;
}

static inline uint64_t divide(const struct divider *by, uint64_t x)
{
    return by->magic ? (uint64_t)(((unsigned __int128)x * by->magic) >> 64) : x;
}

static inline uint64_t mix(uint64_t x)
{
    x = (x + 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
    x ^= x >> 29;
    return x * 0x94d049bb133111ebu;
}

/* Hashing rotates the sets anew for each aligned block of as many lines as there are sets, so
 * that any contiguous array still spreads evenly. */
static inline uint32_t set_of(const struct cache *cache, uint64_t line)
{
    uint64_t block = divide(&cache->by_sets, line);
    uint64_t set = line - block * cache->by_sets.d;
    if (cache->geometry.index == CACHE_HASHED) {
        set += ((mix(block) >> 32) * cache->by_sets.d) >> 32;
        set -= set >= cache->by_sets.d ? cache->by_sets.d : 0;
    }
    return (uint32_t)set;
}

static inline uint32_t *bucket_of(const struct cache *cache, uint64_t key)
{
    return &cache->buckets[(mix(key) >> 32) & cache->bucket_mask];
}

static inline uint32_t find_scanned(const struct cache *cache, const struct cache_set *set,
                                    uint64_t key)
{
    uint32_t end = set->first + set->filled;
    for (uint32_t slot = set->first; slot < end; slot++)
        if (cache->lines[slot].key == key)
            return slot;
    return none;
}

static uint32_t find_linked(const struct cache *cache, uint64_t key)
{
    uint32_t slot = *bucket_of(cache, key) - 1;
    while (slot != none && cache->lines[slot].key != key)
        slot = cache->links[slot].chain - 1;
    return slot;
}

static void unchain(struct cache *cache, uint32_t slot)
{
    uint32_t *at = bucket_of(cache, cache->lines[slot].key);
    while (*at != slot + 1)
        at = &cache->links[*at - 1].chain;
    *at = cache->links[slot].chain;
}

static void list_remove(struct cache *cache, struct cache_set *set, uint32_t slot)
{
    struct cache_link *link = &cache->links[slot];
    if (link->newer != none)
        cache->links[link->newer].older = link->older;
    else
        set->newest = link->older;
    if (link->older != none)
        cache->links[link->older].newer = link->newer;
    else
        set->oldest = link->newer;
}

static void list_add_newest(struct cache *cache, struct cache_set *set, uint32_t slot)
{
    struct cache_link *link = &cache->links[slot];
    link->newer = none;
    link->older = set->newest;
    if (set->newest != none)
        cache->links[set->newest].newer = slot;
    else
        set->oldest = slot;
    set->newest = slot;
}

static inline void touch(struct cache *cache, struct cache_set *set, uint32_t slot)
{
    cache->lines[slot].used = ++cache->tick;
    if (cache->links && set->newest != slot) {
        list_remove(cache, set, slot);
        list_add_newest(cache, set, slot);
    }
}

/* none: no copy in the set. */
static uint32_t oldest_scanned(const struct cache *cache, const struct cache_set *set,
                               bool copies_only)
{
    uint32_t victim = none;
    for (uint32_t i = 0; i < set->filled; i++) {
        uint32_t slot = set->first + i;
        if (copies_only && !cache->lines[slot].copy)
            continue;
        if (victim == none || cache->lines[slot].used < cache->lines[victim].used)
            victim = slot;
    }
    return victim;
}

/* What goes first where a part keeps copies: aged lines, then copies. none: all are at home. */
static uint32_t find_expendable(const struct cache *cache, const struct cache_set *set)
{
    uint32_t oldest = oldest_scanned(cache, set, false);
    return cache->lines[oldest].used <= cache->aged_tick ? oldest
                                                         : oldest_scanned(cache, set, true);
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
    uint32_t expendable = cache->with_copies ? find_expendable(cache, set) : none;
    if (expendable != none)
        return expendable;
    switch (cache->geometry.policy) {
    case CACHE_RANDOM:
        return set->first + (uint32_t)rng_below(rng, set->filled);
    case CACHE_FERMI:
        return set->first + fermi_way(set->filled, rng);
    default:
        return cache->links ? set->oldest : oldest_scanned(cache, set, false);
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

static void place(struct cache *cache, struct cache_set *set, uint32_t slot, uint64_t key)
{
    struct cache_line *line = &cache->lines[slot];
    if (cache->links) {
        if (line->key) {
            unchain(cache, slot);
            list_remove(cache, set, slot);
        }
        uint32_t *bucket = bucket_of(cache, key);
        cache->links[slot].chain = *bucket;
        *bucket = slot + 1;
        list_add_newest(cache, set, slot);
    }
    *line = (struct cache_line){.key = key, .used = ++cache->tick};
}

struct place {
    struct cache_set *set;
    uint64_t key;
    uint32_t sector;
    uint32_t slot; /* none: the line is not there */
};

static inline struct place look(const struct cache *cache, uint64_t address)
{
    uint64_t number = divide(&cache->by_line, address);
    struct place at = {.set = &cache->sets[set_of(cache, number)], .key = number + 1};
    at.sector = (uint32_t)divide(&cache->by_sector, address - number * cache->by_line.d);
    at.slot = cache->links ? find_linked(cache, at.key) : find_scanned(cache, at.set, at.key);
    return at;
}

/* True when the line and the sector are there; brings the sector of a line that is. */
static inline bool use(struct cache *cache, const struct place *at)
{
    struct cache_line *line = &cache->lines[at->slot];
    touch(cache, at->set, at->slot);
    if (line->sectors & (UINT32_C(1) << at->sector))
        return true;
    line->sectors |= cache->fetch_masks[at->sector];
    cache->fills++;
    return false;
}

bool cache_access(struct cache *cache, uint64_t address, struct rng *rng)
{
    struct place at = look(cache, address);
    if (at.slot != none)
        return use(cache, &at);
    uint32_t slot = choose_slot(cache, at.set, rng);
    place(cache, at.set, slot, at.key);
    cache->lines[slot].sectors = cache->fetch_masks[at.sector];
    cache->fills++;
    return false;
}

bool cache_access_copy(struct cache *cache, uint64_t address)
{
    struct place at = look(cache, address);
    if (at.slot != none)
        return use(cache, &at);
    cache->with_copies = true;
    uint32_t slot = at.set->filled < at.set->ways ? at.set->first + at.set->filled++
                                                  : find_expendable(cache, at.set);
    if (slot == none)
        return false;
    place(cache, at.set, slot, at.key);
    cache->lines[slot].sectors = cache->fetch_masks[at.sector];
    cache->lines[slot].copy = 1;
    cache->fills++;
    return false;
}

void cache_age(struct cache *cache)
{
    cache->aged_tick = cache->tick;
}

uint64_t cache_span(const struct cache *cache)
{
    return (uint64_t)cache->set_count * cache->geometry.line;
}

/* Lines that do not divide by the ways make some sets larger: unequal sets exist (Mei and Chu,
 * section 4.4). */
static uint32_t count_sets(const struct cache_geometry *geometry, uint32_t lines)
{
    uint64_t ways = geometry->ways ? geometry->ways : lines;
    uint64_t sets = lines / ways;
    return sets ? (uint32_t)sets : 1;
}

void cache_reset(struct cache *cache, uint64_t size_bytes)
{
    uint64_t wanted = size_bytes / cache->geometry.line;
    uint32_t lines = wanted < cache->lines_max ? (uint32_t)wanted : cache->lines_max;
    lines = lines ? lines : 1;
    cache->set_count = count_sets(&cache->geometry, lines);
    cache->by_sets = divider_of(cache->set_count);
    uint32_t ways = lines / cache->set_count, larger = lines % cache->set_count, first = 0;
    for (uint32_t s = 0; s < cache->set_count; s++) {
        uint32_t own = ways + (s < larger);
        cache->sets[s] =
            (struct cache_set){.first = first, .ways = own, .newest = none, .oldest = none};
        first += own;
    }
    if (cache->links) {
        memset(cache->buckets, 0, ((size_t)cache->bucket_mask + 1) * sizeof *cache->buckets);
        memset(cache->lines, 0, cache->lines_max * sizeof *cache->lines);
    }
    cache->with_copies = false;
    cache->fills++;
}

static int create_links(struct cache *cache)
{
    uint32_t buckets = 1;
    while (buckets < cache->lines_max)
        buckets *= 2;
    cache->bucket_mask = buckets - 1;
    cache->links = mem_array(cache->lines_max, sizeof *cache->links);
    cache->buckets = mem_array(buckets, sizeof *cache->buckets);
    return cache->links && cache->buckets ? 0 : -1;
}

struct cache *cache_create(const struct cache_geometry *geometry)
{
    struct cache *cache = mem_array(1, sizeof *cache);
    if (!cache)
        return NULL;
    cache->geometry = *geometry;
    cache->by_line = divider_of(geometry->line);
    cache->by_sector = divider_of(geometry->sector);
    cache->lines_max = (uint32_t)(geometry->size / geometry->line);
    cache->lines_max = cache->lines_max ? cache->lines_max : 1;
    uint32_t sectors = (uint32_t)(geometry->line / geometry->sector);
    uint32_t together = (uint32_t)(geometry->fetch / geometry->sector);
    for (uint32_t s = 0; s < sectors; s++)
        for (uint32_t k = 0; k < sectors; k++)
            if (k / together == s / together)
                cache->fetch_masks[s] |= UINT32_C(1) << k;
    /* A smaller size after cache_reset has fewer sets, never more. */
    cache->lines = mem_array(cache->lines_max, sizeof *cache->lines);
    cache->sets = mem_array(count_sets(geometry, cache->lines_max), sizeof *cache->sets);
    bool linked = geometry->ways == 0 || geometry->ways > CACHE_SCANNED_WAYS;
    if (!cache->lines || !cache->sets || (linked && create_links(cache))) {
        cache_destroy(cache);
        return NULL;
    }
    cache_reset(cache, geometry->size);
    return cache;
}

void cache_destroy(struct cache *cache)
{
    if (!cache)
        return;
    free(cache->lines);
    free(cache->sets);
    free(cache->links);
    free(cache->buckets);
    free(cache);
}
