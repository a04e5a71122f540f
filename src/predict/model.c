/* Runs a kernel on all SMs in step: one access of each scheduler of each SM per tick. */
#include "predict/model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "predict/hierarchy.h"

/* What one scheduler issued in this tick. */
struct issue {
    struct sm_warp *warp;
    struct warp_line lines[WARP_LANES];
    uint32_t line_count, l1;
    enum hierarchy_level level;
    bool store;
};

enum { GROUP_MAX = SM_SCHEDULERS_MAX * WARP_LANES };

struct model {
    const struct model_config *config;
    const struct kernel_launch *launch;
    struct block_map map;
    struct hierarchy hierarchy;
    struct sm *sms;
    struct parallel *parallel; /* by L1; NULL: every access is served at once */
    struct issue issues[SM_SCHEDULERS_MAX];
    uint32_t serving; /* the L1 whose accesses are being served */
    uint64_t tick;
};

/* The next access of a scheduler's warps. False: none is ready. */
static bool issue_next(struct model *m, struct sm *sm, uint32_t scheduler, struct issue *out)
{
    struct warp_access access;
    struct sm_warp *warp;
    while ((warp = sm_choose(sm, scheduler, m->config->scheduler, m->tick))) {
        if (kernel_next(m->launch, &warp->cursor, &access)) {
            out->warp = warp;
            out->store = access.store;
            out->level = HIERARCHY_L1;
            out->l1 = sm->number * m->config->l1_per_sm +
                      (uint32_t)(warp - sm->warps) % m->config->l1_per_sm;
            out->line_count = warp_coalesce(&access, m->hierarchy.unit, out->lines);
            m->hierarchy.counts.accesses++;
            m->hierarchy.counts.lines += out->line_count;
            return true;
        }
        sm_end_warp(sm, warp, m->launch, &m->map);
    }
    return false;
}

static void serve_at_once(struct model *m, struct issue *issue)
{
    for (uint32_t i = 0; i < issue->line_count; i++) {
        if (issue->store) {
            hierarchy_store(&m->hierarchy, issue->l1, issue->lines[i]);
            continue;
        }
        enum hierarchy_level level = hierarchy_load(&m->hierarchy, issue->l1, issue->lines[i]);
        issue->level = level > issue->level ? level : issue->level;
    }
}

/* For parallel_serve: an access is the number of its issue and of its line. */
static bool look_up(void *model, const struct parallel_access *access, bool bring)
{
    struct model *m = model;
    struct issue *issue = &m->issues[access->issue];
    struct warp_line line = issue->lines[access->index];
    const struct hierarchy *h = &m->hierarchy;
    bool here = cache_holds(h->l1[m->serving], line.number << h->unit.line_shift, line.sectors);
    if (!here && !bring)
        return false;
    enum hierarchy_level level = hierarchy_load(&m->hierarchy, m->serving, line);
    issue->level = level > issue->level ? level : issue->level;
    return here;
}

/* Serves the loads of a group of warps through ports and miss registers; stores need none. */
static void serve_in_steps(struct model *m, size_t issue_count)
{
    const struct model_config *config = m->config;
    for (uint32_t part = 0; part < config->l1_per_sm; part++) {
        struct parallel_access accesses[GROUP_MAX];
        size_t count = 0;
        for (uint32_t i = 0; i < issue_count; i++) {
            const struct issue *issue = &m->issues[i];
            if (issue->store || issue->l1 % config->l1_per_sm != part)
                continue;
            m->serving = issue->l1;
            for (uint32_t k = 0; k < issue->line_count; k++)
                accesses[count++] = (struct parallel_access){
                    .line = issue->lines[k].number,
                    .warp = i,
                    .issue = i,
                    .index = k,
                    .bank = (uint32_t)(issue->lines[k].number % config->parallel.banks)};
        }
        if (count)
            parallel_serve(&m->parallel[m->serving], accesses, count);
    }
    for (uint32_t i = 0; i < issue_count; i++)
        if (m->issues[i].store)
            serve_at_once(m, &m->issues[i]);
}

static void note_waits(struct model *m, const struct issue *issue)
{
    struct model_counts *counts = &m->hierarchy.counts;
    uint64_t *const waits[] = {&counts->waits_l1, &counts->waits_l2, &counts->waits_main};
    if (issue->store)
        return;
    ++*waits[issue->level];
    if (issue->level != HIERARCHY_L1)
        issue->warp->ready = m->tick + 1 + (uint64_t)m->config->stall;
}

static void run_tick(struct model *m, struct sm *sm)
{
    size_t count = 0;
    for (uint32_t s = 0; s < sm->schedulers; s++) {
        if (!issue_next(m, sm, s, &m->issues[count]))
            continue;
        if (!m->parallel)
            serve_at_once(m, &m->issues[count]);
        count++;
    }
    if (m->parallel)
        serve_in_steps(m, count);
    for (size_t i = 0; i < count; i++)
        note_waits(m, &m->issues[i]);
}

