/* Runs a kernel on all SMs: checks, begins, lets it run, counts. */
#include "predict/model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/number.h"
#include "predict/model_state.h"

static void model_start(struct model *m, uint32_t blocks_in_flight)
{
    struct model_counts *counts = &m->hierarchy.counts;
    m->sms = mem_array(m->config->sms, sizeof *m->sms);
    for (uint32_t i = 0; i < m->config->sms; i++)
        sm_init(&m->sms[i], i, m->launch, blocks_in_flight, m->config->schedulers);
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
    hierarchy_set_round(&m->hierarchy, counts->warps_in_flight / m->config->schedulers);
    counts->blocks_in_flight = counts->warps_in_flight / m->launch->warps_per_block;
}

static int check(const struct model_config *config, struct err *err)
{
    const struct cache_geometry *l1 = &config->l1, *l2 = &config->l2;
    if (!config->sms || !config->l1_per_sm || !config->schedulers ||
        config->schedulers > SM_SCHEDULERS_MAX)
        return err_set(err, -EINVAL, "an SM has 1 to %d schedulers and at least one L1",
                       SM_SCHEDULERS_MAX);
    if (!number_is_power_of_two(l1->line) || !number_is_power_of_two(l2->line) ||
        !number_is_power_of_two(l1->sector) || l1->sector != l2->sector)
        return err_set(err, -EINVAL, "lines and sectors are powers of two");
    if (l1->line / l1->sector > CACHE_SECTORS_MAX || l2->line / l2->sector > CACHE_SECTORS_MAX)
        return err_set(err, -EINVAL, "a line has at most %d sectors", CACHE_SECTORS_MAX);
    if (!config->l2_parts || config->l2_parts > MODEL_L2_PARTS_MAX || !config->groups ||
        !config->merged_loads || (config->merged_loads > 1 && !config->merged_store_lines))
        return err_set(err, -EINVAL, "L2 has one part or %d, and SMs are in groups",
                       MODEL_L2_PARTS_MAX);
    int rc = config->parallel.mshrs ? parallel_check(&config->parallel, err) : 0;
    if (!rc && config->l2_parallel.mshrs && !config->l2_partitions)
        rc = err_set(err, -EINVAL, "an L2 with miss registers has at least one partition");
    return rc || !config->l2_parallel.mshrs ? rc : parallel_check(&config->l2_parallel, err);
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
                               .seed = config->seed,
                               .source = launch->source};
    block_map_begin(&m.map);
    hierarchy_init(&m.hierarchy, config);
    model_start(&m, in_flight);
    if (model_may_run_ahead(config))
        model_run_ahead(&m);
    else
        model_run_in_step(&m);
    rc = kernel_failure(launch, err);
    const struct model_counts *counts = &m.hierarchy.counts;
    uint64_t loads = counts->waits_l1 + counts->waits_l2 + counts->waits_main;
    rc = rc ? rc : kernel_finish(launch, counts->accesses, loads, err);
    if (!rc) {
        hierarchy_finish(&m.hierarchy);
        *out_counts = *counts;
    }
    for (uint32_t i = 0; i < m.config->sms; i++)
        sm_fini(&m.sms[i]);
    free(m.sms);
    hierarchy_fini(&m.hierarchy);
    return rc;
}
