/* Makes the inventory from the results of the GPUs: runs the stages and fills the inventory. */
#include "judge/judge.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "inventory/results.h"
#include "judge/blind_spots.h"
#include "judge/confirmations.h"
#include "judge/consensus.h"
#include "judge/link_matrix.h"
#include "judge/moved_gpus.h"
#include "judge/place_findings.h"
#include "judge/population_levels.h"
#include "judge/verdict.h"

int judge_create(const struct judge_basis *basis, size_t capacity, struct judge **out_judge,
                 struct err *err)
{
    struct judge *judge = mem_array(1, sizeof *judge);
    if (!judge)
        return err_no_memory(err);
    judge->basis = *basis;
    if (fleet_init(&judge->fleet, capacity)) {
        judge_destroy(judge);
        return err_no_memory(err);
    }
    *out_judge = judge;
    return 0;
}

void judge_destroy(struct judge *judge)
{
    if (!judge)
        return;
    findings_fini(&judge->findings);
    free(judge->repeats.items);
    fleet_fini(&judge->fleet);
    free(judge->inventories);
    free(judge->columns);
    free(judge->yardsticks);
    free(judge->levels);
    free(judge->worse);
    free(judge->scores);
    free(judge->usual);
    free(judge->clock_ratio);
    free(judge->other_hardware);
    free(judge);
}

int judge_add(struct judge *judge, const struct gpu_result *gpu, struct err *err)
{
    size_t repeats = judge->repeats.count;
    if (confirmations_add(judge, (uint32_t)judge->fleet.count, &gpu->measured_again))
        return err_no_memory(err);
    if (fleet_add(&judge->fleet, gpu)) {
        judge->repeats.count = repeats;
        return err_no_memory(err);
    }
    return 0;
}

int judge_add_inventory(struct judge *judge, const struct inventory *inventory, struct err *err)
{
    struct inventory_lookup *lookup = NULL;
    struct judged_inventory *grown = mem_grow(judge->inventories, &judge->inventory_capacity,
                                              judge->inventory_count + 1, sizeof *grown);
    if (grown)
        judge->inventories = grown;
    if (!grown || inventory_lookup_create(inventory, &lookup))
        return err_no_memory(err);
    grown[judge->inventory_count++] =
        (struct judged_inventory){inventory, judge->fleet.count, inventory->gpu_count};
    int rc = 0;
    for (size_t i = 0; i < inventory->gpu_count && !rc; i++) {
        struct gpu_result result = {0};
        rc = inventory_result(lookup, &inventory->gpus[i], &result)
                 ? err_no_memory(err)
                 : judge_add(judge, &result, err);
        gpu_result_fini(&result);
    }
    inventory_lookup_destroy(lookup);
    return rc;
}

/* The facts in which the GPU differs from its model. A fact that the model's record has and the GPU
 * does not know is null. For a GPU that was not measured such a fact is left out, because a reader
 * of the inventory does not assume it. */
static int differences(const struct fleet *fleet, enum fact_set set, uint32_t gpu,
                       struct facts *out_facts)
{
    const struct group *group = &fleet->groups[fleet->gpus[gpu].group];
    for (size_t i = 0; i < fleet->facts[set].count; i++) {
        const struct fact_column *column = &fleet->facts[set].items[i];
        const struct usual *usual = &group->usual[set][i];
        uint32_t code = column->codes[gpu];
        bool recorded = set == SET_HARDWARE ? usual->code != 0 : usual_holds(usual);
        bool null = recorded && (code || fleet->gpus[gpu].measured);
        if ((usual_holds(usual) && code == usual->code) || (!fleet_known(fleet, code) && !null))
            continue;
        const struct fact fact = fleet_fact(fleet, column, code);
        if (facts_set(out_facts, &fact))
            return -ENOMEM;
    }
    return 0;
}

static int all_facts(const struct fleet *fleet, enum fact_set set, uint32_t gpu,
                     struct facts *out_facts)
{
    for (size_t i = 0; i < fleet->facts[set].count; i++) {
        const struct fact_column *column = &fleet->facts[set].items[i];
        const struct fact fact = fleet_fact(fleet, column, column->codes[gpu]);
        if (column->codes[gpu] && facts_set(out_facts, &fact))
            return -ENOMEM;
    }
    return 0;
}

static int usual_facts(const struct fleet *fleet, const struct group *group, enum fact_set set,
                       struct facts *out_facts)
{
    for (size_t i = 0; i < fleet->facts[set].count; i++) {
        const struct usual *usual = &group->usual[set][i];
        const struct fact fact = fleet_fact(fleet, &fleet->facts[set].items[i], usual->code);
        if (usual_holds(usual) && facts_set(out_facts, &fact))
            return -ENOMEM;
    }
    return 0;
}

