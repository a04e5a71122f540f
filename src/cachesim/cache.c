/* Lookup, fill and replacement of a simulated cache. */
#include "cachesim/cache.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/mem.h"

static const uint32_t none = UINT32_MAX;

/* Larger than any line number. */
static const uint64_t key_step = UINT64_C(1) << 48;

/* Up to this many ways, scanning all lines finds the oldest sooner than keeping a list. */
enum { FEW_WAYS = 4, SCANNED_WAYS = 16 };

/* Sets of which one gives a line, if there are tags but no data left. */
enum { SETS_DRAWN = 5 };

/* How often a fill replaces a valid line of an early-evicting set that has room left. */
static const double early_chance = 0.5;

/* Fibonacci hashing: the upper half of the product is well mixed. */
static inline uint64_t mix(uint64_t x)
{
    return (x * 0x9e3779b97f4a7c15u) >> 32;
}

/* Hashing rotates the sets anew for each aligned block of as many lines as there are sets, so
 * that any contiguous array still spreads evenly. */
static inline uint32_t set_of(const struct cache *cache, uint64_t line)
{
    line = cache->by_run.d > 1 ? divide(&cache->by_run, line) : line;
    uint64_t block = divide(&cache->by_sets, line);
    uint64_t set = line - block * cache->by_sets.d;
    if (cache->geometry.index == CACHE_HASHED) {
        set += (mix(block) * cache->by_sets.d) >> 32;
        set -= set >= cache->by_sets.d ? cache->by_sets.d : 0;
    }
    return cache->slot_count ? cache->slots[set] : (uint32_t)set;
}

static inline uint32_t *bucket_of(const struct cache *cache, uint64_t key)
{
    return &cache->buckets[mix(key) & cache->bucket_mask];
}

/* Tries the way in which the last search found its line first: an array loaded from end to end lies
 * in one way over many sets. Does not read the set's record, which would be one more memory access
 * to wait for. */
static inline uint32_t find_scanned(struct cache *cache, uint32_t set, uint64_t key)
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

/* Node 1 is the root; the children of node n are 2 n and 2 n + 1. A node of `count` ways has half
 * of them, rounded up, below it. */
static uint32_t tree_way(const struct cache_set *set)
{
    uint32_t low = 0, count = set->ways;
    for (uint32_t node = 1; count > 1;) {
        uint32_t lower = (count + 1) / 2;
        bool up = set->tree >> node & 1;
        low += up ? lower : 0;
        count = up ? count - lower : lower;
        node = 2 * node + up;
    }
    return low;
}

