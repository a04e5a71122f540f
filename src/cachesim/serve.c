/* Serves many accesses. What each needs is fetched from memory some accesses before its turn. */
#include "cachesim/lookup.h"

/* So many accesses before its turn, a set, and then the line itself, begin to come from memory. */
enum { SET_AHEAD = 16, LINE_AHEAD = 8, HOST_LINE = 64 };

/* Where a line belongs, and where it probably is; links_none: nowhere. */
struct spot {
    uint64_t key;
    uint32_t set, slot;
};

static inline struct spot find_spot(const struct cache *cache, uint64_t number)
{
    struct spot spot = {
        .key = number + 1 + cache->base, .set = set_index_of(cache, number), .slot = links_none};
    if (cache->links)
        __builtin_prefetch(links_bucket(cache, spot.key));
    else if (cache->marks)
        __builtin_prefetch(&cache->marks[lookup_first(cache, spot.set)]);
    else
        __builtin_prefetch(&cache->lines[lookup_first(cache, spot.set)]);
    return spot;
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

/* All that a miss will look at. */
static void expect_miss(const struct cache *cache, const struct spot *spot)
{
    const struct cache_set *set = &cache->sets[spot->set];
    const char *lines = (const char *)&cache->lines[lookup_first(cache, spot->set)];
    __builtin_prefetch(set);
    for (size_t at = 0; at < cache->ways * sizeof *cache->lines; at += HOST_LINE)
        __builtin_prefetch(lines + at);
}

static inline void expect_line(const struct cache *cache, struct spot *spot)
{
    if (cache->links)
        spot->slot = *links_bucket(cache, spot->key) - 1;
    else if (cache->marks)
        spot->slot = marked_slot(cache, spot);
    if (spot->slot == links_none) {
        if (!cache->links)
            expect_miss(cache, spot);
        return;
    }
    __builtin_prefetch(&cache->lines[spot->slot]);
    if (cache->links)
        __builtin_prefetch(&cache->links[spot->slot]);
}

static inline uint32_t find_in(struct cache *cache, const struct spot *spot)
{
    uint32_t slot = spot->slot;
    if (slot == links_none || cache->lines[slot].key != spot->key)
        slot = lookup_only(cache, spot->set, spot->key);
    if (slot != links_none)
        lookup_order(cache, spot->set, slot);
    return slot;
}

static inline uint32_t serve_one(struct cache *cache, const struct spot *spot,
                                 const struct cache_request *r, struct rng *rng)
{
    if (r->operation == CACHE_LOAD)
        return lookup_load(cache, spot->set, spot->key, find_in(cache, spot), r->sectors, rng);
    if (r->operation == CACHE_STORE)
        return lookup_store(cache, spot->set, spot->key, find_in(cache, spot), r->sectors, rng);
    if (r->operation == CACHE_DROP)
        lookup_drop(cache, spot->set, spot->key);
    return r->sectors;
}

void cache_serve(struct cache *const *caches, struct cache_request *requests, size_t count,
                 struct rng *rng)
{
    struct spot spots[SET_AHEAD];
    for (size_t i = 0; i < count + SET_AHEAD; i++) {
        if (i >= SET_AHEAD) {
            struct cache_request *r = &requests[i - SET_AHEAD];
            r->missing = (uint16_t)serve_one(caches[r->cache], &spots[i % SET_AHEAD], r, rng);
        }
        if (i < count && requests[i].operation != CACHE_PASS)
            spots[i % SET_AHEAD] = find_spot(caches[requests[i].cache], requests[i].number);
        size_t next = i - LINE_AHEAD;
        if (next < count && requests[next].operation != CACHE_PASS)
            expect_line(caches[requests[next].cache], &spots[next % SET_AHEAD]);
    }
}

void cache_serve_near(struct cache *const *caches, struct cache_request *requests, size_t count,
                      struct rng *rng)
{
    for (size_t i = 0; i < count; i++) {
        struct cache_request *r = &requests[i];
        struct cache *cache = caches[r->cache];
        struct spot spot = {.key = r->number + 1 + cache->base, .slot = links_none};
        if (r->operation != CACHE_PASS && cache->set_count > 1)
            spot.set = set_index_of(cache, r->number);
        r->missing = (uint16_t)serve_one(cache, &spot, r, rng);
    }
}