/* The GPU's figure of a judged metric; NULL if it has none. */
static const struct cell *judged_cell(const struct judge *judge, size_t metric, uint32_t gpu)
{
    const struct metric_column *column = judge->columns[metric];
    return column && column->cells[gpu].present ? &column->cells[gpu] : NULL;
}

/* Every judged metric that was measured; NaN (null in the file) if that failed. */
static int judged_values(const struct judge *judge, uint32_t gpu, struct inventory_gpu *out)
{
    const struct judge_config *config = judge->basis.config;
    size_t count = 0;
    for (size_t i = 0; i < config->metric_count; i++)
        count += judged_cell(judge, i, gpu) != NULL;
    out->values = mem_array(count, sizeof *out->values);
    if (!out->values)
        return -ENOMEM;
    for (size_t i = 0; i < config->metric_count; i++) {
        const struct cell *cell = judged_cell(judge, i, gpu);
        if (!cell)
            continue;
        bool valued = measure_status_valued(cell->status) && cell->kind == MEASURE_NUMBER;
        struct inventory_value *slot = &out->values[out->value_count++];
        *slot = (struct inventory_value){.value = valued ? cell->value : NAN,
                                         .spread = valued ? cell->spread : NAN,
                                         .status = (enum measure_status)cell->status,
                                         .bound = (enum measure_bound)cell->bound};
        if (str_copy_to(&slot->metric, config->metrics[i].metric))
            return -ENOMEM;
    }
    return 0;
}

static int add_gpu(const struct judge *judge, uint32_t number, struct inventory *inventory)
{
    const struct fleet *fleet = &judge->fleet;
    const struct fleet_gpu *gpu = &fleet->gpus[number];
    struct inventory_gpu *out = &inventory->gpus[inventory->gpu_count++];
    out->index = gpu->index;
    out->rank = gpu->rank;
    out->first_status = gpu->first_status;
    out->gpus_given = gpu->gpus_given;
    out->status = !gpu->measured ? gpu->status
                  : gpu->busy    ? GPU_BUSY
                  : gpu->outlier ? GPU_OUTLIER
                                 : GPU_OK;
    if (str_copy_to(&out->uuid, fleet_text(fleet, gpu->uuid)) ||
        str_copy_to(&out->node, fleet_text(fleet, gpu->node)) ||
        str_copy_to(&out->pci, fleet_text(fleet, gpu->pci)) ||
        str_copy_to(&out->first_reason, fleet_text(fleet, gpu->first_reason)) ||
        all_facts(fleet, SET_BOARD, number, &out->board) || judged_values(judge, number, out) ||
        confirmations_list(judge, number, &out->measured_again) ||
        link_row_list(fleet, number, &out->links) || judge_load_list(judge, number, &out->load))
        return -ENOMEM;
    if (gpu->group == GROUP_NONE)
        return all_facts(fleet, SET_HARDWARE, number, &out->hardware) ||
                       all_facts(fleet, SET_CONFIG, number, &out->config) ||
                       all_facts(fleet, SET_HEALTH, number, &out->health)
                   ? -ENOMEM
                   : 0;
    return str_copy_to(&out->model, fleet->groups[gpu->group].id) ||
                   differences(fleet, SET_HARDWARE, number, &out->hardware) ||
                   differences(fleet, SET_CONFIG, number, &out->config) ||
                   differences(fleet, SET_HEALTH, number, &out->health)
               ? -ENOMEM
               : 0;
}

static int add_unmeasured(const struct fleet *fleet, const struct fleet_gpu *gpu,
                          struct inventory *inventory)
{
    struct inventory_unmeasured *out = &inventory->unmeasured[inventory->unmeasured_count++];
    out->rank = gpu->rank;
    out->status = gpu->status;
    return str_copy_to(&out->node, fleet_text(fleet, gpu->node)) ||
                   str_copy_to(&out->uuid, fleet_text(fleet, gpu->uuid)) ||
                   str_copy_to(&out->reason, fleet_text(fleet, gpu->reason))
               ? -ENOMEM
               : 0;
}