static __attribute__((noinline)) void tree_use(struct cache_set *set, uint32_t way)
{
    uint32_t count = set->ways;
    for (uint32_t node = 1; count > 1;) {
        uint32_t lower = (count + 1) / 2;
        bool up = way >= lower;
        set->tree = up ? set->tree & ~(UINT64_C(1) << node) : set->tree | UINT64_C(1) << node;
        way -= up ? lower : 0;
        count = up ? count - lower : lower;
        node = 2 * node + up;
    }
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

static void place(struct cache *cache, struct cache_set *set, uint32_t slot, uint64_t key,
                  uint16_t sectors)
{
    if (cache->links) {
        if (cache->lines[slot].key > cache->base) {
            unchain(cache, slot);
            list_remove(cache, set, slot);
        }
        uint32_t *bucket = bucket_of(cache, key);
        cache->links[slot].chain = *bucket;
        *bucket = slot + 1;
        list_add_newest(cache, set, slot);
    }
    cache->lines[slot] =
        (struct cache_line){.key = key, .used = next_tick(cache), .sectors = sectors};
    cache->last = slot;
    cache->fills++;
    if (cache->tree)
        tree_use(set, slot - set->first);
}

/* True when the line's sector is present; otherwise brings the sector in. */
static inline bool use(struct cache *cache, uint32_t slot, uint32_t sector)
{
    struct cache_line *line = &cache->lines[slot];
    if (!cache->fifo)
        line->used = next_tick(cache);
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
    uint32_t last = best->first + --best->filled;
    cache->lines[oldest] = cache->lines[last];
    cache->lines[last].key = 0;
    cache->held--;
}

static __attribute__((noinline)) bool miss(struct cache *cache, uint32_t set, uint64_t key,
                                           uint32_t sector, struct rng *rng)
{
    struct cache_set *at = &cache->sets[set];
    if (at->resets != cache->resets) {
        at->resets = cache->resets;
        at->filled = 0;
        at->newest = at->oldest = none;
        at->tree = 0;
    }
    if (cache->geometry.tags && at->filled < at->ways) {
        if (cache->held == cache->room)
            free_data(cache, rng);
        cache->held++;
    }
    place(cache, at, choose_slot(cache, at, rng), key, cache->fetch_masks[sector]);
    return false;
}

static __attribute__((noinline)) bool access_linked(struct cache *cache, uint32_t set, uint64_t key,
                                                    uint32_t sector, struct rng *rng)
{
    uint32_t slot = find_linked(cache, key);
    if (slot == none)
        return miss(cache, set, key, sector, rng);
    cache->last = slot;
    if (!cache->fifo) {
        list_remove(cache, &cache->sets[set], slot);
        list_add_newest(cache, &cache->sets[set], slot);
    }
    if (cache->tree)
        tree_use(&cache->sets[set], slot - cache->sets[set].first);
    return use(cache, slot, sector);
}

bool cache_access(struct cache *cache, uint64_t address, struct rng *rng)
{
    uint64_t number = divide(&cache->by_line, address), key = number + 1 + cache->base;
    uint32_t sector = (uint32_t)divide(&cache->by_sector, address - number * cache->by_line.d);
    if (cache->lines[cache->last].key == key)
        return use(cache, cache->last, sector);
    uint32_t set = set_of(cache, number);
    if (cache->links)
        return access_linked(cache, set, key, sector, rng);
    uint32_t slot = find_scanned(cache, set, key);
    if (slot == none)
        return miss(cache, set, key, sector, rng);
    cache->last = slot;
    if (cache->tree)
        tree_use(&cache->sets[set], slot - cache->sets[set].first);
    return use(cache, slot, sector);
}

uint64_t cache_span(const struct cache *cache)
{
    return (uint64_t)cache->set_count * cache->by_run.d * cache->geometry.line;
}

static uint32_t count_unequal(const struct cache_geometry *geometry)
{
    uint32_t count = 0;
    while (count < CACHE_SLOTS_MAX && geometry->set_ways[count])
        count++;
    return count;
}

static uint32_t count_lines(const struct cache_geometry *geometry)
{
    uint32_t lines = 0;
    for (uint32_t s = 0; s < count_unequal(geometry); s++)
        lines += geometry->set_ways[s];
    return lines;
}

/* When the lines are no multiple of the ways, some sets are larger. Real caches have unequal sets
 * too (Mei and Chu, section 4.4). */
static uint32_t count_sets(const struct cache_geometry *geometry, uint32_t lines)
{
    if (geometry->set_ways[0])
        return count_unequal(geometry);
    uint64_t ways = geometry->ways ? geometry->ways : lines;
    uint64_t sets = lines / ways;
    return sets ? (uint32_t)sets : 1;
}

uint32_t cache_slot_count(const struct cache_geometry *geometry)
{
    uint32_t smallest = UINT32_MAX, slots = 0, sets = count_unequal(geometry);
    for (uint32_t s = 0; s < sets; s++)
        smallest = geometry->set_ways[s] < smallest ? geometry->set_ways[s] : smallest;
    for (uint32_t s = 0; s < sets; s++)
        slots += geometry->set_ways[s] / smallest;
    return slots;
}

/* Unequal sets keep their sizes: such a cache cannot shrink. */
static void lay_out_unequal(struct cache *cache)
{
    const uint16_t *ways = cache->geometry.set_ways;
    uint32_t first = 0, smallest = UINT32_MAX;
    cache->set_count = count_unequal(&cache->geometry);
    cache->slot_count = 0;
    for (uint32_t s = 0; s < cache->set_count; s++)
        smallest = ways[s] < smallest ? ways[s] : smallest;
    for (uint32_t s = 0; s < cache->set_count; s++) {
        for (uint32_t k = 0; k < ways[s] / smallest && cache->slot_count < CACHE_SLOTS_MAX; k++)
            cache->slots[cache->slot_count++] = (uint16_t)s;
        cache->sets[s] = (struct cache_set){.first = first, .ways = ways[s]};
        first += ways[s];
    }
    cache->line_count = first;
    cache->by_sets = divider_of(cache->slot_count);
}

/* Writes all sets and lines anew: the sets have another size, or the keys begin again. */
static void lay_out(struct cache *cache, uint32_t lines)
{
    if (cache->geometry.set_ways[0]) {
        lay_out_unequal(cache);
        return;
    }
    cache->set_count = count_sets(&cache->geometry, lines);
    cache->by_sets = divider_of(cache->set_count);
    cache->ways = lines / cache->set_count;
    cache->larger_sets = lines % cache->set_count;
    cache->line_count = lines;
    uint32_t first = 0;
    for (uint32_t s = 0; s < cache->set_count; s++) {
        uint32_t own = cache->ways + (s < cache->larger_sets);
        cache->sets[s] = (struct cache_set){.first = first, .ways = own};
        first += own;
    }
}

void cache_reset(struct cache *cache, uint64_t size_bytes)
{
    uint64_t wanted = size_bytes / cache->geometry.line;
    uint32_t lines = wanted < cache->lines_max ? (uint32_t)wanted : cache->lines_max;
    lines = lines ? lines : 1;
    cache->room = lines;
    cache->held = 0;
    lines = cache->geometry.set_ways[0] || cache->geometry.tags ? cache->lines_max : lines;
    cache->base += key_step;
    cache->resets++;
    if (!cache->base) {
        cache->base = key_step;
        memset(cache->lines, 0, cache->lines_max * sizeof *cache->lines);
    }
    if (lines != cache->line_count || !cache->resets) {
        cache->resets = 1;
        lay_out(cache, lines);
    }
    if (cache->links)
        memset(cache->buckets, 0, ((size_t)cache->bucket_mask + 1) * sizeof *cache->buckets);
    cache->last = 0;
    cache->fills++;
}

/* An L2 has megabytes of lines, used in random order: with small pages each would cost a page fault
 * or two. */
enum { LARGE_BYTES = 1 << 20 };

static struct cache_line *lines_create(uint32_t count)
{
    size_t bytes = (size_t)count * sizeof(struct cache_line);
    if (bytes < LARGE_BYTES)
        return mem_array(count, sizeof(struct cache_line));
    void *lines = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (lines == MAP_FAILED)
        return NULL;
    (void)madvise(lines, bytes, MADV_HUGEPAGE); /* only a hint: failure does no harm */
    return lines;
}

static void lines_destroy(struct cache_line *lines, uint32_t count)
{
    size_t bytes = (size_t)count * sizeof *lines;
    if (bytes < LARGE_BYTES)
        free(lines);
    else if (lines)
        munmap(lines, bytes);
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
    cache->by_run = divider_of(geometry->set_bytes ? geometry->set_bytes / geometry->line : 1);
    cache->fifo = geometry->policy == CACHE_FIFO;
    cache->tree = geometry->policy == CACHE_TREE;
    cache->lines_max =
        (uint32_t)((geometry->tags ? geometry->tags : geometry->size) / geometry->line);
    cache->lines_max = cache->lines_max ? cache->lines_max : 1;
    if (geometry->set_ways[0])
        cache->lines_max = count_lines(geometry);
    uint32_t sectors = (uint32_t)(geometry->line / geometry->sector);
    uint32_t together = (uint32_t)(geometry->fetch / geometry->sector);
    for (uint32_t s = 0; s < sectors; s++)
        for (uint32_t k = 0; k < sectors; k++)
            if (k / together == s / together)
                cache->fetch_masks[s] = (uint16_t)(cache->fetch_masks[s] | 1u << k);
    /* A smaller size after cache_reset has fewer sets, never more. */
    cache->lines = lines_create(cache->lines_max);
    cache->sets = mem_array(count_sets(geometry, cache->lines_max), sizeof *cache->sets);
    uint64_t scanned = geometry->mostly_hits ? SCANNED_WAYS : FEW_WAYS;
    bool linked = geometry->ways == 0 || geometry->ways > scanned || geometry->set_ways[0];
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
    lines_destroy(cache->lines, cache->lines_max);
    free(cache->sets);
    free(cache->links);
    free(cache->buckets);
    free(cache);
}
