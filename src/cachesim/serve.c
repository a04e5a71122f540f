/* Serves many accesses. What each needs is fetched from memory some accesses before its turn. */
#include "cachesim/lookup.h"

/* Accesses to sets with an order go through three stages, so many at a time: while some are served,
 * the lines of the next ones, and what tells the place of those after them, come from memory. */
enum { GROUP = 16, SPOTS = 4 * GROUP };

/* Where a line belongs, and where it probably is; links_none: not there. */
struct spot {
    uint64_t key;
    uint32_t set, slot;
};

static inline size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline void guess_group(const struct cache *cache, const struct cache_request *requests,
                               size_t first, size_t count, struct spot *spots)
{
    for (size_t i = first; i < smaller(first + GROUP, count); i++) {
        uint64_t number = requests[i].number;
        struct spot *spot = &spots[i % SPOTS];
        spot->key = number + 1 + cache->base;
        spot->set = set_index_of(cache, number);
        __builtin_prefetch(&cache->marks[lookup_first(cache, spot->set)]);
        __builtin_prefetch(&cache->sets[spot->set]);
    }
}

/* The first line of the set whose mark is that of the key. */
static inline uint32_t marked_slot(const struct cache *cache, const struct spot *spot)
{
    uint32_t first = lookup_first(cache, spot->set);
    uint8_t mark = marks_of(spot->key);
    for (uint32_t i = 0; i < cache->ways; i += MARKS_TOGETHER) {
        uint64_t equal = marks_equal(&cache->marks[first + i], mark);
        if (equal)
            return first + i + (uint32_t)__builtin_ctzll(equal) / 8;
    }
    return links_none;
}

/* The line that a miss will take. */
static inline uint32_t next_victim(const struct cache *cache, const struct spot *spot)
{
    const struct cache_set *set = &cache->sets[spot->set];
    return lookup_first(cache, spot->set) +
           (set->filled < set->ways ? set->filled : order_oldest(set->order, set->ways));
}

static inline void locate_group(const struct cache *cache, size_t first, size_t count,
                                struct spot *spots)
{
    for (size_t i = first; i < smaller(first + GROUP, count); i++) {
        struct spot *spot = &spots[i % SPOTS];
        spot->slot = marked_slot(cache, spot);
        uint32_t soon = spot->slot != links_none ? spot->slot : next_victim(cache, spot);
        __builtin_prefetch(&cache->lines[soon]);
    }
}

static __attribute__((noinline)) uint32_t miss(struct cache *cache, const struct spot *spot,
                                               const struct cache_request *r, struct rng *rng)
{
    return r->operation == CACHE_LOAD
               ? lookup_load(cache, spot->set, spot->key, links_none, r->sectors, rng)
               : lookup_store(cache, spot->set, spot->key, links_none, r->sectors,
                              r->operation == CACHE_STORE, rng);
}

static inline uint32_t hit(struct cache *cache, uint32_t set, struct cache_line *line,
                           const struct cache_request *r)
{
    uint32_t missing = r->sectors & ~(uint32_t)line->sectors;
    line->used = replace_tick(cache);
    if (r->operation == CACHE_PLACE) {
        line->sectors = (uint16_t)(line->sectors | r->sectors);
        return r->sectors;
    }
    if (r->operation == CACHE_STORE) {
        line->sectors = (uint16_t)(line->sectors | r->sectors);
        lookup_write(cache, set, line, r->sectors);
    } else if (missing) {
        lookup_bring(cache, line, missing);
    }
    return missing;
}

static inline void serve_group(struct cache *cache, struct cache_request *requests, size_t first,
                               size_t count, const struct spot *spots, struct rng *rng)
{
    for (size_t i = first; i < smaller(first + GROUP, count); i++) {
        struct cache_request *r = &requests[i];
        const struct spot *spot = &spots[i % SPOTS];
        uint32_t slot = spot->slot;
        if (slot == links_none || cache->lines[slot].key != spot->key)
            slot = lookup_scanned(cache, spot->set, spot->key);
        if (slot == links_none) {
            r->missing = (uint16_t)miss(cache, spot, r, rng);
        } else {
            struct cache_set *set = &cache->sets[spot->set];
            cache->last = slot;
            set->order = order_use(set->order, slot - set->first);
            r->missing = (uint16_t)hit(cache, spot->set, &cache->lines[slot], r);
        }
    }
}

/* Sets that keep an order of use. */
static void serve_ordered(struct cache *cache, struct cache_request *requests, size_t count,
                          struct rng *rng)
{
    struct spot spots[SPOTS];
    guess_group(cache, requests, 0, count, spots);
    guess_group(cache, requests, GROUP, count, spots);
    locate_group(cache, 0, count, spots);
    for (size_t first = 0; first < count; first += GROUP) {
        guess_group(cache, requests, first + 2 * GROUP, count, spots);
        locate_group(cache, first + GROUP, count, spots);
        serve_group(cache, requests, first, count, spots, rng);
    }
}

/* A fully associative cache that replaces the line used longest ago. */
static void serve_linked(struct cache *const *caches, struct cache_request *requests, size_t count,
                         struct rng *rng)
{
    for (size_t i = 0; i < count; i++) {
        struct cache_request *r = &requests[i];
        struct cache *cache = caches[r->cache];
        r->missing = r->sectors;
        if (r->operation == CACHE_PASS)
            continue;
        struct spot spot = {.key = r->number + 1 + cache->base};
        uint32_t slot = links_find(cache, spot.key);
        if (r->operation == CACHE_DROP) {
            lookup_drop(cache, 0, spot.key);
        } else if (slot == links_none) {
            r->missing = (uint16_t)miss(cache, &spot, r, rng);
        } else {
            lookup_order(cache, 0, slot);
            r->missing = (uint16_t)hit(cache, 0, &cache->lines[slot], r);
        }
    }
}

/* Any cache. */
static uint32_t serve_any(struct cache *cache, const struct cache_request *r, struct rng *rng)
{
    uint32_t set = set_index_of(cache, r->number);
    uint64_t key = r->number + 1 + cache->base;
    if (r->operation == CACHE_PASS)
        return r->sectors;
    if (r->operation == CACHE_DROP) {
        lookup_drop(cache, set, key);
        return r->sectors;
    }
    uint32_t slot = lookup_find(cache, set, key);
    return r->operation == CACHE_LOAD
               ? lookup_load(cache, set, key, slot, r->sectors, rng)
               : lookup_store(cache, set, key, slot, r->sectors, r->operation == CACHE_STORE, rng);
}

void cache_serve_one(struct cache *cache, struct cache_request *requests, size_t count,
                     struct rng *rng)
{
    if (cache->ordered && !cache->fifo) {
        serve_ordered(cache, requests, count, rng);
        return;
    }
    for (size_t i = 0; i < count; i++)
        requests[i].missing = (uint16_t)serve_any(cache, &requests[i], rng);
}

void cache_serve(struct cache *const *caches, struct cache_request *requests, size_t count,
                 struct rng *rng)
{
    const struct cache *first = caches[count ? requests[0].cache : 0];
    if (first->links && first->set_count == 1 && !first->fifo) {
        serve_linked(caches, requests, count, rng);
        return;
    }
    for (size_t i = 0; i < count; i++)
        requests[i].missing = (uint16_t)serve_any(caches[requests[i].cache], &requests[i], rng);
}