static int add_model(const struct judge *judge, const struct group *group,
                     struct inventory *inventory)
{
    const struct fleet *fleet = &judge->fleet;
    struct inventory_model *model = &inventory->models[inventory->model_count++];
    for (size_t i = 0; i < group->count; i++)
        model->count += fleet->gpus[group->members[i]].measured;
    if (str_copy_to(&model->id, group->id) ||
        str_copy_to(&model->name, fleet_text(fleet, group->name)) ||
        str_copy_to(&model->key, fleet_text(fleet, group->key)) ||
        usual_facts(fleet, group, SET_CONFIG, &model->config) ||
        usual_facts(fleet, group, SET_HEALTH, &model->health))
        return -ENOMEM;
    return population_levels_report(judge, group, model) || consensus_build(judge, group, model)
               ? -ENOMEM
               : 0;
}

static size_t measured_count(const struct fleet *fleet)
{
    size_t count = 0;
    for (size_t i = 0; i < fleet->count; i++)
        count += fleet->gpus[i].measured;
    return count;
}

static int fill(const struct judge *judge, struct inventory *inventory)
{
    const struct fleet *fleet = &judge->fleet;
    inventory->models = mem_array(fleet->group_count, sizeof *inventory->models);
    inventory->gpus =
        mem_array(judge->basis.drift_only ? 0 : fleet->count, sizeof *inventory->gpus);
    inventory->unmeasured =
        mem_array(fleet->count - measured_count(fleet), sizeof *inventory->unmeasured);
    if (!inventory->models || !inventory->gpus || !inventory->unmeasured)
        return -ENOMEM;
    for (size_t i = 0; i < fleet->group_count; i++)
        if (add_model(judge, &fleet->groups[i], inventory))
            return -ENOMEM;
    for (size_t i = 0; i < fleet->count; i++) {
        const struct fleet_gpu *gpu = &fleet->gpus[fleet->order[i]];
        inventory->total_measured += gpu->measured;
        inventory->total_outliers += gpu->outlier;
        if ((!judge->basis.drift_only && add_gpu(judge, fleet->order[i], inventory)) ||
            (!gpu->measured && add_unmeasured(fleet, gpu, inventory)))
            return -ENOMEM;
    }
    inventory->total_gpus = (uint32_t)fleet->count;
    inventory->total_unmeasured = (uint32_t)inventory->unmeasured_count;
    return verdict_lists(judge, inventory);
}

static int prepare(struct judge *judge)
{
    struct fleet *fleet = &judge->fleet;
    if (fleet_group(fleet) || fleet_populate(fleet) || fleet_find_usual(fleet))
        return -ENOMEM;
    const struct judge_config *config = judge->basis.config;
    fleet_find_busy(fleet);
    judge->findings.last = mem_array(fleet->count, sizeof *judge->findings.last);
    judge->columns = mem_array(config->metric_count, sizeof *judge->columns);
    if (!judge->findings.last || !judge->columns)
        return -ENOMEM;
    for (size_t m = 0; m < config->metric_count; m++)
        judge->columns[m] = fleet_metric(fleet, config->metrics[m].metric);
    return judge_conditions_find(judge);
}

static int run_stages(struct judge *judge)
{
    static int (*const stages[])(struct judge *) = {
        judge_settings,   judge_rules,          judge_self_checks, judge_counters,      judge_heat,
        judge_tries,      judge_scores,         judge_few,         judge_groups,        judge_nodes,
        judge_steadiness, judge_specifications, judge_drift,       judge_counter_drift, judge_dies,
        judge_sm_rates,   judge_world,          judge_clocks,      judge_claims,        judge_load,
        judge_links,      judge_host_shares,    judge_causes,
    };
    if (prepare(judge))
        return -ENOMEM;
    for (size_t i = 0; i < COUNT_OF(stages); i++)
        if (stages[i](judge))
            return -ENOMEM;
    judge->compared = true;
    return 0;
}

int judge_compare(struct judge *judge, struct err *err)
{
    return run_stages(judge) ? err_no_memory(err) : 0;
}

static int conclude(struct judge *judge, struct inventory *inventory)
{
    confirmations_compare(judge);
    verdict_settle(judge);
    if (place_findings_collapse(judge, inventory) || moved_gpus_report(judge, inventory))
        return -ENOMEM;
    if (!judge->basis.drift_only && blind_spots_report(judge, inventory))
        return -ENOMEM;
    confirmations_settle(judge);
    verdict_mark(judge);
    return fill(judge, inventory);
}

int judge_finish(struct judge *judge, struct inventory *inventory, struct err *err)
{
    int rc = judge->compared ? 0 : judge_compare(judge, err);
    if (rc)
        return rc;
    return conclude(judge, inventory) ? err_no_memory(err) : 0;
}
