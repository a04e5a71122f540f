/* Merges requests on their way to L2, as the counters of an H200 show it (docs/VALIDATION.md).
 *
 * Loads: of the SMs of one group, up to config.merged_loads requests for the same sectors become
 * one if they come within less than 100 cycles. SMs that are not in step rarely do. SMs that load
 * the same lines one after the other fall into step, since the later one is served with the earlier
 * one. So the model merges requests of the same tick if the line before was the same, too. Loads of
 * one warp that do not wait for each other are issued at once; in the model a round of all warps
 * lies between them. So requests of the same SM merge if they are not farther apart than that.
 *
 * Stores: an SM holds its last config.merged_store_lines lines for a moment: stores to the same
 * sectors become one. */
#include "predict/merge.h"

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
    if (!m)
        return NULL;
    *m = (struct merge){.config = config, .tick = STORE_TICKS + 1};
    m->loads = mem_array((size_t)config->groups * ENTRIES, sizeof *m->loads);
    m->stores = mem_array(l1s * config->merged_store_lines, sizeof *m->stores);
    m->before = mem_array(l1s, sizeof *m->before);
    m->oldest = mem_array(l1s, sizeof *m->oldest);
    if (m->loads && m->stores && m->before && m->oldest)
        return m;
    merge_destroy(m);
    return NULL;
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
