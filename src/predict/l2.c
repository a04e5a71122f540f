/* L2, whole or in two parts, and the requests that are merged on their way to it, as the counters
 * of an H200 show it (docs/VALIDATION.md). */
#include "predict/l2.h"

#include <stdlib.h>

#include "base/mem.h"

enum { ENTRIES = 4096, STORE_TICKS = 1 };

struct load_entry {
    uint64_t number, before; /* the line, and the one that the SM had loaded before it */
    uint32_t tick;
    uint16_t sectors, count, l1;
};

struct store_entry {
    uint64_t number;
    uint32_t tick, sectors;
};

struct merge {
    const struct model_config *config;
    struct load_entry *loads;   /* of each group: ENTRIES */
    struct store_entry *stores; /* of each L1: merged_store_lines */
    uint64_t *before;           /* of each L1: the line loaded last */
    uint32_t *oldest;           /* of each L1: the entry of `stores` that is replaced next */
    uint32_t tick;              /* from STORE_TICKS + 1 on */
    uint32_t round;             /* ticks in which every warp of an SM issues once */
};

struct merge *merge_create(const struct model_config *config)
{
    struct merge *m = mem_array(1, sizeof *m);
    size_t l1s = (size_t)config->sms * config->l1_per_sm;
    *m = (struct merge){.config = config, .tick = STORE_TICKS + 1};
    m->loads = mem_array((size_t)config->groups * ENTRIES, sizeof *m->loads);
    m->stores = mem_array(l1s * config->merged_store_lines, sizeof *m->stores);
    m->before = mem_array(l1s, sizeof *m->before);
    m->oldest = mem_array(l1s, sizeof *m->oldest);
    return m;
}

void merge_destroy(struct merge *m)
{
    if (!m)
        return;
    free(m->loads);
    free(m->stores);
    free(m->before);
    free(m->oldest);
    free(m);
}

void merge_end_tick(struct merge *m)
{
    m->tick++;
}

void merge_set_round(struct merge *m, uint32_t ticks)
{
    m->round = ticks;
}

static bool may_join(const struct merge *m, const struct load_entry *e, uint32_t l1,
                     uint64_t number, uint64_t before)
{
    if (e->number != number || !e->tick || e->count >= m->config->merged_loads)
        return false;
    return e->l1 == l1 ? m->tick - e->tick <= m->round : m->tick == e->tick && e->before == before;
}

uint32_t merge_load(struct merge *m, uint32_t l1, uint64_t number, uint32_t sectors)
{
    uint32_t group = model_group(m->config, l1);
    uint64_t hash = (number * 0x9e3779b97f4a7c15u) >> 32, before = m->before[l1];
    struct load_entry *e = &m->loads[(size_t)group * ENTRIES + hash % ENTRIES];
    m->before[l1] = number;
    if (!may_join(m, e, l1, number, before)) {
        *e = (struct load_entry){number, before, m->tick, (uint16_t)sectors, 1, (uint16_t)l1};
        return sectors;
    }
    uint32_t rest = sectors & ~(uint32_t)e->sectors;
    e->sectors = (uint16_t)(e->sectors | sectors);
    e->count++;
    return rest;
}

uint32_t merge_store(struct merge *m, uint32_t l1, uint64_t number, uint32_t sectors)
{
    uint32_t lines = m->config->merged_store_lines;
    struct store_entry *held = &m->stores[(size_t)l1 * lines];
    for (uint32_t i = 0; i < lines; i++) {
        if (held[i].number != number || m->tick - held[i].tick > STORE_TICKS)
            continue;
        uint32_t rest = sectors & ~held[i].sectors;
        held[i].sectors |= sectors;
        return rest;
    }
    held[m->oldest[l1]] = (struct store_entry){number, m->tick, sectors};
    m->oldest[l1] = (m->oldest[l1] + 1) % lines;
    return sectors;
}

/* Where requests go on their way: to their home, which is near; to the near part, whose copy it is;
 * from there to the home, which is far. */
enum way { HOME_NEAR, COPY_NEAR, HOME_FAR, WAYS };

struct list {
    struct cache_request requests[L2_TOGETHER];
    uint16_t from[L2_TOGETHER]; /* the index of each in l2_serve's requests */
    size_t count;
};

struct l2 {
    const struct model_config *config;
    struct cache *parts[MODEL_L2_PARTS_MAX];
    uint64_t main_reads;
    struct list lists[MODEL_L2_PARTS_MAX][WAYS]; /* for each part */
};

struct l2 *l2_create(const struct model_config *config)
{
    struct l2 *l2 = mem_array(1, sizeof *l2);
    struct cache_geometry geometry = config->l2;
    l2->config = config;
    geometry.size /= config->l2_parts;
    geometry.in_bulk = true;
    for (uint32_t p = 0; p < config->l2_parts; p++)
        l2->parts[p] = cache_create(&geometry);
    return l2;
}

