/* Sends lines through L1 and L2 and counts sectors. */
#include "predict/hierarchy.h"

/* Most lines have four sectors; not all processors can count bits. */
static inline uint64_t ones(uint32_t mask)
{
    static const uint8_t few[16] = {0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4};
    return mask < 16 ? few[mask] : (uint64_t)__builtin_popcount(mask);
}

enum cache_operation hierarchy_operation(const struct hierarchy *h, bool store)
{
    static const enum cache_operation stores[] = {[MODEL_THROUGH] = CACHE_PASS,
                                                  [MODEL_WON] = CACHE_DROP,
                                                  [MODEL_RWON] = CACHE_PASS,
                                                  [MODEL_OFF] = CACHE_STORE};
    if (store)
        return stores[h->config->writes];
    return h->config->writes == MODEL_RWON ? CACHE_PASS : CACHE_LOAD;
}

static void note_l1_reuse(struct hierarchy *h, const struct cache_request *requests, size_t count)
{
    for (size_t i = 0; h->curves && i < count; i++) {
        const struct cache_request *r = &requests[i];
        if (!(r->note & HIERARCHY_STORES) &&
            curves_l1_load(h->curves, r->cache, r->number, r->sectors))
            h->no_memory = true;
    }
}

void hierarchy_l1(struct hierarchy *h, struct cache_request *requests, size_t count)
{
    uint64_t asked[2] = {0}, missing[2] = {0};
    if (h->l1_draws)
        cache_serve(h->l1, requests, count, &h->rng);
    else
        cache_serve_near(h->l1, requests, count, &h->rng);
    note_l1_reuse(h, requests, count);
    for (size_t i = 0; i < count; i++) {
        asked[requests[i].note & HIERARCHY_STORES] += ones(requests[i].sectors);
        missing[requests[i].note & HIERARCHY_STORES] += ones(requests[i].missing);
    }
    h->counts.l1_reads += asked[0];
    h->counts.l1_read_hits += asked[0] - missing[0];
    h->counts.l1_writes += asked[1];
    h->counts.l1_write_hits += asked[1] - missing[1];
}

/* Sectors of a line of L1 in the lines of L2, which may be longer or shorter. The last part is
 * noted as such. */
static size_t split(const struct hierarchy *h, const struct cache_request *r, uint32_t sectors,
                    struct cache_request *parts)
{
    const struct cache_geometry *geometry = &h->config->l2;
    struct cache_request part = {
        .number = r->number,
        .sectors = (uint16_t)sectors,
        .operation = r->note & HIERARCHY_STORES ? CACHE_STORE : CACHE_LOAD,
        .note = (uint8_t)(r->note | HIERARCHY_LAST),
    };
    if (geometry->line == h->config->l1.line) {
        *parts = part;
        return 1;
    }
    size_t count = 0;
    uint64_t start = r->number << h->unit.line_shift;
    while (sectors) {
        uint32_t first = (uint32_t)__builtin_ctz(sectors), mask = 0;
        part.number = (start + first * geometry->sector) / geometry->line;
        for (uint32_t s = first; sectors >> s; s++) {
            uint64_t address = start + s * geometry->sector;
            if (!(sectors >> s & 1) || address / geometry->line != part.number)
                continue;
            mask |= UINT32_C(1) << (address % geometry->line / geometry->sector);
            sectors &= ~(UINT32_C(1) << s);
        }
        part.sectors = (uint16_t)mask;
        part.note = (uint8_t)(sectors ? part.note & ~HIERARCHY_LAST : part.note | HIERARCHY_LAST);
        parts[count++] = part;
    }
    return count;
}

/* Sends what is in h->parts to an L2. */
static void serve_parts(struct hierarchy *h, size_t count, struct cache *cache,
                        struct model_l2_counts *counts)
{
    uint64_t asked[2] = {0}, missing[2] = {0};
    cache_serve(&cache, h->parts, count, &h->rng);
    for (size_t i = 0; i < count; i++) {
        asked[h->parts[i].note & HIERARCHY_STORES] += ones(h->parts[i].sectors);
        missing[h->parts[i].note & HIERARCHY_STORES] += ones(h->parts[i].missing);
    }
    counts->reads += asked[0];
    counts->read_hits += asked[0] - missing[0];
    counts->writes += asked[1];
    counts->write_hits += asked[1] - missing[1];
}

static void note_l2_reuse(struct hierarchy *h, size_t count)
{
    for (size_t i = 0; h->curves && i < count; i++) {
        const struct cache_request *part = &h->parts[i];
        if (curves_l2(h->curves, part->number, part->sectors, part->note & HIERARCHY_STORES))
            h->no_memory = true;
    }
}

/* The level of one request; *at: its first part, then the one after its last. */
static uint32_t level_of(const struct hierarchy *h, const struct cache_request *r, size_t *at)
{
    uint32_t level = HIERARCHY_L2;
    if (!r->missing)
        return HIERARCHY_L1;
    do
        level = h->parts[*at].missing ? HIERARCHY_MAIN : level;
    while (!(h->parts[(*at)++].note & HIERARCHY_LAST));
    return level;
}

static void note_waits(struct hierarchy *h, const struct cache_request *requests, size_t count)
{
    uint64_t *const waits[] = {&h->counts.waits_l1, &h->counts.waits_l2, &h->counts.waits_main};
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t level = level_of(h, &requests[i], &at);
        if (requests[i].note & HIERARCHY_STORES)
            continue;
        h->farthest = level > h->farthest ? level : h->farthest;
        if (!(requests[i].note & HIERARCHY_LAST))
            continue;
        ++*waits[h->farthest];
        h->farthest = HIERARCHY_L1;
    }
}

static void serve_l2s(struct hierarchy *h, const struct cache_request *requests, size_t count)
{
    size_t parts = 0;
    for (size_t i = 0; i < count; i++)
        parts += split(h, &requests[i], requests[i].sectors, &h->parts[parts]);
    serve_parts(h, parts, h->l2_bypassed, &h->counts.l2_bypassed);
    parts = 0;
    for (size_t i = 0; i < count; i++)
        if (requests[i].missing)
            parts += split(h, &requests[i], requests[i].missing, &h->parts[parts]);
    serve_parts(h, parts, h->l2, &h->counts.l2);
    note_l2_reuse(h, parts);
}

void hierarchy_l2(struct hierarchy *h, const struct cache_request *requests, size_t count)
{
    serve_l2s(h, requests, count);
    note_waits(h, requests, count);
}

enum hierarchy_level hierarchy_load(struct hierarchy *h, uint32_t l1, struct warp_line line)
{
    struct cache_request r = {.number = line.number,
                              .sectors = (uint16_t)line.sectors,
                              .cache = (uint16_t)l1,
                              .operation = (uint8_t)hierarchy_operation(h, false)};
    size_t at = 0;
    hierarchy_l1(h, &r, 1);
    serve_l2s(h, &r, 1);
    return (enum hierarchy_level)level_of(h, &r, &at);
}

void hierarchy_store(struct hierarchy *h, uint32_t l1, struct warp_line line)
{
    struct cache_request r = {.number = line.number,
                              .sectors = (uint16_t)line.sectors,
                              .cache = (uint16_t)l1,
                              .operation = (uint8_t)hierarchy_operation(h, true),
                              .note = HIERARCHY_STORES};
    hierarchy_l1(h, &r, 1);
    serve_l2s(h, &r, 1);
}
