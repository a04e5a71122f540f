/* Runs the SMs one after the other over a window of ticks, then L1 after L1, then both L2s.
 *
 * Together the L1s of a GPU are larger than the caches of a processor. One alone is not: so each
 * takes all its lines of the window at once. L2 then takes what is left in the order of ticks and
 * SMs, as if all had run in step. */
#include "predict/model_state.h"

#include <stdlib.h>

#include "base/mem.h"

/* Lines that a window has about, ticks that it has at most. */
enum { WINDOW_LINES = 1 << 17, WINDOW_TICKS_FIRST = 16, WINDOW_TICKS_MAX = 1024 };

/* What one SM has issued in this window. */
struct runner {
    struct sm *sm;
    struct cache_request *requests;
    size_t count, room;
    uint64_t accesses;
    uint32_t l1;        /* its first L1 */
    uint32_t *ends;     /* requests up to the end of each tick of the window */
    uint32_t tick;      /* of the window: the next one to run */
    uint32_t scheduler; /* the first one that has not issued in this tick */
};

struct ahead {
    struct model *model;
    struct runner *runners; /* of the SMs that have warps */
    uint32_t runner_count;
    uint32_t ticks; /* of the window */
    struct cache_request chunk[HIERARCHY_TOGETHER];
    size_t chunk_count;
    uint8_t operations[2]; /* of loads and stores in L1 */
};

bool model_may_run_ahead(const struct model_config *config)
{
    return !config->parallel.mshrs && !config->l2_parallel.mshrs && config->stall < 1;
}

static inline void add_requests(struct ahead *a, struct runner *r, const struct warp_access *access,
                                uint32_t part)
{
    struct warp_line lines[WARP_LANES];
    uint32_t count = warp_coalesce(access, a->model->hierarchy.unit, lines);
    if (r->count + WARP_LANES > r->room)
        r->requests = mem_grow(r->requests, &r->room, r->count + WARP_LANES, sizeof *r->requests);
    struct cache_request request = {.cache = (uint16_t)(r->l1 + part),
                                    .operation = a->operations[access->store],
                                    .note = access->store ? HIERARCHY_STORES : 0};
    struct cache_request *to = &r->requests[r->count];
    for (uint32_t i = 0; i < count; i++) {
        request.number = lines[i].number;
        request.sectors = (uint16_t)lines[i].sectors;
        *to++ = request;
    }
    to[-1].note |= HIERARCHY_LAST;
    r->count += count;
    r->accesses++;
}

static inline struct sm_warp *ahead_choose(const struct ahead *a, struct runner *r)
{
    enum sm_scheduler policy = a->model->config->scheduler;
    struct sm_warp *next = policy == SM_RR ? sm_choose_next(r->sm, r->scheduler, 0) : NULL;
    return next ? next : sm_choose(r->sm, r->scheduler, policy, 0);
}

/* Issues the next access of one scheduler, if any is left. */
static inline void ahead_issue(struct ahead *a, struct runner *r)
{
    struct model *m = a->model;
    struct sm_warp *warp;
    struct warp_access access;
    uint32_t place, per_sm = m->config->l1_per_sm;
    while ((warp = ahead_choose(a, r))) {
        if (kernel_next(m->launch, &warp->cursor, &access)) {
            add_requests(a, r, &access, per_sm > 1 ? (uint32_t)(warp - r->sm->warps) % per_sm : 0);
            return;
        }
        if (sm_end_warp(r->sm, warp, m->launch, &place))
            model_refill(m, r->sm, place);
    }
}

/* To the end of the window, or of a tick after which a block is wanted. */
static void run_sm(struct ahead *a, struct runner *r)
{
    while (r->tick < a->ticks) {
        for (; r->sm->live_total && r->scheduler < r->sm->schedulers; r->scheduler++)
            ahead_issue(a, r);
        r->scheduler = 0;
        r->ends[r->tick++] = (uint32_t)r->count;
        if (r->sm->vacant)
            return;
    }
}

/* The SM whose block ended first, of several the one that has begun the fewest; NULL: none wants a
 * block. */
static struct runner *first_vacant(struct ahead *a)
{
    struct runner *first = NULL;
    for (uint32_t i = 0; i < a->runner_count; i++) {
        struct runner *r = &a->runners[i];
        if (!r->sm->vacant)
            continue;
        if (!first || r->tick < first->tick ||
            (r->tick == first->tick && r->sm->begun < first->sm->begun))
            first = r;
    }
    return first;
}

/* All SMs, with the blocks in the order in which the SMs would take them in step. */
static void run_sms(struct ahead *a)
{
    struct model *m = a->model;
    struct runner *r;
    for (uint32_t i = 0; i < a->runner_count; i++) {
        r = &a->runners[i];
        r->count = r->accesses = r->tick = r->scheduler = 0;
        run_sm(a, r);
    }
    while ((r = first_vacant(a))) {
        sm_take_block(r->sm, m->launch, &m->map);
        if (!r->sm->vacant)
            run_sm(a, r);
    }
}