void l2_destroy(struct l2 *l2)
{
    for (uint32_t p = 0; l2 && p < MODEL_L2_PARTS_MAX; p++)
        cache_destroy(l2->parts[p]);
    free(l2);
}

/* Which lines are near to whom is not known; half of them are. */
static uint32_t home_of(const struct l2 *l2, uint64_t number)
{
    return (uint32_t)((number * 0xd6e8feb86659fd93u) >> 40) % l2->config->l2_parts;
}

/* Groups of SMs are near to the parts in turn. */
static uint32_t part_of(const struct l2 *l2, uint32_t l1)
{
    return model_group(l2->config, l1) % l2->config->l2_parts;
}

static void l2_list_add(struct list *list, struct cache_request request, size_t from)
{
    list->from[list->count] = (uint16_t)from;
    list->requests[list->count++] = request;
}

static void serve_list(struct l2 *l2, uint32_t part, enum way way, struct rng *rng)
{
    struct list *list = &l2->lists[part][way];
    uint64_t brought = l2->parts[part]->brought;
    cache_serve_one(l2->parts[part], list->requests, list->count, rng);
    if (way != COPY_NEAR)
        l2->main_reads += l2->parts[part]->brought - brought;
}

static void sort(struct l2 *l2, const struct cache_request *requests, size_t count)
{
    for (uint32_t p = 0; p < l2->config->l2_parts; p++)
        for (int way = 0; way < WAYS; way++)
            l2->lists[p][way].count = 0;
    for (size_t i = 0; i < count; i++) {
        struct cache_request r = requests[i];
        uint32_t near = part_of(l2, r.cache), home = home_of(l2, r.number);
        enum way way = near == home ? HOME_NEAR : COPY_NEAR;
        if (near != home && r.operation == CACHE_STORE)
            r.operation = CACHE_PLACE;
        l2_list_add(&l2->lists[near][way], r, i);
    }
}

/* What the near part gave; the rest is asked of the home. */
static void l2_pass_on(struct l2 *l2, const struct list *near, struct cache_request *requests)
{
    for (size_t i = 0; i < near->count; i++) {
        struct cache_request r = near->requests[i], *whole = &requests[near->from[i]];
        bool store = r.operation == CACHE_PLACE;
        whole->missing = store ? 0 : r.missing;
        r.operation = whole->operation;
        r.sectors = store ? r.sectors : r.missing;
        if (r.sectors)
            l2_list_add(&l2->lists[home_of(l2, r.number)][HOME_FAR], r, near->from[i]);
    }
}

static void note_main(const struct list *home, struct cache_request *requests, bool near)
{
    for (size_t i = 0; i < home->count; i++) {
        struct cache_request *whole = &requests[home->from[i]];
        if (near)
            whole->missing = home->requests[i].missing;
        if (home->requests[i].missing && whole->operation == CACHE_LOAD)
            whole->note |= L2_FROM_MAIN;
    }
}

static void l2_serve_parts(struct l2 *l2, struct cache_request *requests, size_t count,
                           struct rng *rng)
{
    sort(l2, requests, count);
    for (uint32_t p = 0; p < l2->config->l2_parts; p++) {
        serve_list(l2, p, HOME_NEAR, rng);
        serve_list(l2, p, COPY_NEAR, rng);
        note_main(&l2->lists[p][HOME_NEAR], requests, true);
    }
    for (uint32_t p = 0; p < l2->config->l2_parts; p++)
        l2_pass_on(l2, &l2->lists[p][COPY_NEAR], requests);
    for (uint32_t p = 0; p < l2->config->l2_parts; p++) {
        serve_list(l2, p, HOME_FAR, rng);
        note_main(&l2->lists[p][HOME_FAR], requests, false);
    }
}

void l2_serve(struct l2 *l2, struct cache_request *requests, size_t count, struct rng *rng)
{
    for (size_t i = 0; i < count; i++)
        requests[i].note &= (uint8_t)~L2_FROM_MAIN;
    if (l2->config->l2_parts == 1) {
        cache_serve_one(l2->parts[0], requests, count, rng);
        for (size_t i = 0; i < count; i++)
            if (requests[i].missing && requests[i].operation == CACHE_LOAD)
                requests[i].note |= L2_FROM_MAIN;
        l2->main_reads = l2->parts[0]->brought;
        return;
    }
    for (size_t at = 0; at < count; at += L2_TOGETHER)
        l2_serve_parts(l2, &requests[at], count - at < L2_TOGETHER ? count - at : L2_TOGETHER, rng);
}

bool l2_holds(const struct l2 *l2, const struct cache_request *request)
{
    struct cache *near = l2->parts[part_of(l2, request->cache)];
    return cache_holds(near, request->number * l2->config->l2.line, request->sectors);
}

uint64_t l2_main_reads(const struct l2 *l2)
{
    return l2->main_reads;
}

uint64_t l2_main_writes(const struct l2 *l2)
{
    uint64_t written = 0;
    for (uint32_t p = 0; p < l2->config->l2_parts; p++)
        written += l2->parts[p]->written_back;
    return written;
}
