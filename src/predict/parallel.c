/* Serves a group of warps' accesses step by step: ports of banks, miss registers, merges. */
#include "predict/parallel.h"

#include <errno.h>

#include "base/mem.h"

int parallel_check(const struct parallel_config *config, struct err *err)
{
    const struct {
        const char *name;
        uint32_t value, max;
    } rows[] = {
        {"banks", config->banks, PARALLEL_BANKS_MAX},
        {"ports", config->ports, PARALLEL_CHOSEN_MAX / PARALLEL_BANKS_MAX},
        {"mshrs", config->mshrs, PARALLEL_MSHRS_MAX},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (!rows[i].value || rows[i].value > rows[i].max)
            return err_set(err, -EINVAL, "%s is a number from 1 to %u, not %u", rows[i].name,
                           rows[i].max, rows[i].value);
    if (config->latency.k1 < 1 || config->latency.k2 < 0)
        return err_set(err, -EINVAL, "a miss takes at least one step: k1 >= 1, k2 >= 0");
    return 0;
}

/* A register whose data arrives in this step can be reserved again in this step; the data is there
 * from the next step on. */
static void begin_step(struct parallel *p)
{
    uint32_t kept = 0;
    p->reserved = 0;
    for (uint32_t i = 0; i < p->mshr_count; i++) {
        if (p->mshrs[i].arrives < p->counts.steps)
            continue;
        p->reserved += p->mshrs[i].arrives > p->counts.steps;
        p->mshrs[kept++] = p->mshrs[i];
    }
    p->mshr_count = kept;
}

static uint64_t arrival(const struct parallel *p)
{
    const struct parallel_latency *latency = &p->config.latency;
    double steps = latency->k1 + latency->k2 * p->reserved * latency->sharers;
    return p->counts.steps + (steps > 2 ? (uint64_t)steps - 1 : 1);
}

static struct parallel_mshr *outstanding(struct parallel *p, uint64_t line)
{
    for (uint32_t i = 0; i < p->mshr_count; i++)
        if (p->mshrs[i].line == line)
            return &p->mshrs[i];
    return NULL;
}

static enum parallel_status serve_one(struct parallel *p, const struct parallel_access *access)
{
    struct parallel_mshr *mshr = outstanding(p, access->line);
    if (mshr) {
        if (mshr->merges == p->config.merges_max)
            return PARALLEL_FAILED;
        mshr->merges++;
        p->lookup(p->cache, access, true);
        return PARALLEL_MERGED;
    }
    bool room = p->reserved < p->config.mshrs;
    if (p->lookup(p->cache, access, room))
        return PARALLEL_HIT;
    if (!room)
        return PARALLEL_FAILED;
    p->mshrs[p->mshr_count++] = (struct parallel_mshr){.line = access->line, .arrives = arrival(p)};
    p->reserved++;
    return PARALLEL_MISS;
}

static void count(struct parallel *p, enum parallel_status status)
{
    struct parallel_counts *counts = &p->counts;
    uint64_t *of[] = {[PARALLEL_HIT] = &counts->hits,
                      [PARALLEL_MISS] = &counts->misses,
                      [PARALLEL_MERGED] = &counts->merges,
                      [PARALLEL_FAILED] = &counts->fails};
    ++*of[status];
}

static bool goes_before(const struct parallel_access *a, const struct parallel_access *b)
{
    return a->warp != b->warp ? a->warp < b->warp : a->bank < b->bank;
}

/* The accesses that get a port in this step, by warp and bank. */
static size_t parallel_choose(const struct parallel *p, struct parallel_access *accesses,
                              size_t count, struct parallel_access **out_chosen)
{
    uint32_t taken[PARALLEL_BANKS_MAX] = {0};
    size_t chosen = 0, room = (size_t)p->config.banks * p->config.ports;
    for (size_t i = 0; i < count && chosen < room; i++) {
        struct parallel_access *access = &accesses[i];
        if (access->done || taken[access->bank] == p->config.ports)
            continue;
        taken[access->bank]++;
        size_t at = chosen++;
        for (; at && goes_before(access, out_chosen[at - 1]); at--)
            out_chosen[at] = out_chosen[at - 1];
        out_chosen[at] = access;
    }
    return chosen;
}

/* Nothing changes before the next data arrives: the steps in between all fail as the last one did.
 */
static void skip_idle_steps(struct parallel *p, size_t failed)
{
    uint64_t next = UINT64_MAX;
    for (uint32_t i = 0; i < p->mshr_count; i++) {
        uint64_t change = p->mshrs[i].arrives; /* frees the register, and the line a step later */
        change = change < p->counts.steps ? p->counts.steps : change;
        next = change < next ? change : next;
    }
    if (next == UINT64_MAX || next <= p->counts.steps)
        return;
    p->counts.fails += failed * (next - p->counts.steps);
    p->counts.steps = next;
}

void parallel_serve(struct parallel *p, struct parallel_access *accesses, size_t count_all)
{
    struct parallel_access *chosen[PARALLEL_CHOSEN_MAX];
    size_t first = 0;
    while (first < count_all) {
        begin_step(p);
        size_t chosen_count = parallel_choose(p, accesses + first, count_all - first, chosen),
               failed = 0;
        for (size_t i = 0; i < chosen_count; i++) {
            enum parallel_status status = serve_one(p, chosen[i]);
            chosen[i]->done = status != PARALLEL_FAILED;
            count(p, status);
            failed += status == PARALLEL_FAILED;
            if (p->watch)
                p->watch(p->watcher, p->counts.steps, chosen[i], status);
        }
        p->counts.steps++;
        if (failed == chosen_count && !p->watch)
            skip_idle_steps(p, failed);
        while (first < count_all && accesses[first].done)
            first++;
    }
}
