/* Runs all SMs in step: one access of each scheduler of each SM per tick, served before the next.
 * L2 may be served step by step too: partitions, banks, ports and miss registers, as section 4.4.2
 * of [K] has it. */
#include "predict/model_state.h"

#include <stdlib.h>

#include "base/mem.h"
#include "predict/hierarchy.h"

/* A line of L2 that an access waits for. */
struct waiting {
    struct cache_request part;
    uint32_t warp; /* the lowest goes first */
    enum hierarchy_level *level;
};

struct l2_steps {
    struct hierarchy *hierarchy;
    uint32_t partitions;
    struct parallel *parallel; /* of each partition */
    struct waiting *waiting;
    struct parallel_access *accesses; /* of one partition */
    size_t count, waiting_room, access_room;
    uint64_t steps;
};

/* access->issue is the index of what waits. A store fetches nothing, so it counts as a hit. */
static bool partition_look_up(void *context, const struct parallel_access *access, bool bring)
{
    struct l2_steps *steps = context;
    struct waiting *waiting = &steps->waiting[access->issue];
    bool here = waiting->part.note & HIERARCHY_STORES ||
                hierarchy_l2_holds(steps->hierarchy, &waiting->part);
    if (!here && !bring)
        return false;
    if (hierarchy_l2_part(steps->hierarchy, &waiting->part))
        *waiting->level = HIERARCHY_MAIN;
    return here;
}

/* The partitions and banks are those of the hierarchy's configuration. */
static struct l2_steps *l2_steps_create(struct hierarchy *h)
{
    struct l2_steps *steps = mem_array(1, sizeof *steps);
    steps->hierarchy = h;
    steps->partitions = h->config->l2_partitions;
    steps->parallel = mem_array(steps->partitions, sizeof *steps->parallel);
    for (uint32_t i = 0; i < steps->partitions; i++) {
        steps->parallel[i].config = h->config->l2_parallel;
        steps->parallel[i].lookup = partition_look_up;
        steps->parallel[i].cache = steps;
    }
    return steps;
}

static void l2_steps_destroy(struct l2_steps *steps)
{
    if (!steps)
        return;
    free(steps->parallel);
    free(steps->waiting);
    free(steps->accesses);
    free(steps);
}

/* Sends a line of an SM through L1; what goes on to L2 waits there for l2_steps_serve. `warp` is
 * the priority, the lowest goes first. *level is raised to where the line comes from, now or then.
 */
static void l2_steps_add(struct l2_steps *steps, struct cache_request *request, uint32_t warp,
                         enum hierarchy_level *level)
{
    struct cache_request parts[CACHE_SECTORS_MAX];
    size_t count = hierarchy_begin_one(steps->hierarchy, request, parts);
    if (request->missing && *level == HIERARCHY_L1)
        *level = HIERARCHY_L2;
    steps->waiting = mem_grow(steps->waiting, &steps->waiting_room, steps->count + count,
                              sizeof *steps->waiting);
    for (size_t i = 0; i < count; i++)
        steps->waiting[steps->count++] = (struct waiting){parts[i], warp, level};
}

/* What waits for one partition. */
static size_t collect(struct l2_steps *steps, uint32_t partition)
{
    size_t count = 0;
    for (size_t i = 0; i < steps->count; i++) {
        const struct cache_request *part = &steps->waiting[i].part;
        if (part->number % steps->partitions != partition)
            continue;
        uint64_t inside = part->number / steps->partitions;
        steps->accesses[count++] = (struct parallel_access){
            .line = part->number,
            .warp = steps->waiting[i].warp,
            .issue = (uint32_t)i,
            .bank = (uint32_t)(inside % steps->hierarchy->config->l2_parallel.banks)};
    }
    return count;
}

/* Serves all that waits. */
static void l2_steps_serve(struct l2_steps *steps)
{
    uint64_t longest = 0;
    steps->accesses =
        mem_grow(steps->accesses, &steps->access_room, steps->count, sizeof *steps->accesses);
    for (uint32_t i = 0; i < steps->partitions && steps->count; i++) {
        uint64_t before = steps->parallel[i].counts.steps;
        parallel_serve(&steps->parallel[i], steps->accesses, collect(steps, i));
        uint64_t taken = steps->parallel[i].counts.steps - before;
        longest = taken > longest ? taken : longest;
    }
    steps->steps += longest;
    steps->count = 0;
}

