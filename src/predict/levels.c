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
    for (size_t i = 0; i < count; i++) {
        const struct cache_request *r = &requests[i];
        if (!(r->note & HIERARCHY_STORES) &&
            curves_l1_load(h->curves, r->cache, r->number, r->sectors))
            h->no_memory = true;
    }
}

static void note_l2_reuse(struct hierarchy *h, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct cache_request *part = &h->parts[i];
        if (curves_l2(h->curves, part->number, part->sectors, part->note & HIERARCHY_STORES))
            h->no_memory = true;
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

/* Sectors that loads and stores asked for, and those that they did not find. */
struct sums {
    uint64_t asked[2], missing[2];
};

static struct sums sums_of(const struct cache_request *requests, size_t count)
{
    struct sums sums = {0};
    for (size_t i = 0; i < count; i++) {
        uint32_t store = requests[i].note & HIERARCHY_STORES;
        sums.asked[store] += ones(requests[i].sectors);
        if (requests[i].missing)
            sums.missing[store] += ones(requests[i].missing);
    }
    return sums;
}

static void serve_l1(struct hierarchy *h, struct cache_request *requests, size_t count)
{
    cache_serve(h->l1, requests, count, &h->rng);
    if (h->curves)
        note_l1_reuse(h, requests, count);
    struct sums sums = sums_of(requests, count);
    h->counts.l1_reads += sums.asked[0];
    h->counts.l1_read_hits += sums.asked[0] - sums.missing[0];
    h->counts.l1_writes += sums.asked[1];
    h->counts.l1_write_hits += sums.asked[1] - sums.missing[1];
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

/* What goes to an L2: all, or only what L1 did not have. Returns the number of h->parts. */
static size_t make_parts(struct hierarchy *h, const struct cache_request *requests, size_t count,
                         bool behind_l1)
{
    static const uint8_t operations[] = {CACHE_LOAD, CACHE_STORE};
    bool same_lines = h->config->l2.line == h->config->l1.line;
    size_t parts = 0;
    for (size_t i = 0; i < count; i++) {
        struct cache_request part = requests[i];
        part.sectors = behind_l1 ? part.missing : part.sectors;
        part.operation = operations[part.note & HIERARCHY_STORES];
        if (!same_lines) {
            parts += split(h, part, &h->parts[parts]);
            continue;
        }
        h->parts[parts] = part;
        parts += part.sectors != 0;
    }
    return parts;
}

/* Sends what is in h->parts to an L2. */
static void serve_parts(struct hierarchy *h, size_t count, struct cache *cache,
                        struct model_l2_counts *counts)
{
    cache_serve_one(cache, h->parts, count, &h->rng);
    struct sums sums = sums_of(h->parts, count);
    counts->reads += sums.asked[0];
    counts->read_hits += sums.asked[0] - sums.missing[0];
    counts->writes += sums.asked[1];
    counts->write_hits += sums.asked[1] - sums.missing[1];
}

/* Both L2s. Returns how many parts went to the one behind L1. */
static size_t serve_l2s(struct hierarchy *h, const struct cache_request *requests, size_t count)
{
    serve_parts(h, make_parts(h, requests, count, false), h->l2_bypassed, &h->counts.l2_bypassed);
    size_t parts = make_parts(h, requests, count, true);
    if (parts)
        serve_parts(h, parts, h->l2, &h->counts.l2);
    if (h->curves)
        note_l2_reuse(h, parts);
    return parts;
}

void hierarchy_l2(struct hierarchy *h, const struct cache_request *requests, size_t count)
{
    size_t parts = serve_l2s(h, requests, count);
    bool far = false;
    for (size_t i = 0; i < parts; i++) {
        if (h->parts[i].note & HIERARCHY_STORES)
            continue;
        far |= h->parts[i].missing;
        if (!(h->parts[i].note & HIERARCHY_LAST))
            continue;
        ++*(far ? &h->counts.waits_main : &h->counts.waits_l2);
        far = false;
    }
}

enum hierarchy_level hierarchy_one(struct hierarchy *h, struct cache_request *request)
{
    enum hierarchy_level level = HIERARCHY_L1;
    serve_l1(h, request, 1);
    size_t parts = serve_l2s(h, request, 1);
    for (size_t i = 0; i < parts; i++)
        if (level != HIERARCHY_MAIN)
            level = h->parts[i].missing ? HIERARCHY_MAIN : HIERARCHY_L2;
    return level;
}