static void run(struct model *m)
{
    bool any = true;
    for (m->tick = 0; any && !m->hierarchy.no_memory && !kernel_failure(m->launch, NULL);
         m->tick++) {
        any = false;
        for (uint32_t i = 0; i < m->config->sms; i++) {
            if (!m->sms[i].live_total)
                continue;
            any = true;
            run_tick(m, &m->sms[i]);
        }
    }
}

static int start(struct model *m, uint32_t blocks_in_flight, struct err *err)
{
    struct model_counts *counts = &m->hierarchy.counts;
    m->sms = mem_array(m->config->sms, sizeof *m->sms);
    if (!m->sms)
        return err_no_memory(err);
    for (uint32_t i = 0; i < m->config->sms; i++)
        if (sm_init(&m->sms[i], i, m->launch, blocks_in_flight, m->config->schedulers))
            return err_no_memory(err);
    for (uint32_t i = 0; i < m->config->sms; i++)
        m->sms[i].together = m->config->together;
    for (uint32_t place = 0; place < blocks_in_flight; place++)
        for (uint32_t i = 0; i < m->config->sms; i++)
            sm_begin_block(&m->sms[i], m->launch, &m->map, place);
    for (uint32_t i = 0; i < m->config->sms; i++) {
        counts->active_sms += m->sms[i].live_total > 0;
        if (m->sms[i].live_total > counts->warps_in_flight)
            counts->warps_in_flight = m->sms[i].live_total;
    }
    counts->blocks_in_flight = counts->warps_in_flight / m->launch->warps_per_block;
    return 0;
}

static int start_parallel(struct model *m, struct err *err)
{
    uint32_t caches = m->config->sms * m->config->l1_per_sm;
    if (!m->config->parallel.mshrs)
        return 0;
    m->parallel = mem_array(caches, sizeof *m->parallel);
    if (!m->parallel)
        return err_no_memory(err);
    for (uint32_t i = 0; i < caches; i++) {
        m->parallel[i].config = m->config->parallel;
        m->parallel[i].lookup = look_up;
        m->parallel[i].cache = m;
    }
    return 0;
}

/* A merged access was counted as a hit of L1: its line has not arrived yet. */
static void finish(struct model *m)
{
    struct model_counts *counts = &m->hierarchy.counts;
    for (uint32_t i = 0; m->parallel && i < m->config->sms * m->config->l1_per_sm; i++) {
        counts->merges += m->parallel[i].counts.merges;
        counts->fails += m->parallel[i].counts.fails;
        counts->steps += m->parallel[i].counts.steps;
    }
    hierarchy_finish(&m->hierarchy);
}

static bool is_power(uint64_t x)
{
    return x && !(x & (x - 1));
}

static int check(const struct model_config *config, struct err *err)
{
    const struct cache_geometry *l1 = &config->l1, *l2 = &config->l2;
    if (!config->sms || !config->l1_per_sm || !config->schedulers ||
        config->schedulers > SM_SCHEDULERS_MAX)
        return err_set(err, -EINVAL, "an SM has 1 to %d schedulers and at least one L1",
                       SM_SCHEDULERS_MAX);
    if (!is_power(l1->line) || !is_power(l2->line) || !is_power(l1->sector) ||
        l1->sector != l2->sector)
        return err_set(err, -EINVAL, "lines and sectors are powers of two");
    if (l1->line / l1->sector > CACHE_SECTORS_MAX || l2->line / l2->sector > CACHE_SECTORS_MAX)
        return err_set(err, -EINVAL, "a line has at most %d sectors", CACHE_SECTORS_MAX);
    return config->parallel.mshrs ? parallel_check(&config->parallel, err) : 0;
}

static void model_fini(struct model *m)
{
    for (uint32_t i = 0; m->sms && i < m->config->sms; i++)
        sm_fini(&m->sms[i]);
    free(m->sms);
    free(m->parallel);
    hierarchy_fini(&m->hierarchy);
}

int model_run(const struct model_config *config, const struct kernel_launch *launch,
              struct model_counts *out_counts, struct err *err)
{
    struct model m = {.config = config, .launch = launch};
    int rc = check(config, err);
    if (rc)
        return rc;
    uint32_t in_flight = sm_blocks_in_flight(&config->limits, launch, config->registers);
    if (!in_flight)
        return err_set(err, -EINVAL, "%s: a block of %ux%u threads does not fit an SM",
                       launch->kernel->name, launch->block_x, launch->block_y);
    if (launch->element_bytes_max > config->l1.sector)
        return err_set(err, -EINVAL, "%s: its elements of %u bytes are longer than a sector of L1",
                       launch->kernel->name, launch->element_bytes_max);
    m.map = (struct block_map){.mapping = config->mapping,
                               .blocks = launch->blocks,
                               .sms = config->sms,
                               .seed = config->seed};
    rc = hierarchy_init(&m.hierarchy, config, err);
    rc = rc ? rc : start(&m, in_flight, err);
    rc = rc ? rc : start_parallel(&m, err);
    if (!rc) {
        run(&m);
        finish(&m);
        rc = m.hierarchy.no_memory ? err_no_memory(err) : kernel_failure(launch, err);
    }
    if (!rc)
        *out_counts = m.hierarchy.counts;
    model_fini(&m);
    return rc;
}
