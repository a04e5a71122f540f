/* The caches of a GPU: sends lines through L1 and L2 and counts sectors. */
#include "predict/hierarchy.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* Most lines have four sectors; not all processors can count bits. */
static inline uint64_t ones(uint32_t mask)
{
    static const uint8_t few[16] = {0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4};
    return mask < 16 ? few[mask] : (uint64_t)__builtin_popcount(mask);
}

enum cache_operation hierarchy_operation(const struct hierarchy *h, bool store)
{
    static const enum cache_operation stores[] = {[MODEL_THROUGH] = CACHE_PLACE,
                                                  [MODEL_WON] = CACHE_DROP,
                                                  [MODEL_RWON] = CACHE_PASS,
                                                  [MODEL_OFF] = CACHE_STORE};
    if (store)
        return stores[h->config->writes];
    return h->config->writes == MODEL_RWON ? CACHE_PASS : CACHE_LOAD;
}

static void note_l2_reuse(struct hierarchy *h, size_t count)
{
    for (size_t i = 0; i < count && h->curves; i++) {
        const struct cache_request *part = &h->parts[i];
        curves_l2(h->curves, part->number, part->sectors, part->note & HIERARCHY_STORES);
    }
}

/* Of the lines of an access, the last one that goes on to L2 is noted as its last. */
static void note_last(struct hierarchy *h, struct cache_request *requests, size_t count)
{
    struct cache_request *missing = NULL;
    uint64_t hits = 0;
    for (size_t i = 0; i < count; i++) {
        struct cache_request *r = &requests[i];
        if (r->note & HIERARCHY_STORES)
            continue;
        missing = r->missing ? r : missing;
        if (!(r->note & HIERARCHY_LAST))
            continue;
        if (missing)
            missing->note |= HIERARCHY_LAST;
        hits += !missing;
        missing = NULL;
    }
    h->counts.waits_l1 += hits;
}

/* Sectors of loads and stores. */
struct sums {
    uint64_t loads, stores;
};

static struct sums sectors_asked(const struct cache_request *requests, size_t count)
{
    uint64_t sums[2] = {0};
    for (size_t i = 0; i < count; i++)
        sums[requests[i].note & HIERARCHY_STORES] += ones(requests[i].sectors);
    return (struct sums){sums[0], sums[1]};
}

static struct sums sectors_missing(const struct cache_request *requests, size_t count)
{
    uint64_t sums[2] = {0};
    for (size_t i = 0; i < count; i++)
        if (requests[i].missing)
            sums[requests[i].note & HIERARCHY_STORES] += ones(requests[i].missing);
    return (struct sums){sums[0], sums[1]};
}

static void serve_l1(struct hierarchy *h, struct cache_request *requests, size_t count)
{
    struct model_counts *counts = &h->counts;
    cache_serve(h->l1, requests, count, &h->rng);
    for (size_t i = 0; i < count && h->curves; i++) {
        const struct cache_request *r = &requests[i];
        curves_l1(h->curves, r->cache, r->number, r->sectors, r->note & HIERARCHY_STORES);
    }
    struct sums asked = sectors_asked(requests, count), missing = sectors_missing(requests, count);
    counts->l1_reads += asked.loads;
    counts->l1_read_hits += asked.loads - missing.loads;
    counts->l1_writes += asked.stores;
    counts->l1_write_hits += asked.stores - missing.stores;
}

void hierarchy_l1(struct hierarchy *h, struct cache_request *requests, size_t count)
{
    serve_l1(h, requests, count);
    note_last(h, requests, count);
}

/* Sectors of a line of L1 in the lines of L2, which are longer or shorter. The last part has the
 * note of the whole. */
