/* Reuse distances from a Fenwick tree over the times of last uses, whose leaves are bits; hit
 * ratios over the sizes of the caches. */
#include "predict/reuse.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* A leaf of the tree stands for so many times, so that the tree fits the processor's caches. */
enum { LEAF = 512, WORD = 64, TIMES_MIN = 1024 };

/* Times are 1 .. times_max - 1. A line is `live` at the time of its last use. When the times run
 * out, live lines are numbered anew in their order; the number of times is at least twice that of
 * lines, so that this is rare.
 */
struct reuse {
    uint32_t *tree;      /* Fenwick over leaves: number of live times up to here */
    uint64_t *bits;      /* by time: live */
    uint64_t *line_of;   /* by time: the line used then */
    uint32_t *buckets;   /* hash of lines: time of the last reuse_use, 0: free */
    uint64_t *distances; /* how often each distance occurred */
    uint32_t *reach;     /* by time and sector: largest distance of the line since it came */
    uint32_t times_max, now, live, bucket_mask, sectors;
    uint64_t accesses, lines_max;
};

static const uint32_t absent = UINT32_MAX; /* a reach: the sector never came */

static uint32_t reuse_bucket(const struct reuse *reuse, uint64_t line)
{
    uint32_t at = (uint32_t)((line * 0x9e3779b97f4a7c15u) >> 32) & reuse->bucket_mask;
    while (reuse->buckets[at] && reuse->line_of[reuse->buckets[at]] != line)
        at = (at + 1) & reuse->bucket_mask;
    return at;
}

static void add_to_tree(struct reuse *reuse, uint32_t time, uint32_t by)
{
    uint32_t leaves = reuse->times_max / LEAF;
    for (uint32_t leaf = time / LEAF + 1; leaf <= leaves; leaf += leaf & -leaf)
        reuse->tree[leaf] += by;
}

/* Live times up to this one. */
static uint32_t live_up_to(const struct reuse *reuse, uint32_t time)
{
    uint32_t sum = 0, word = time / LEAF * (LEAF / WORD);
    for (uint32_t leaf = time / LEAF; leaf; leaf &= leaf - 1)
        sum += reuse->tree[leaf];
    for (; word < time / WORD; word++)
        sum += (uint32_t)__builtin_popcountll(reuse->bits[word]);
    uint64_t rest = reuse->bits[word] << (WORD - 1 - time % WORD);
    return sum + (uint32_t)__builtin_popcountll(rest);
}

/* The line of `before` is now live at `now` instead; before 0: it was not live. */
static void reuse_move(struct reuse *reuse, uint32_t before, uint32_t now)
{
    reuse->bits[now / WORD] |= UINT64_C(1) << now % WORD;
    if (before)
        reuse->bits[before / WORD] &= ~(UINT64_C(1) << before % WORD);
    if (before && before / LEAF == now / LEAF)
        return;
    add_to_tree(reuse, now, 1);
    if (before)
        add_to_tree(reuse, before, UINT32_MAX); /* less one */
}

static void reuse_allocate(struct reuse *reuse, uint32_t times)
{
    reuse->times_max = times;
    reuse->bucket_mask = times - 1;
    reuse->tree = mem_array((size_t)times / LEAF + 1, sizeof *reuse->tree);
    reuse->bits = mem_array((size_t)times / WORD, sizeof *reuse->bits);
    reuse->line_of = mem_array(times, sizeof *reuse->line_of);
    reuse->buckets = mem_array(times, sizeof *reuse->buckets);
    reuse->distances = mem_array(times, sizeof *reuse->distances);
    reuse->reach = mem_array((size_t)times * reuse->sectors, sizeof *reuse->reach);
}

static void reuse_release(struct reuse *reuse)
{
    free(reuse->tree);
    free(reuse->bits);
    free(reuse->line_of);
    free(reuse->buckets);
    free(reuse->distances);
    free(reuse->reach);
}

static uint32_t *reach_of(const struct reuse *reuse, uint32_t time)
{
    return &reuse->reach[(size_t)time * reuse->sectors];
}