static void ahead_flush(struct ahead *a)
{
    struct hierarchy *h = &a->model->hierarchy;
    if (h->l1_draws)
        hierarchy_l1(h, a->chunk, a->chunk_count);
    hierarchy_l2(h, a->chunk, a->chunk_count);
    a->chunk_count = 0;
}

/* If L2 draws random numbers, it does so line by line. */
static void serve_one_by_one(struct ahead *a, struct cache_request *requests, size_t count)
{
    struct model_counts *counts = &a->model->hierarchy.counts;
    uint64_t *const waits[] = {&counts->waits_l1, &counts->waits_l2, &counts->waits_main};
    enum hierarchy_level farthest = HIERARCHY_L1;
    for (size_t i = 0; i < count; i++) {
        enum hierarchy_level level = hierarchy_one(&a->model->hierarchy, &requests[i]);
        farthest = level > farthest ? level : farthest;
        if (!(requests[i].note & HIERARCHY_LAST))
            continue;
        if (!(requests[i].note & HIERARCHY_STORES))
            ++*waits[farthest];
        farthest = HIERARCHY_L1;
    }
}

/* What an SM issued in one tick. */
static inline void ahead_pass_on(struct ahead *a, struct cache_request *requests, size_t count)
{
    if (a->model->hierarchy.l2_draws) {
        serve_one_by_one(a, requests, count);
        return;
    }
    if (a->chunk_count + count > HIERARCHY_TOGETHER)
        ahead_flush(a);
    for (size_t i = 0; i < count; i++)
        a->chunk[a->chunk_count++] = requests[i];
}

/* Sends the requests of all SMs to L2 in the order of ticks and SMs. */
static void ahead_merge(struct ahead *a)
{
    for (uint32_t tick = 0; tick < a->ticks; tick++) {
        for (uint32_t i = 0; i < a->runner_count; i++) {
            struct runner *r = &a->runners[i];
            uint32_t from = tick ? r->ends[tick - 1] : 0;
            if (r->ends[tick] > from) /* an SM that never issued has no requests to point at */
                ahead_pass_on(a, &r->requests[from], r->ends[tick] - from);
        }
        if (a->model->hierarchy.merges[0]) {
            ahead_flush(a);
            hierarchy_end_tick(&a->model->hierarchy);
        }
    }
    ahead_flush(a);
}

/* The next window is as long as this one's lines suggest. */
static void ahead_adapt(struct ahead *a)
{
    struct model_counts *counts = &a->model->hierarchy.counts;
    uint64_t lines = 0;
    for (uint32_t i = 0; i < a->runner_count; i++) {
        lines += a->runners[i].count;
        counts->accesses += a->runners[i].accesses;
    }
    counts->lines += lines++;
    uint64_t ticks = (uint64_t)WINDOW_LINES * a->ticks / lines;
    ticks = ticks > (uint64_t)a->ticks * 2 ? (uint64_t)a->ticks * 2 : ticks;
    a->ticks = ticks < 1 ? 1 : ticks > WINDOW_TICKS_MAX ? WINDOW_TICKS_MAX : (uint32_t)ticks;
}

/* An SM without warps has no more blocks to take. */
static void drop_idle(struct ahead *a)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < a->runner_count; i++) {
        struct runner idle = a->runners[i];
        if (!idle.sm->live_total)
            continue;
        a->runners[i] = a->runners[left];
        a->runners[left++] = idle;
    }
    a->runner_count = left;
}

static void ahead_start(struct ahead *a)
{
    uint32_t sms = a->model->config->sms;
    a->ticks = WINDOW_TICKS_FIRST;
    for (int store = 0; store < 2; store++)
        a->operations[store] = (uint8_t)hierarchy_operation(&a->model->hierarchy, store);
    a->runners = mem_array(sms, sizeof *a->runners);
    for (uint32_t i = 0; i < sms; i++) {
        a->runners[i].sm = &a->model->sms[i];
        a->runners[i].l1 = i * a->model->config->l1_per_sm;
        a->runners[i].ends = mem_array(WINDOW_TICKS_MAX, sizeof *a->runners[i].ends);
    }
    a->runner_count = sms;
}

void model_run_ahead(struct model *model)
{
    struct ahead *a = mem_array(1, sizeof *a);
    a->model = model;
    ahead_start(a);
    drop_idle(a);
    struct hierarchy *h = &model->hierarchy;
    while (a->runner_count && !kernel_failure(model->launch, NULL)) {
        run_sms(a);
        for (uint32_t i = 0; i < a->runner_count && !h->l1_draws && !h->l2_draws; i++)
            hierarchy_l1(h, a->runners[i].requests, a->runners[i].count);
        ahead_merge(a);
        ahead_adapt(a);
        model_tell(model);
        drop_idle(a);
    }
    for (uint32_t i = 0; i < model->config->sms; i++) {
        free(a->runners[i].requests);
        free(a->runners[i].ends);
    }
    free(a->runners);
    free(a);
}
