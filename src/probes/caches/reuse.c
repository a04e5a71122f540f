/* LRU, FIFO or pseudo-LRU: what is still there after some lines were used again and others came, in
 * one set and scattered over all sets. The caches are simulated; lines are numbers, one byte each.
 */
#include "probes/caches/reuse.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cachesim/cache.h"

/* None of these policies draws random numbers. */
static struct cache *reuse_cache(uint64_t sets, uint64_t ways, enum cache_policy policy)
{
    const struct cache_geometry geometry = {
        .size = sets * ways, .line = 1, .sector = 1, .fetch = 1, .ways = ways, .policy = policy};
    return cache_create(&geometry);
}

static void reuse_load_range(struct cache *cache, uint32_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        cache_access(cache, first + i, NULL);
}

void reuse_pattern_predict(const struct reuse_pattern *pattern, bool fifo, bool *out_missed)
{
    struct cache *set = reuse_cache(1, pattern->ways, fifo ? CACHE_FIFO : CACHE_LRU);
    reuse_load_range(set, 0, pattern->ways);
    reuse_load_range(set, pattern->first, pattern->again);
    reuse_load_range(set, pattern->ways, pattern->more);
    for (uint32_t i = 0; i < pattern->timed; i++)
        out_missed[i] = !cache_access(set, i, NULL);
    cache_destroy(set);
}

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

/* Draws `count` numbers without repetition: they come to the front. */
static void reuse_draw(uint32_t *numbers, uint64_t region, uint64_t count, struct rng *rng)
{
    for (uint64_t i = 0; i < count; i++) {
        uint64_t other = i + rng_below(rng, region - i);
        uint32_t number = numbers[i];
        numbers[i] = numbers[other];
        numbers[other] = number;
    }
}

static void reuse_load(struct cache *cache, const uint32_t *lines, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        cache_access(cache, lines[i], NULL);
}

static void reuse_imitate_job(struct cache *cache, const struct reuse_scattered *loads,
                              const uint32_t *first, const uint32_t *more, struct reuse_sums *sums)
{
    double missed[REUSE_HALVES] = {0}, all[REUSE_HALVES] = {0};
    reuse_load(cache, first, loads->first);
    reuse_load(cache, first, loads->again);
    reuse_load(cache, more, loads->more);
    for (uint64_t i = 0; i < loads->first; i++) {
        size_t half = 2 * i >= loads->first;
        missed[half] += !cache_access(cache, first[i], NULL);
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
    static const enum cache_policy policies[REUSE_POLICIES] = {
        [REUSE_LRU] = CACHE_LRU, [REUSE_FIFO] = CACHE_FIFO, [REUSE_TREE] = CACHE_TREE};
    struct cache *cache = reuse_cache(sets->sets, sets->ways, policies[policy]);
    uint32_t *first = mem_array(sets->region, sizeof *first);
    uint32_t *more = mem_array(sets->region, sizeof *more);
    struct reuse_sums sums = {0};
    struct rng rng;
    rng_init(&rng, seed, "scattered");
    for (uint64_t i = 0; i < sets->region; i++)
        first[i] = more[i] = (uint32_t)i;
    for (uint32_t i = 0; i < draws; i++) {
        reuse_draw(first, sets->region, loads->first, &rng);
        reuse_draw(more, sets->region, loads->more, &rng);
        cache_reset(cache, sets->sets * sets->ways);
        reuse_imitate_job(cache, loads, first, more, &sums);
    }
    *out_shares = reuse_sums_shares(&sums);
    cache_destroy(cache);
    free(first);
    free(more);
}