/* Takes over the line that was last used at this time, as the next one. */
static void reuse_keep(struct reuse *next, const struct reuse *reuse, uint32_t time)
{
    uint64_t line = reuse->line_of[time];
    uint32_t at = reuse_bucket(next, line);
    next->line_of[++next->now] = line;
    next->buckets[at] = next->now;
    memcpy(reach_of(next, next->now), reach_of(reuse, time), next->sectors * sizeof *next->reach);
    reuse_move(next, 0, next->now);
    next->live++;
}

/* How many of the oldest lines are too far away to be hit. */
static uint32_t forgettable(const struct reuse *reuse)
{
    return reuse->lines_max && reuse->live > reuse->lines_max
               ? reuse->live - (uint32_t)reuse->lines_max
               : 0;
}

/* Numbers the live times from 1 on, in twice the space where they fill more than a quarter. */
static void renumber(struct reuse *reuse)
{
    struct reuse next = {
        .accesses = reuse->accesses, .lines_max = reuse->lines_max, .sectors = reuse->sectors};
    uint32_t times = reuse->times_max, forgotten = forgettable(reuse);
    if (reuse->live - forgotten > times / 4) {
        if (times > UINT32_MAX / 4)
            mem_exhausted(0);
        times *= 2;
    }
    reuse_allocate(&next, times);
    memcpy(next.distances, reuse->distances, reuse->times_max * sizeof *next.distances);
    for (uint32_t time = 1; time < reuse->times_max; time++) {
        if (!(reuse->bits[time / WORD] >> time % WORD & 1))
            continue;
        if (forgotten)
            forgotten--;
        else
            reuse_keep(&next, reuse, time);
    }
    reuse_release(reuse);
    *reuse = next;
}

struct reuse *reuse_create(uint64_t lines_max, uint32_t sectors)
{
    struct reuse *reuse = mem_array(1, sizeof *reuse);
    reuse->lines_max = lines_max;
    reuse->sectors = sectors;
    reuse_allocate(reuse, TIMES_MIN);
    return reuse;
}

void reuse_destroy(struct reuse *reuse)
{
    if (!reuse)
        return;
    reuse_release(reuse);
    free(reuse);
}

/* Counts the sectors that were asked for, and moves the reach of all to the time of this use. */
static void note_sectors(struct reuse *reuse, uint32_t before, int64_t distance, uint32_t asked,
                         uint32_t brought)
{
    uint32_t *now = reach_of(reuse, reuse->now);
    const uint32_t *then = reach_of(reuse, before);
    for (uint32_t s = 0; s < reuse->sectors; s++) {
        uint32_t reach = before ? then[s] : absent;
        if (reach != absent && reach < distance)
            reach = (uint32_t)distance;
        if (asked >> s & 1) {
            reuse->accesses++;
            if (reach != absent)
                reuse->distances[reach]++;
        }
        now[s] = brought >> s & 1 ? 0 : reach;
    }
}

int64_t reuse_access_sectors(struct reuse *reuse, uint64_t line, uint32_t asked, uint32_t brought)
{
    if (reuse->now + 1 == reuse->times_max)
        renumber(reuse);
    uint32_t at = reuse_bucket(reuse, line), before = reuse->buckets[at];
    int64_t distance = REUSE_NEVER;
    if (before)
        distance = reuse->live - live_up_to(reuse, before);
    else
        reuse->live++;
    reuse->line_of[++reuse->now] = line;
    reuse->buckets[at] = reuse->now;
    note_sectors(reuse, before, distance, asked, brought);
    reuse_move(reuse, before, reuse->now);
    return distance;
}

int64_t reuse_access(struct reuse *reuse, uint64_t line)
{
    return reuse_access_sectors(reuse, line, 1, 1);
}

uint64_t reuse_hits(const struct reuse *reuse, uint64_t lines)
{
    uint64_t hits = 0;
    for (uint64_t d = 0; d < lines && d < reuse->times_max; d++)
        hits += reuse->distances[d];
    return hits;
}

uint64_t reuse_accesses(const struct reuse *reuse)
{
    return reuse->accesses;
}

uint64_t reuse_lines(const struct reuse *reuse)
{
    return reuse->live;
}

/* Lines beyond these are forgotten, which bounds the memory: one L2, but an L1 per SM. */
enum { L1_LINES = 1 << 14, L2_LINES = 1 << 20 };