static size_t split(const struct hierarchy *h, struct cache_request whole,
                    struct cache_request *parts)
{
    const struct cache_geometry *geometry = &h->config->l2;
    uint64_t start = whole.number << h->unit.line_shift;
    uint32_t sectors = whole.sectors;
    size_t count = 0;
    while (sectors) {
        uint32_t first = (uint32_t)__builtin_ctz(sectors), mask = 0;
        struct cache_request part = whole;
        part.number = (start + first * geometry->sector) / geometry->line;
        for (uint32_t s = first; sectors >> s; s++) {
            uint64_t address = start + s * geometry->sector;
            if (!(sectors >> s & 1) || address / geometry->line != part.number)
                continue;
            mask |= UINT32_C(1) << (address % geometry->line / geometry->sector);
            sectors &= ~(UINT32_C(1) << s);
        }
        part.sectors = (uint16_t)mask;
        if (sectors)
            part.note &= (uint8_t)~HIERARCHY_LAST;
        parts[count++] = part;
    }
    return count;
}

/* The sectors of a request that go on to an L2. */
static uint32_t merged(struct merge *merge, const struct cache_request *r)
{
    if (!merge || !r->missing)
        return r->missing;
    return r->note & HIERARCHY_STORES ? merge_store(merge, r->cache, r->number, r->missing)
                                      : merge_load(merge, r->cache, r->number, r->missing);
}

/* What goes to an L2: the sectors that L1 did not have, in L2's lines. Returns the number of parts.
 */
static size_t make_parts(struct hierarchy *h, const struct cache_request *requests, size_t count,
                         struct merge *merge)
{
    static const uint8_t operations[] = {CACHE_LOAD, CACHE_STORE};
    bool same_lines = h->config->l2.line == h->config->l1.line;
    size_t parts = 0, first = 0; /* first: of the access */
    h->joined = 0;
    for (size_t i = 0; i < count; i++) {
        struct cache_request part = requests[i];
        bool store = part.note & HIERARCHY_STORES, last = part.note & HIERARCHY_LAST;
        part.sectors = (uint16_t)merged(merge, &part);
        part.operation = operations[store];
        if (!part.sectors && part.missing && last && !store) {
            /* A load whose last line joins an earlier request waits for what is left of it, or for
             * L2. */
            if (parts > first)
                h->parts[parts - 1].note |= HIERARCHY_LAST;
            else
                h->joined++;
        }
        if (same_lines) {
            h->parts[parts] = part;
            parts += part.sectors != 0;
        } else {
            parts += split(h, part, &h->parts[parts]);
        }
        first = last ? parts : first;
    }
    return parts;
}

/* The parts through one L2. */
static void hierarchy_serve_parts(struct hierarchy *h, struct l2 *l2,
                                  struct model_l2_counts *counts, size_t parts)
{
    l2_serve(l2, h->parts, parts, &h->rng);
    struct sums asked = sectors_asked(h->parts, parts), missing = sectors_missing(h->parts, parts);
    counts->reads += asked.loads;
    counts->read_hits += asked.loads - missing.loads;
    counts->writes += asked.stores;
    counts->write_hits += asked.stores;
}

/* All sectors go to the L2 without an L1. */
static void serve_bypassed(struct hierarchy *h, struct cache_request *requests, size_t count)
{
    for (size_t i = 0; i < count; i++)
        requests[i].missing = requests[i].sectors;
    size_t parts = make_parts(h, requests, count, h->merges[1]);
    hierarchy_serve_parts(h, h->l2_bypassed, &h->counts.l2_bypassed, parts);
}

/* What L1 did not have goes to the L2 behind it. Returns how many parts that are. */
static size_t serve_l2(struct hierarchy *h, const struct cache_request *requests, size_t count)
{
    size_t parts = make_parts(h, requests, count, h->merges[0]);
    if (!parts)
        return 0;
    hierarchy_serve_parts(h, h->l2, &h->counts.l2, parts);
    note_l2_reuse(h, parts);
    return parts;
}

void hierarchy_l2(struct hierarchy *h, struct cache_request *requests, size_t count)
{
    size_t parts = serve_l2(h, requests, count);
    bool far = false;
    h->counts.waits_l2 += h->joined;
    for (size_t i = 0; i < parts; i++) {
        if (h->parts[i].note & HIERARCHY_STORES)
            continue;
        far |= h->parts[i].note & L2_FROM_MAIN;
        if (!(h->parts[i].note & HIERARCHY_LAST))
            continue;
        ++*(far ? &h->counts.waits_main : &h->counts.waits_l2);
        far = false;
    }
    serve_bypassed(h, requests, count);
}

