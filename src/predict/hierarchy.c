/* Sends lines through L1 and L2 and counts sectors. */
#include "predict/hierarchy.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"

static uint64_t ones(uint32_t mask)
{
    return (uint64_t)__builtin_popcount(mask);
}

static int create_caches(struct hierarchy *h)
{
    const struct model_config *config = h->config;
    uint32_t count = config->sms * config->l1_per_sm;
    h->l1 = mem_array(count, sizeof *h->l1);
    h->l2 = cache_create(&config->l2);
    h->l2_bypassed = cache_create(&config->l2);
    h->curves = config->reuse ? curves_create(config) : NULL;
    if (!h->l1 || !h->l2 || !h->l2_bypassed || (config->reuse && !h->curves))
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        h->l1[i] = cache_create(&config->l1);
        if (!h->l1[i])
            return -ENOMEM;
    }
    return 0;
}

int hierarchy_init(struct hierarchy *h, const struct model_config *config, struct err *err)
{
    *h = (struct hierarchy){.config = config};
    h->unit = (struct warp_unit){.line_shift = (uint32_t)__builtin_ctzll(config->l1.line),
                                 .sector_shift = (uint32_t)__builtin_ctzll(config->l1.sector)};
    rng_init(&h->rng, config->seed, "predict");
    h->l1_draws = cache_draws(&config->l1);
    h->l2_draws = cache_draws(&config->l2);
    return create_caches(h) ? err_no_memory(err) : 0;
}

void hierarchy_fini(struct hierarchy *h)
{
    for (uint32_t i = 0; h->l1 && i < h->config->sms * h->config->l1_per_sm; i++)
        cache_destroy(h->l1[i]);
    free(h->l1);
    curves_destroy(h->curves);
    cache_destroy(h->l2);
    cache_destroy(h->l2_bypassed);
}

typedef uint32_t cache_operation(struct cache *cache, uint64_t address, uint32_t sectors,
                                 struct rng *rng);

/* Sectors of a line of L1, sent to L2, whose lines may be longer or shorter. Returns how many were
 * not there. */
static uint64_t send(struct hierarchy *h, struct cache *l2, struct warp_line line,
                     cache_operation *operation)
{
    const struct cache_geometry *geometry = &h->config->l2;
    uint64_t start = line.number << h->unit.line_shift, missing = 0;
    if (geometry->line == h->config->l1.line)
        return ones(operation(l2, start, line.sectors, &h->rng));
    while (line.sectors) {
        uint32_t first = (uint32_t)__builtin_ctz(line.sectors), mask = 0;
        uint64_t number = (start + first * geometry->sector) / geometry->line;
        for (uint32_t s = first; line.sectors >> s; s++) {
            uint64_t address = start + s * geometry->sector;
            if (!(line.sectors >> s & 1) || address / geometry->line != number)
                continue;
            mask |= UINT32_C(1) << (address % geometry->line / geometry->sector);
            line.sectors &= ~(UINT32_C(1) << s);
        }
        missing += ones(operation(l2, number * geometry->line, mask, &h->rng));
    }
    return missing;
}

static uint64_t l2_load(struct hierarchy *h, struct cache *l2, struct model_l2_counts *counts,
                        struct warp_line line)
{
    uint64_t missing = send(h, l2, line, cache_load), asked = ones(line.sectors);
    if (h->curves && l2 == h->l2 && curves_l2(h->curves, line, false))
        h->no_memory = true;
    counts->reads += asked;
    counts->read_hits += asked - missing;
    return missing;
}

static void l2_store(struct hierarchy *h, struct cache *l2, struct model_l2_counts *counts,
                     struct warp_line line)
{
    uint64_t missing = send(h, l2, line, cache_store), asked = ones(line.sectors);
    if (h->curves && l2 == h->l2 && curves_l2(h->curves, line, true))
        h->no_memory = true;
    counts->writes += asked;
    counts->write_hits += asked - missing;
}

/* Which sectors L1 does not have. */
static inline uint32_t l1_load(struct hierarchy *h, uint32_t l1, struct warp_line line)
{
    uint32_t missing = line.sectors;
    if (h->config->writes != MODEL_RWON)
        missing = cache_load(h->l1[l1], line.number << h->unit.line_shift, line.sectors, &h->rng);
    if (h->curves && curves_l1_load(h->curves, l1, line))
        h->no_memory = true;
    h->counts.l1_reads += ones(line.sectors);
    h->counts.l1_read_hits += ones(line.sectors) - ones(missing);
    return missing;
}