struct curves {
    const struct model_config *config;
    struct reuse **l1; /* sms x l1_per_sm */
    struct reuse *l2;
};

/* A power of two, at least twice the lines of the cache itself. */
static uint64_t lines_max(const struct cache_geometry *cache, uint64_t least)
{
    while (least < 2 * (cache->size / cache->line))
        least *= 2;
    return least;
}

static uint32_t sectors_of(const struct cache_geometry *cache)
{
    return (uint32_t)(cache->line / cache->sector);
}

static uint32_t l1_count(const struct model_config *config)
{
    return config->sms * config->l1_per_sm;
}

struct curves *curves_create(const struct model_config *config)
{
    struct curves *curves = mem_array(1, sizeof *curves);
    curves->config = config;
    curves->l1 = mem_array(l1_count(config), sizeof *curves->l1);
    curves->l2 = reuse_create(lines_max(&config->l2, L2_LINES), sectors_of(&config->l2));
    for (uint32_t i = 0; i < l1_count(config); i++)
        curves->l1[i] = reuse_create(lines_max(&config->l1, L1_LINES), sectors_of(&config->l1));
    return curves;
}

void curves_destroy(struct curves *curves)
{
    if (!curves)
        return;
    for (uint32_t i = 0; i < l1_count(curves->config); i++)
        reuse_destroy(curves->l1[i]);
    free(curves->l1);
    reuse_destroy(curves->l2);
    free(curves);
}

/* All sectors of the units that a miss of these brings. */
static uint32_t whole_units(const struct cache_geometry *cache, uint32_t sectors)
{
    uint32_t unit = (uint32_t)(cache->fetch / cache->sector), units = 0;
    uint32_t mask = (UINT32_C(1) << unit) - 1;
    for (uint32_t first = 0; first < sectors_of(cache); first += unit)
        if (sectors >> first & mask)
            units |= mask << first;
    return units;
}

/* A store asks for nothing and brings itself. */
static void curve_use(struct reuse *reuse, const struct cache_geometry *cache, uint64_t line,
                      uint32_t sectors, bool store)
{
    reuse_access_sectors(reuse, line, store ? 0 : sectors,
                         store ? sectors : whole_units(cache, sectors));
}

void curves_l1(struct curves *curves, uint32_t l1, uint64_t line, uint32_t sectors, bool store)
{
    if (curves->config->no_l1)
        return;
    if (store && curves->config->writes != MODEL_THROUGH)
        return;
    curve_use(curves->l1[l1], &curves->config->l1, line, sectors, store);
}

void curves_l2(struct curves *curves, uint64_t line, uint32_t sectors, bool store)
{
    curve_use(curves->l2, &curves->config->l2, line, sectors, store);
}

/* 1, 2, 3, 4, 6, 8, 12, ...: two points per doubling, up to a size that holds everything, or to
 * the largest that is known. */
static void curve_fill(struct model_curve *curve, struct reuse *const *reuses, uint32_t count,
                       const struct cache_geometry *cache, uint64_t least)
{
    uint64_t limit = lines_max(cache, least), most = 1;
    curve->own_lines = cache->size / cache->line;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t lines = reuse_lines(reuses[i]);
        most = lines > most ? lines : most;
        curve->accesses += reuse_accesses(reuses[i]);
        curve->own_hits += reuse_hits(reuses[i], curve->own_lines);
    }
    for (uint64_t lines = 1; curve->count < MODEL_CURVE_MAX && lines <= limit;) {
        curve->lines[curve->count] = lines;
        for (uint32_t i = 0; i < count; i++)
            curve->hits[curve->count] += reuse_hits(reuses[i], lines);
        curve->count++;
        if (lines >= most)
            break;
        bool power = !(lines & (lines - 1));
        lines = lines == 1 ? 2 : power ? lines + lines / 2 : lines / 3 * 4;
    }
}

void curves_finish(const struct curves *curves, struct model_counts *out_counts)
{
    const struct model_config *config = curves->config;
    if (!config->no_l1)
        curve_fill(&out_counts->l1_curve, curves->l1, l1_count(config), &config->l1, L1_LINES);
    curve_fill(&out_counts->l2_curve, &curves->l2, 1, &config->l2, L2_LINES);
}
