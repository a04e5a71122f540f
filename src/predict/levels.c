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

/* Sectors of loads and stores. */
struct sums {
    uint64_t loads, stores;
};

static struct sums asked_of(const struct cache_request *requests, size_t count)
{
    uint64_t sums[2] = {0};
    for (size_t i = 0; i < count; i++)
        sums[requests[i].note & HIERARCHY_STORES] += ones(requests[i].sectors);
    return (struct sums){sums[0], sums[1]};
}

static struct sums missing_of(const struct cache_request *requests, size_t count)
{
    uint64_t sums[2] = {0};
    for (size_t i = 0; i < count; i++)
        if (requests[i].missing)
            sums[requests[i].note & HIERARCHY_STORES] += ones(requests[i].missing);
    return (struct sums){sums[0], sums[1]};
}

/* Whoever asks L1 asks the L2 without an L1, too. */
static void serve_l1(struct hierarchy *h, struct cache_request *requests, size_t count)
{
    struct model_counts *counts = &h->counts;
    cache_serve(h->l1, requests, count, &h->rng);
    if (h->curves)
        note_l1_reuse(h, requests, count);
    struct sums asked = asked_of(requests, count), missing = missing_of(requests, count);
    counts->l1_reads += asked.loads;
    counts->l1_read_hits += asked.loads - missing.loads;
    counts->l1_writes += asked.stores;
    counts->l1_write_hits += asked.stores - missing.stores;
    counts->l2_bypassed.reads += asked.loads;
    counts->l2_bypassed.read_hits += asked.loads;
    counts->l2_bypassed.writes += asked.stores;
    counts->l2_bypassed.write_hits += asked.stores;
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

/* What goes to an L2: the sectors that L1 did not have, in L2's lines. Returns the number of parts.
 */
static size_t make_parts(struct hierarchy *h, const struct cache_request *requests, size_t count)
{
    static const uint8_t operations[] = {CACHE_LOAD, CACHE_STORE};
    bool same_lines = h->config->l2.line == h->config->l1.line;
    size_t parts = 0;
    for (size_t i = 0; i < count; i++) {
        struct cache_request part = requests[i];
        part.sectors = part.missing;
        part.operation = operations[part.note & HIERARCHY_STORES];
        if (same_lines) {
            h->parts[parts] = part;
            parts += part.sectors != 0;
        } else {
            parts += split(h, part, &h->parts[parts]);
        }
    }
    return parts;
}

/* All sectors go to the L2 without an L1. */
static void serve_bypassed(struct hierarchy *h, struct cache_request *requests, size_t count)
{
    struct cache_request *served = requests;
    for (size_t i = 0; i < count; i++)
        requests[i].missing = requests[i].sectors;
    if (h->config->l2.line == h->config->l1.line) {
        for (size_t i = 0; i < count; i++)
            requests[i].operation = requests[i].note & HIERARCHY_STORES ? CACHE_STORE : CACHE_LOAD;
    } else {
        count = make_parts(h, requests, count);
        served = h->parts;
    }
    cache_serve_one(h->l2_bypassed, served, count, &h->rng);
    struct sums missing = missing_of(served, count);
    h->counts.l2_bypassed.read_hits -= missing.loads;
    h->counts.l2_bypassed.write_hits -= missing.stores;
}

/* What L1 did not have goes to the L2 behind it. Returns how many parts that are. */
static size_t serve_l2(struct hierarchy *h, const struct cache_request *requests, size_t count)
{
    size_t parts = make_parts(h, requests, count);
    if (!parts)
        return 0;
    cache_serve_one(h->l2, h->parts, parts, &h->rng);
    struct sums asked = asked_of(h->parts, parts), missing = missing_of(h->parts, parts);
    h->counts.l2.reads += asked.loads;
    h->counts.l2.read_hits += asked.loads - missing.loads;
    h->counts.l2.writes += asked.stores;
    h->counts.l2.write_hits += asked.stores - missing.stores;
    if (h->curves)
        note_l2_reuse(h, parts);
    return parts;
}

void hierarchy_l2(struct hierarchy *h, struct cache_request *requests, size_t count)
{
    size_t parts = serve_l2(h, requests, count);
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
    serve_bypassed(h, requests, count);
}

enum hierarchy_level hierarchy_one(struct hierarchy *h, struct cache_request *request)
{
    enum hierarchy_level level = HIERARCHY_L1;
    struct cache_request bypassed = *request;
    serve_l1(h, request, 1);
    serve_bypassed(h, &bypassed, 1);
    size_t parts = serve_l2(h, request, 1);
    for (size_t i = 0; i < parts; i++)
        if (level != HIERARCHY_MAIN)
            level = h->parts[i].missing ? HIERARCHY_MAIN : HIERARCHY_L2;
    return level;
}
