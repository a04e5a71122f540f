/* Serves many accesses. What each needs is fetched from memory some accesses before its turn. */
#include "cachesim/lookup.h"

/* Accesses go through three stages, so many at a time: while some are served, the lines of the next
 * ones and what tells the place of those after them come from memory. */
enum { GROUP = 16, GROUPS = 4, SPOTS = GROUP * GROUPS, HOST_LINE = 64 };

/* Where a line belongs, and where it probably is; links_none: nowhere. */
struct spot {
    uint64_t key;
    uint32_t set, slot;
};

/* A run of accesses and the caches that they are for. */
struct run {
    struct cache *const *caches;
    struct cache_request *requests;
    size_t count;
    struct rng *rng;
    struct spot spots[SPOTS];
};

static inline uint32_t *recent_of(const struct cache *cache, uint64_t number)
{
    return &cache->recent[number % CACHE_RECENT];
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
static inline void expect_miss(const struct cache *cache, const struct spot *spot)
{
    const char *lines = (const char *)&cache->lines[lookup_first(cache, spot->set)];
    __builtin_prefetch(&cache->sets[spot->set]);
    for (size_t at = 0; at < cache->ways * sizeof *cache->lines; at += HOST_LINE)
        __builtin_prefetch(lines + at);
}

static inline void guess(const struct cache *cache, uint64_t number, struct spot *spot)
{
    spot->key = number + 1 + cache->base;
    if (cache->marks) {
        spot->slot = *recent_of(cache, number);
        __builtin_prefetch(&cache->lines[spot->slot]);
        return;
    }
    spot->slot = links_none;
    spot->set = set_index_of(cache, number);
    if (cache->links)
        __builtin_prefetch(links_bucket(cache, spot->key));
    else
        expect_miss(cache, spot);
}

static inline void locate(const struct cache *cache, uint64_t number, struct spot *spot)
{
    if (cache->links) {
        spot->slot = *links_bucket(cache, spot->key) - 1;
        __builtin_prefetch(&cache->lines[spot->slot == links_none ? 0 : spot->slot]);
        __builtin_prefetch(&cache->links[spot->slot == links_none ? 0 : spot->slot]);
    }
    if (!cache->marks)
        return;
    bool found = cache->lines[spot->slot].key == spot->key;
    if (found && !cache->tree)
        return;
    spot->set = set_index_of(cache, number);
    if (found)
        return;
    spot->slot = marked_slot(cache, spot);
    if (spot->slot == links_none)
        expect_miss(cache, spot);
    else
        __builtin_prefetch(&cache->lines[spot->slot]);
}

static inline uint32_t find_in(struct cache *cache, uint64_t number, struct spot *spot)
{
    uint32_t slot = spot->slot;
    if (slot == links_none || cache->lines[slot].key != spot->key) {
        spot->set = set_index_of(cache, number);
        slot = lookup_only(cache, spot->set, spot->key);
    }
    if (slot != links_none)
        lookup_order(cache, spot->set, slot);
    return slot;
}

static inline uint32_t serve_one(struct cache *cache, struct spot *spot,
                                 const struct cache_request *r, struct rng *rng)
{
    if (r->operation == CACHE_PASS)
        return r->sectors;
    if (r->operation == CACHE_DROP) {
        lookup_drop(cache, set_index_of(cache, r->number), spot->key);
        return r->sectors;
    }
    uint32_t slot = find_in(cache, r->number, spot);
    uint32_t missing = r->operation == CACHE_LOAD
                           ? lookup_load(cache, spot->set, spot->key, slot, r->sectors, rng)
                           : lookup_store(cache, spot->set, spot->key, slot, r->sectors, rng);
    if (cache->marks)
        *recent_of(cache, r->number) = cache->last;
    return missing;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void guess_group(struct run *run, size_t first)
{
    for (size_t i = first; i < smaller(first + GROUP, run->count); i++)
        if (run->requests[i].operation != CACHE_PASS)
            guess(run->caches[run->requests[i].cache], run->requests[i].number,
                  &run->spots[i % SPOTS]);
}

static void locate_group(struct run *run, size_t first)
{
    for (size_t i = first; i < smaller(first + GROUP, run->count); i++)
        if (run->requests[i].operation != CACHE_PASS)
            locate(run->caches[run->requests[i].cache], run->requests[i].number,
                   &run->spots[i % SPOTS]);
}

static void serve_group(struct run *run, size_t first)
{
    for (size_t i = first; i < smaller(first + GROUP, run->count); i++) {
        struct cache_request *r = &run->requests[i];
        r->missing =
            (uint16_t)serve_one(run->caches[r->cache], &run->spots[i % SPOTS], r, run->rng);
    }
}

void cache_serve(struct cache *const *caches, struct cache_request *requests, size_t count,
                 struct rng *rng)
{
    struct run run;
    run.caches = caches;
    run.requests = requests;
    run.count = count;
    run.rng = rng;
    guess_group(&run, 0);
    guess_group(&run, GROUP);
    locate_group(&run, 0);
    for (size_t first = 0; first < count; first += GROUP) {
        guess_group(&run, first + 2 * GROUP);
        locate_group(&run, first + GROUP);
        serve_group(&run, first);
    }
}

void cache_serve_near(struct cache *const *caches, struct cache_request *requests, size_t count,
                      struct rng *rng)
{
    for (size_t i = 0; i < count; i++) {
        struct cache_request *r = &requests[i];
        struct cache *cache = caches[r->cache];
        uint64_t key = r->number + 1 + cache->base;
        if (r->operation != CACHE_LOAD) {
            struct spot spot = {.key = key, .slot = links_none};
            r->missing = (uint16_t)serve_one(cache, &spot, r, rng);
            continue;
        }
        uint32_t set = cache->set_count > 1 ? set_index_of(cache, r->number) : 0;
        r->missing =
            (uint16_t)lookup_load(cache, set, key, lookup_find(cache, set, key), r->sectors, rng);
    }
}
