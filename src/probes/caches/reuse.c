/* LRU, FIFO or pseudo-LRU: what is still there after some lines were used again and others came, in
 * one set and scattered over all sets. */
#include "probes/caches/reuse.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* A set by line: when it was used last, or loaded; 0: absent. */
struct set {
    uint64_t *since;
    uint64_t now;
    uint32_t lines, ways, held;
    bool fifo;
};

static uint32_t reuse_set_oldest(const struct set *set)
{
    uint32_t found = set->lines;
    for (uint32_t i = 0; i < set->lines; i++)
        if (set->since[i] && (found == set->lines || set->since[i] < set->since[found]))
            found = i;
    return found;
}

/* True when the line was there. */
static bool reuse_set_load(struct set *set, uint32_t line)
{
    bool there = set->since[line] > 0;
    set->now++;
    if (!there && set->held == set->ways)
        set->since[reuse_set_oldest(set)] = 0;
    else if (!there)
        set->held++;
    if (!there || !set->fifo)
        set->since[line] = set->now;
    return there;
}

static void load_range(struct set *set, uint32_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        reuse_set_load(set, first + i);
}

void reuse_pattern_predict(const struct reuse_pattern *pattern, bool fifo, bool *out_missed)
{
    struct set set = {.lines = pattern->ways + pattern->more, .ways = pattern->ways, .fifo = fifo};
    set.since = mem_array(set.lines, sizeof *set.since);
    load_range(&set, 0, pattern->ways);
    load_range(&set, pattern->first, pattern->again);
    load_range(&set, pattern->ways, pattern->more);
    for (uint32_t i = 0; i < pattern->timed; i++)
        out_missed[i] = !reuse_set_load(&set, i);
    free(set.since);
}

/* LRU, FIFO or pseudo-LRU: which lines, scattered over all sets at random, miss after some of them
 * were used again and others came. */

void reuse_sums_add(struct reuse_sums *sums, const double share[REUSE_HALVES])
{
    for (size_t half = 0; half < REUSE_HALVES; half++) {
        sums->sum[half] += share[half];
        sums->squares[half] += share[half] * share[half];
    }
    sums->jobs++;
}

struct reuse_shares reuse_sums_shares(const struct reuse_sums *sums)
{
    struct reuse_shares shares = {0};
    double jobs = sums->jobs;
    for (size_t half = 0; half < REUSE_HALVES; half++) {
        double mean = sums->sum[half] / jobs;
        shares.mean[half] = mean;
        shares.error[half] =
            sqrt(fmax(sums->squares[half] / jobs - mean * mean, 0) / fmax(jobs - 1, 1));
    }
    return shares;
}

/* A cache: of each set the lines that it holds. */
struct cache {
    uint64_t sets, ways;
    enum reuse_policy policy;
    uint32_t *lines; /* by set, then by age, the oldest first; with a tree by way */
    uint32_t *held;  /* by set */
    uint64_t
        *trees; /* by set: bit n is set if node n points to its upper half; node 1 is the root */
};

/* Two draws of lines: numbers of the region, in an order of which only the beginning is random. */
struct draws {
    uint64_t region;
    uint32_t *first, *more;
};

static void reuse_scattered_draw(uint32_t *numbers, uint64_t region, uint64_t count,
                                 struct rng *rng)
{
    for (uint64_t i = 0; i < count; i++) {
        uint64_t other = i + rng_below(rng, region - i);
        uint32_t number = numbers[i];
        numbers[i] = numbers[other];
        numbers[other] = number;
    }
}

/* The way that the nodes point to; or makes them point away from `used`. A node of `count` ways has
 * half of them, rounded up, below it. */
static uint32_t follow_tree(uint64_t *tree, uint64_t ways, const uint32_t *used)
{
    uint64_t low = 0, node = 1;
    for (uint64_t count = ways; count > 1;) {
        uint64_t lower = (count + 1) / 2, bit = UINT64_C(1) << node;
        bool up = used ? *used >= low + lower : (*tree & bit) != 0;
        if (used)
            *tree = up ? *tree & ~bit : *tree | bit;
        low += up ? lower : 0;
        count = up ? count - lower : lower;
        node = 2 * node + up;
    }
    return (uint32_t)low;
}