enum hierarchy_level hierarchy_one(struct hierarchy *h, struct cache_request *request)
{
    enum hierarchy_level level = HIERARCHY_L1;
    struct cache_request bypassed = *request;
    serve_l1(h, request, 1);
    serve_bypassed(h, &bypassed, 1);
    size_t parts = serve_l2(h, request, 1);
    if (request->missing)
        level = HIERARCHY_L2;
    for (size_t i = 0; i < parts; i++)
        level = h->parts[i].note & L2_FROM_MAIN ? HIERARCHY_MAIN : level;
    return level;
}

size_t hierarchy_begin_one(struct hierarchy *h, struct cache_request *request,
                           struct cache_request out_parts[CACHE_SECTORS_MAX])
{
    struct cache_request bypassed = *request;
    serve_l1(h, request, 1);
    serve_bypassed(h, &bypassed, 1);
    size_t parts = make_parts(h, request, 1, h->merges[0]);
    memcpy(out_parts, h->parts, parts * sizeof *out_parts);
    return parts;
}

bool hierarchy_l2_holds(const struct hierarchy *h, const struct cache_request *part)
{
    return l2_holds(h->l2, part);
}

bool hierarchy_l2_part(struct hierarchy *h, struct cache_request *part)
{
    h->parts[0] = *part;
    hierarchy_serve_parts(h, h->l2, &h->counts.l2, 1);
    note_l2_reuse(h, 1);
    *part = h->parts[0];
    return part->note & L2_FROM_MAIN;
}

void hierarchy_init(struct hierarchy *h, const struct model_config *config)
{
    *h = (struct hierarchy){.config = config};
    h->unit = (struct warp_unit){.line_shift = (uint32_t)__builtin_ctzll(config->l1.line),
                                 .sector_shift = (uint32_t)__builtin_ctzll(config->l1.sector)};
    rng_init(&h->rng, config->seed, "predict");
    h->l1_draws = cache_draws(&config->l1);
    h->l2_draws = cache_draws(&config->l2);
    h->l2 = l2_create(config);
    h->l2_bypassed = l2_create(config);
    for (int i = 0; i < 2 && config->merged_loads > 1; i++)
        h->merges[i] = merge_create(config);
    h->curves = config->reuse ? curves_create(config) : NULL;
    uint32_t count = config->sms * config->l1_per_sm;
    struct cache_geometry l1 = config->l1;
    l1.in_bulk = true;
    h->l1 = mem_array(count, sizeof *h->l1);
    for (uint32_t i = 0; i < count; i++)
        h->l1[i] = cache_create(&l1);
}

void hierarchy_fini(struct hierarchy *h)
{
    for (uint32_t i = 0; i < h->config->sms * h->config->l1_per_sm; i++)
        cache_destroy(h->l1[i]);
    free(h->l1);
    curves_destroy(h->curves);
    l2_destroy(h->l2);
    l2_destroy(h->l2_bypassed);
    merge_destroy(h->merges[0]);
    merge_destroy(h->merges[1]);
}

void hierarchy_set_round(struct hierarchy *h, uint32_t ticks)
{
    for (int i = 0; i < 2 && h->merges[i]; i++)
        merge_set_round(h->merges[i], ticks);
}

void hierarchy_end_tick(struct hierarchy *h)
{
    for (int i = 0; i < 2 && h->merges[i]; i++)
        merge_end_tick(h->merges[i]);
}

void hierarchy_finish(struct hierarchy *h)
{
    h->counts.l2.main_reads = l2_main_reads(h->l2);
    h->counts.l2.main_writes = l2_main_writes(h->l2);
    h->counts.l2_bypassed.main_reads = l2_main_reads(h->l2_bypassed);
    h->counts.l2_bypassed.main_writes = l2_main_writes(h->l2_bypassed);
    if (h->curves)
        curves_finish(h->curves, &h->counts);
}