/* Which sectors go on to L2. */
static inline uint32_t l1_store(struct hierarchy *h, uint32_t l1, struct warp_line line)
{
    uint64_t address = line.number << h->unit.line_shift;
    uint32_t missing = line.sectors;
    if (h->config->writes == MODEL_WON)
        cache_drop(h->l1[l1], address);
    else if (h->config->writes == MODEL_OFF)
        missing = cache_store(h->l1[l1], address, line.sectors, &h->rng);
    h->counts.l1_writes += ones(line.sectors);
    h->counts.l1_write_hits += ones(line.sectors) - ones(missing);
    return missing;
}

enum hierarchy_level hierarchy_load(struct hierarchy *h, uint32_t l1, struct warp_line line)
{
    uint32_t missing = l1_load(h, l1, line);
    l2_load(h, h->l2_bypassed, &h->counts.l2_bypassed, line);
    if (!missing)
        return HIERARCHY_L1;
    struct warp_line rest = {line.number, missing};
    return l2_load(h, h->l2, &h->counts.l2, rest) ? HIERARCHY_MAIN : HIERARCHY_L2;
}

void hierarchy_store(struct hierarchy *h, uint32_t l1, struct warp_line line)
{
    uint32_t missing = l1_store(h, l1, line);
    l2_store(h, h->l2_bypassed, &h->counts.l2_bypassed, line);
    if (missing)
        l2_store(h, h->l2, &h->counts.l2, (struct warp_line){line.number, missing});
}

/* So many lines ahead, the processor begins to fetch what the model will look at. */
enum { AHEAD_L1 = 4, AHEAD_L2 = 10 };

void hierarchy_l1(struct hierarchy *h, struct request *requests, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct request *r = &requests[i];
        struct warp_line line = {r->number, r->sectors};
        if (i + AHEAD_L1 < count)
            cache_prefetch(h->l1[r[AHEAD_L1].l1], r[AHEAD_L1].number << h->unit.line_shift);
        r->missing = (uint16_t)(r->store ? l1_store(h, r->l1, line) : l1_load(h, r->l1, line));
    }
}

void hierarchy_l2(struct hierarchy *h, const struct request *requests, size_t count)
{
    uint64_t *const waits[] = {&h->counts.waits_l1, &h->counts.waits_l2, &h->counts.waits_main};
    for (size_t i = 0; i < count; i++) {
        const struct request *r = &requests[i];
        struct warp_line line = {r->number, r->missing};
        if (i + AHEAD_L2 < count && r[AHEAD_L2].missing)
            cache_prefetch(h->l2, r[AHEAD_L2].number << h->unit.line_shift);
        if (r->missing && r->store) {
            l2_store(h, h->l2, &h->counts.l2, line);
        } else if (r->missing) {
            uint32_t level = l2_load(h, h->l2, &h->counts.l2, line) ? HIERARCHY_MAIN : HIERARCHY_L2;
            h->farthest = level > h->farthest ? level : h->farthest;
        }
        if (!r->last || r->store)
            continue;
        ++*waits[h->farthest];
        h->farthest = HIERARCHY_L1;
    }
}

void hierarchy_bypassed(struct hierarchy *h, const struct request *requests, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct request *r = &requests[i];
        struct warp_line line = {r->number, r->sectors};
        if (i + AHEAD_L2 < count)
            cache_prefetch(h->l2_bypassed, r[AHEAD_L2].number << h->unit.line_shift);
        if (r->store)
            l2_store(h, h->l2_bypassed, &h->counts.l2_bypassed, line);
        else
            l2_load(h, h->l2_bypassed, &h->counts.l2_bypassed, line);
    }
}

void hierarchy_finish(struct hierarchy *h)
{
    h->counts.l2.main_reads = h->l2->brought;
    h->counts.l2.main_writes = h->l2->written_back;
    h->counts.l2_bypassed.main_reads = h->l2_bypassed->brought;
    h->counts.l2_bypassed.main_writes = h->l2_bypassed->written_back;
    if (h->curves)
        curves_finish(h->curves, &h->counts);
}
