/* From the GPUs' results to the fleet's inventory. */
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "judge/group.h"

/* Only the facts in which the GPU differs from its model's majority. */
static int difference(const struct facts *usual, const struct facts *own, bool unknown_too,
                      struct facts *out_facts)
{
    for (size_t i = 0; i < own->count; i++) {
        const struct fact *fact = &own->items[i];
        const struct fact *other = facts_get(usual, fact->key);
        if (fact->kind == FACT_UNKNOWN && !unknown_too)
            continue;
        if (other && !fact_equal(fact, other) && facts_set(out_facts, fact))
            return -ENOMEM;
    }
    return 0;
}

static int judged_values(const struct gpu_result *gpu, const struct judge_config *config,
                         struct inventory_gpu *out)
{
    out->values = mem_array(config->metric_count, sizeof *out->values);
    if (!out->values)
        return -ENOMEM;
    for (size_t i = 0; i < config->metric_count; i++) {
        const struct measure *m = measures_get(&gpu->measures, config->metrics[i].metric);
        double value = NAN; /* null in the file: tried in vain is not the same as not tried */
        if (!m)
            continue;
        measures_value(&gpu->measures, m->metric, &value);
        struct inventory_value *slot = &out->values[out->value_count++];
        *slot = (struct inventory_value){.value = value, .spread = isnan(value) ? NAN : m->spread};
        if (str_copy_to(&slot->metric, m->metric))
            return -ENOMEM;
    }
    return 0;
}

static int add_gpu(const struct fleet *fleet, size_t place, const struct judge_config *config,
                   struct inventory *inventory)
{
    const struct gpu_result *gpu = fleet->gpus[place];
    size_t g = fleet->group_of[place];
    const struct group *group = g == SIZE_MAX ? NULL : &fleet->groups[g];
    struct inventory_gpu *out = &inventory->gpus[inventory->gpu_count++];
    out->index = gpu->index;
    out->rank = gpu->rank;
    out->status = fleet->outlier[place] ? GPU_OUTLIER : gpu->status;
    if (str_copy_to(&out->uuid, gpu->uuid) || str_copy_to(&out->node, gpu->node) ||
        str_copy_to(&out->pci, gpu->pci) || str_copy_to(&out->model, group ? group->id : NULL) ||
        facts_copy(&out->board, &gpu->board) || judged_values(gpu, config, out))
        return -ENOMEM;
    if (group && (difference(&group->usual, &gpu->config, true, &out->config) ||
                  difference(&group->usual_health, &gpu->health, false, &out->health)))
        return -ENOMEM;
    return 0;
}

static int add_unmeasured(const struct gpu_result *gpu, struct inventory *inventory)
{
    struct inventory_unmeasured *out = &inventory->unmeasured[inventory->unmeasured_length++];
    out->rank = gpu->rank;
    out->status = gpu->status;
    return str_copy_to(&out->node, gpu->node) || str_copy_to(&out->uuid, gpu->uuid) ||
                   str_copy_to(&out->reason, gpu->reason)
               ? -ENOMEM
               : 0;
}

static int fill(struct fleet *fleet, const struct judge_config *config, struct inventory *inventory,
                struct err *err)
{
    int rc = outliers_find(fleet, config, inventory, err);
    for (size_t i = 0; i < fleet->group_count && !rc; i++) {
        rc = consensus_settings(fleet, &fleet->groups[i]) ? err_no_memory(err) : 0;
        if (!rc)
            rc = consensus_build(fleet, &fleet->groups[i],
                                 &inventory->models[inventory->model_count++], err);
    }
    for (size_t i = 0; i < fleet->count && !rc; i++) {
        bool measured = fleet_has_figures(fleet->gpus[i]);
        inventory->measured += measured;
        if (add_gpu(fleet, i, config, inventory) ||
            (!measured && add_unmeasured(fleet->gpus[i], inventory)))
            rc = err_no_memory(err);
    }
    inventory->gpu_count_total = (uint32_t)fleet->count;
    inventory->unmeasured_count = (uint32_t)inventory->unmeasured_length;
    inventory->outlier_count = (uint32_t)inventory->outliers_length;
    return rc;
}

int judge_fleet(const struct gpu_result *results, size_t count, const struct judge_config *config,
                struct inventory *inventory, struct err *err)
{
    struct fleet fleet;
    int rc = fleet_init(&fleet, results, count, err);
    if (rc)
        return rc;
    inventory->models = mem_array(fleet.group_count, sizeof *inventory->models);
    inventory->gpus = mem_array(count, sizeof *inventory->gpus);
    inventory->unmeasured = mem_array(count, sizeof *inventory->unmeasured);
    if (inventory->models && inventory->gpus && inventory->unmeasured)
        rc = fill(&fleet, config, inventory, err);
    else
        rc = err_no_memory(err);
    fleet_fini(&fleet);
    return rc;
}
