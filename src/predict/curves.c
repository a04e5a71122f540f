/* Hit ratios over the sizes of the caches. */
#include "predict/curves.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "predict/reuse.h"

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
    bool good = curves != NULL;
    if (!good)
        return NULL;
    curves->config = config;
    curves->l1 = mem_array(l1_count(config), sizeof *curves->l1);
    curves->l2 = reuse_create(lines_max(&config->l2, L2_LINES), sectors_of(&config->l2));
    good = curves->l1 && curves->l2;
    for (uint32_t i = 0; good && i < l1_count(config); i++) {
        curves->l1[i] = reuse_create(lines_max(&config->l1, L1_LINES), sectors_of(&config->l1));
        good = curves->l1[i] != NULL;
    }
    if (good)
        return curves;
    curves_destroy(curves);
    return NULL;
}

void curves_destroy(struct curves *curves)
{
    if (!curves)
        return;
    for (uint32_t i = 0; curves->l1 && i < l1_count(curves->config); i++)
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
static int use(struct reuse *reuse, const struct cache_geometry *cache, uint64_t line,
               uint32_t sectors, bool store)
{
    return reuse_access_sectors(reuse, line, store ? 0 : sectors,
                                store ? sectors : whole_units(cache, sectors));
}

int curves_l1(struct curves *curves, uint32_t l1, uint64_t line, uint32_t sectors, bool store)
{
    if (curves->config->no_l1)
        return 0;
    if (store && curves->config->writes != MODEL_THROUGH)
        return 0;
    return use(curves->l1[l1], &curves->config->l1, line, sectors, store);
}

int curves_l2(struct curves *curves, uint64_t line, uint32_t sectors, bool store)
{
    return use(curves->l2, &curves->config->l2, line, sectors, store);
}

/* 1, 2, 3, 4, 6, 8, 12, ...: two points per doubling, up to a size that holds everything, or to
 * the largest that is known. */
static void fill(struct model_curve *curve, struct reuse *const *reuses, uint32_t count,
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
        fill(&out_counts->l1_curve, curves->l1, l1_count(config), &config->l1, L1_LINES);
    fill(&out_counts->l2_curve, &curves->l2, 1, &config->l2, L2_LINES);
}
