/* Fills a simulated cache: chooses victims by the policy. */
#include "cachesim/replace.h"

#include "cachesim/links.h"
#include "cachesim/marks.h"
#include "cachesim/order.h"
#include "cachesim/tree.h"

/* Sets of which one gives a line, if there are tags but no data left. */
enum { SETS_DRAWN = 5 };

/* How often a fill replaces a valid line of an early-evicting set that has room left. */
static const double early_chance = 0.5;

/* Before the ticks overflow, all of them are lowered by the same amount. Lines not used for two
 * thousand million accesses then count as equally old. */
void replace_renumber(struct cache *cache)
{
    static const uint32_t less = UINT32_C(1) << 31;
    for (uint32_t i = 0; i < cache->lines_max; i++)
        cache->lines[i].used = cache->lines[i].used > less ? cache->lines[i].used - less : 0;
    cache->tick -= less;
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
        if (cache->ordered && set->order)
            return set->first + order_oldest(set->order, set->ways);
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

static inline void write_back(struct cache *cache, struct cache_set *set,
                              const struct cache_line *line)
{
    if (!line->dirty || line->key <= cache->base)
        return;
    cache->written_back += (uint64_t)__builtin_popcount(line->dirty);
    set->dirty--;
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
        write_back(cache, set, &cache->lines[slot]);
    cache->lines[slot] =
        (struct cache_line){.key = key, .used = replace_tick(cache), .sectors = sectors};
    if (cache->marks)
        cache->marks[slot] = marks_of(key);
    if (cache->ordered)
        set->order = order_use(set->order, slot - set->first);
    cache->last = slot;
    cache->fills++;
    if (cache->tree)
        tree_use(set, slot - set->first);
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
        write_back(cache, best, &cache->lines[oldest]);
    uint32_t last = best->first + --best->filled;
    cache->lines[oldest] = cache->lines[last];
    cache->lines[last].key = 0;
    cache->held--;
}

void replace_miss(struct cache *cache, uint32_t set, uint64_t key, uint32_t sectors,
                  struct rng *rng)
{
    struct cache_set *at = &cache->sets[set];
    if (at->resets != cache->resets) {
        at->resets = cache->resets;
        at->filled = at->dirty = 0;
        at->newest = at->oldest = links_none;
        at->tree = 0;
        at->order = at->ways <= ORDER_WAYS_MAX ? order_first : 0;
    }
    if (cache->geometry.tags && at->filled < at->ways) {
        if (cache->held == cache->room)
            free_data(cache, rng);
        cache->held++;
    }
    place(cache, at, choose_slot(cache, at, rng), key, (uint16_t)sectors);
    if (cache->lfu)
        cache->lines[cache->last].used = 1;
}

void replace_clean(struct cache *cache, struct cache_set *set)
{
    struct cache_line *oldest = NULL;
    for (uint32_t i = 0; i < set->filled; i++) {
        struct cache_line *line = &cache->lines[set->first + i];
        if (line->dirty && (!oldest || line->used < oldest->used))
            oldest = line;
    }
    if (!oldest)
        return;
    cache->written_back += (uint64_t)__builtin_popcount(oldest->dirty);
    oldest->dirty = 0;
    set->dirty--;
}