/* Adds steps, merges and failed reservations to the hierarchy's counts. */
static void l2_steps_finish(const struct l2_steps *steps)
{
    struct model_counts *counts = &steps->hierarchy->counts;
    counts->l2_steps = steps->steps;
    for (uint32_t i = 0; i < steps->partitions; i++) {
        counts->l2_merges += steps->parallel[i].counts.merges;
        counts->l2_fails += steps->parallel[i].counts.fails;
    }
}

/* What one scheduler issued in this tick. */
struct issue {
    struct sm_warp *warp;
    struct warp_line lines[WARP_LANES];
    uint32_t line_count, l1;
    enum hierarchy_level level;
    bool store;
};

enum { GROUP_MAX = SM_SCHEDULERS_MAX * WARP_LANES, TELL_TICKS = 4096 };

struct stepper {
    struct model *model;
    struct parallel *parallel; /* by L1; NULL: every access is served at once */
    struct l2_steps *l2_steps; /* NULL: so is every access of L2 */
    struct issue *issues;      /* SM_SCHEDULERS_MAX of each SM */
    size_t *issue_counts;      /* of each SM */
    struct issue *own;         /* issues of the SM that is being served */
    uint32_t serving;          /* the L1 whose accesses are being served */
    uint64_t tick;
};

/* The next access of a scheduler's warps. False: none is ready. */
static bool issue_next(struct stepper *s, struct sm *sm, uint32_t scheduler, struct issue *out)
{
    struct warp_access access;
    struct sm_warp *warp;
    while ((warp = sm_choose(sm, scheduler, s->model->config->scheduler, s->tick))) {
        if (kernel_next(s->model->launch, &warp->cursor, &access)) {
            out->warp = warp;
            out->store = access.store;
            out->level = HIERARCHY_L1;
            out->l1 = sm->number * s->model->config->l1_per_sm +
                      (uint32_t)(warp - sm->warps) % s->model->config->l1_per_sm;
            out->line_count = warp_coalesce(&access, s->model->hierarchy.unit, out->lines);
            s->model->hierarchy.counts.accesses++;
            s->model->hierarchy.counts.lines += out->line_count;
            return true;
        }
        uint32_t place;
        if (sm_end_warp(sm, warp, s->model->launch, &place))
            model_refill(s->model, sm, place);
    }
    return false;
}

/* Sends one line through the caches. */
static void serve_line(struct stepper *s, struct issue *issue, struct warp_line line)
{
    struct hierarchy *h = &s->model->hierarchy;
    struct cache_request request = {
        .number = line.number,
        .sectors = (uint16_t)line.sectors,
        .cache = (uint16_t)issue->l1,
        .operation = (uint8_t)hierarchy_operation(h, issue->store),
        .note = issue->store ? HIERARCHY_STORES : 0,
    };
    if (s->l2_steps) {
        l2_steps_add(s->l2_steps, &request, (uint32_t)(issue - s->issues), &issue->level);
        return;
    }
    enum hierarchy_level level = hierarchy_one(h, &request);
    issue->level = level > issue->level ? level : issue->level;
}

static void serve_at_once(struct stepper *s, struct issue *issue)
{
    for (uint32_t i = 0; i < issue->line_count; i++)
        serve_line(s, issue, issue->lines[i]);
}

/* For parallel_serve: an access is the number of its issue and of its line. */
static bool line_look_up(void *stepper, const struct parallel_access *access, bool bring)
{
    struct stepper *s = stepper;
    struct issue *issue = &s->own[access->issue];
    struct warp_line line = issue->lines[access->index];
    const struct hierarchy *h = &s->model->hierarchy;
    bool here = cache_holds(h->l1[s->serving], line.number << h->unit.line_shift, line.sectors);
    if (!here && !bring)
        return false;
    serve_line(s, issue, line);
    return here;
}

/* Serves the loads of a group of warps through ports and miss registers; stores need none. */
static void serve_in_steps(struct stepper *s, size_t issue_count)
{
    const struct model_config *config = s->model->config;
    for (uint32_t part = 0; part < config->l1_per_sm; part++) {
        struct parallel_access accesses[GROUP_MAX];
        size_t count = 0;
        for (uint32_t i = 0; i < issue_count; i++) {
            const struct issue *issue = &s->own[i];
            if (issue->store || issue->l1 % config->l1_per_sm != part)
                continue;
            s->serving = issue->l1;
            for (uint32_t k = 0; k < issue->line_count; k++)
                accesses[count++] = (struct parallel_access){
                    .line = issue->lines[k].number,
                    .warp = i,
                    .issue = i,
                    .index = k,
                    .bank = (uint32_t)(issue->lines[k].number % config->parallel.banks)};
        }
        if (count)
            parallel_serve(&s->parallel[s->serving], accesses, count);
    }
    for (uint32_t i = 0; i < issue_count; i++)
        if (s->own[i].store)
            serve_at_once(s, &s->own[i]);
}