/* `at` is where the line is, or as many as there are lines. */
static void use_by_tree(struct cache *cache, uint64_t set, uint32_t at, uint32_t line)
{
    uint32_t *lines = &cache->lines[set * cache->ways], *held = &cache->held[set];
    if (at == cache->ways)
        at = follow_tree(&cache->trees[set], cache->ways, NULL);
    else if (at == *held)
        (*held)++;
    lines[at] = line;
    follow_tree(&cache->trees[set], cache->ways, &at);
}

static void use_by_age(struct cache *cache, uint64_t set, uint32_t at, uint32_t line)
{
    uint32_t *lines = &cache->lines[set * cache->ways], *held = &cache->held[set];
    bool missed = at == *held;
    if (!missed && cache->policy == REUSE_FIFO)
        return;
    if (missed && *held < cache->ways) {
        lines[(*held)++] = line;
        return;
    }
    at = missed ? 0 : at; /* the oldest goes; a line that is used again becomes the youngest */
    memmove(&lines[at], &lines[at + 1], (*held - at - 1) * sizeof *lines);
    lines[*held - 1] = line;
}

/* Loads a line. True when it was not there. */
static bool misses(struct cache *cache, uint32_t line)
{
    uint64_t set = line % cache->sets;
    const uint32_t *lines = &cache->lines[set * cache->ways];
    uint32_t held = cache->held[set], at = 0;
    while (at < held && lines[at] != line)
        at++;
    if (cache->policy == REUSE_TREE)
        use_by_tree(cache, set, at, line);
    else
        use_by_age(cache, set, at, line);
    return at == held;
}

static void reuse_scattered_load(struct cache *cache, const uint32_t *lines, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        misses(cache, lines[i]);
}

static void reuse_scattered_imitate_job(struct cache *cache, const struct reuse_scattered *loads,
                                        const struct draws *draws, struct reuse_sums *sums)
{
    double missed[REUSE_HALVES] = {0}, all[REUSE_HALVES] = {0};
    memset(cache->held, 0, cache->sets * sizeof *cache->held);
    memset(cache->trees, 0, cache->sets * sizeof *cache->trees);
    reuse_scattered_load(cache, draws->first, loads->first);
    reuse_scattered_load(cache, draws->first, loads->again);
    reuse_scattered_load(cache, draws->more, loads->more);
    for (uint64_t i = 0; i < loads->first; i++) {
        size_t half = 2 * i >= loads->first;
        missed[half] += misses(cache, draws->first[i]);
        all[half]++;
    }
    for (size_t half = 0; half < REUSE_HALVES; half++)
        missed[half] /= fmax(all[half], 1);
    reuse_sums_add(sums, missed);
}

void reuse_scattered_imitate(const struct reuse_scattered *loads, const struct reuse_sets *sets,
                             enum reuse_policy policy, uint32_t draws, uint64_t seed,
                             struct reuse_shares *out_shares)
{
    struct cache cache = {.sets = sets->sets, .ways = sets->ways, .policy = policy};
    struct draws drawn = {.region = sets->region};
    struct reuse_sums sums = {0};
    struct rng rng;
    rng_init(&rng, seed, "scattered");
    cache.lines = mem_array(sets->sets * sets->ways, sizeof *cache.lines);
    cache.held = mem_array(sets->sets, sizeof *cache.held);
    cache.trees = mem_array(sets->sets, sizeof *cache.trees);
    drawn.first = mem_array(sets->region, sizeof *drawn.first);
    drawn.more = mem_array(sets->region, sizeof *drawn.more);
    for (uint64_t i = 0; i < sets->region; i++)
        drawn.first[i] = drawn.more[i] = (uint32_t)i;
    for (uint32_t i = 0; i < draws; i++) {
        reuse_scattered_draw(drawn.first, sets->region, loads->first, &rng);
        reuse_scattered_draw(drawn.more, sets->region, loads->more, &rng);
        reuse_scattered_imitate_job(&cache, loads, &drawn, &sums);
    }
    *out_shares = reuse_sums_shares(&sums);
    free(cache.lines);
    free(cache.held);
    free(cache.trees);
    free(drawn.first);
    free(drawn.more);
}