static void note_waits(struct stepper *s, const struct issue *issue)
{
    struct model_counts *counts = &s->model->hierarchy.counts;
    uint64_t *const waits[] = {&counts->waits_l1, &counts->waits_l2, &counts->waits_main};
    if (issue->store)
        return;
    ++*waits[issue->level];
    if (issue->level != HIERARCHY_L1)
        issue->warp->ready = s->tick + 1 + (uint64_t)s->model->config->stall;
}

static void run_tick(struct stepper *s, struct sm *sm)
{
    size_t count = 0;
    s->own = &s->issues[(size_t)sm->number * SM_SCHEDULERS_MAX];
    for (uint32_t scheduler = 0; scheduler < sm->schedulers; scheduler++) {
        if (!issue_next(s, sm, scheduler, &s->own[count]))
            continue;
        if (!s->parallel)
            serve_at_once(s, &s->own[count]);
        count++;
    }
    if (s->parallel)
        serve_in_steps(s, count);
    s->issue_counts[sm->number] = count;
}

/* Of the SMs with vacant places, the one that has begun the fewest blocks is next. */
static void deal_blocks(struct model *m)
{
    struct sm *next;
    do {
        next = NULL;
        for (uint32_t i = 0; i < m->config->sms; i++)
            if (m->sms[i].vacant && (!next || m->sms[i].begun < next->begun))
                next = &m->sms[i];
        if (next)
            sm_take_block(next, m->launch, &m->map);
    } while (next);
}

static void stepper_run(struct stepper *s)
{
    bool any = true;
    for (s->tick = 0; any && !kernel_failure(s->model->launch, NULL); s->tick++) {
        any = false;
        if (s->tick % TELL_TICKS == 0)
            model_tell(s->model);
        for (uint32_t i = 0; i < s->model->config->sms; i++) {
            if (!s->model->sms[i].live_total)
                continue;
            any = true;
            run_tick(s, &s->model->sms[i]);
        }
        if (s->l2_steps)
            l2_steps_serve(s->l2_steps);
        for (uint32_t sm = 0; sm < s->model->config->sms; sm++) {
            for (size_t i = 0; i < s->issue_counts[sm]; i++)
                note_waits(s, &s->issues[(size_t)sm * SM_SCHEDULERS_MAX + i]);
            s->issue_counts[sm] = 0;
        }
        hierarchy_end_tick(&s->model->hierarchy);
        deal_blocks(s->model);
    }
}

static void stepper_start(struct stepper *s)
{
    uint32_t caches = s->model->config->sms * s->model->config->l1_per_sm;
    s->issues = mem_array((size_t)s->model->config->sms * SM_SCHEDULERS_MAX, sizeof *s->issues);
    s->issue_counts = mem_array(s->model->config->sms, sizeof *s->issue_counts);
    if (s->model->config->l2_parallel.mshrs)
        s->l2_steps = l2_steps_create(&s->model->hierarchy);
    if (!s->model->config->parallel.mshrs)
        return;
    s->parallel = mem_array(caches, sizeof *s->parallel);
    for (uint32_t i = 0; i < caches; i++) {
        s->parallel[i].config = s->model->config->parallel;
        s->parallel[i].lookup = line_look_up;
        s->parallel[i].cache = s;
    }
}

void model_run_in_step(struct model *model)
{
    struct stepper s = {.model = model};
    stepper_start(&s);
    stepper_run(&s);
    /* A merged access was counted as a hit of L1: its line has not arrived yet. */
    struct model_counts *counts = &model->hierarchy.counts;
    uint32_t caches = model->config->sms * model->config->l1_per_sm;
    for (uint32_t i = 0; s.parallel && i < caches; i++) {
        counts->merges += s.parallel[i].counts.merges;
        counts->fails += s.parallel[i].counts.fails;
        counts->steps += s.parallel[i].counts.steps;
    }
    if (s.l2_steps)
        l2_steps_finish(s.l2_steps);
    l2_steps_destroy(s.l2_steps);
    free(s.parallel);
    free(s.issues);
    free(s.issue_counts);
}
