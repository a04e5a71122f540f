/* Makes the inventory from the results of the GPUs: runs the stages and fills the inventory. */
#include "judge/judge.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "inventory/results.h"
#include "judge/consensus.h"
#include "judge/evidence/link_matrix.h"
#include "judge/evidence/stages.h"
#include "judge/model.h"
#include "judge/verdict.h"

/* docs/JUDGE.md has the same table; tests/judge/test_verdict.c compares them. */
const struct judge_stage judge_stages[] = {
    {"settings", "facts against the majority of the model", stage_settings, NULL},
    {"rules", "facts that need no peers", stage_rules, NULL},
    {"self_checks", "tests of the memory and of the SMs", stage_self_checks, NULL},
    {"digests", "results of the screen that must be the same", stage_digests, NULL},
    {"counters", "errors that are corrected, during the survey and before", stage_counters, NULL},
    {"heat", "temperatures", stage_heat, NULL},
    {"tries", "workers that crashed, hung or failed", stage_tries, NULL},
    {"earlier", "findings of earlier surveys that were not looked for again", stage_earlier, NULL},
    {"figures", "figures against the fleet and against GPUs elsewhere", stage_figures, NULL},
    {"groups", "GPUs that only a figure separates from the others", stage_groups, NULL},
    {"weak_nodes", "figures of the GPUs of a node together", stage_weak_nodes, NULL},
    {"steadiness", "figures whose repetitions scatter", stage_steadiness, NULL},
    {"references", "figures and hardware against the specification", stage_references, NULL},
    {"drift", "figures and settings against the baseline", stage_drift, NULL},
    {"counter_drift", "counters since the baseline", stage_counter_drift, NULL},
    {"dies", "dies since the baseline", stage_dies, NULL},
    {"sm_rates", "SMs since the baseline", stage_sm_rates, NULL},
    {"clocks", "what lowers the SM clock, and the figures that follow it", stage_clocks, NULL},
    {"claims", "measured against reported values", stage_claims, NULL},
    {"load", "sustained load", stage_load, NULL},
    {"links", "links between GPUs", stage_links, NULL},
    {"host_shares", "host links of all GPUs of a node at once", stage_host_shares, NULL},
    {"causes", "conditions that explain a figure", stage_causes, NULL},
    {"splits", "what an unknown split of the SMs over the parts of L2 may explain", stage_splits,
     NULL},
    {"second_values", "second measurements of what looks bad", NULL, stage_second_values},
    {"duplicates", "the same finding on several bases", NULL, stage_duplicates},
    {"places", "the same finding of most of a model, a node or a slot", NULL, stage_places},
    {"moved_gpus", "GPUs that are new, gone or in another place", NULL, stage_moved_gpus},
    {"blind_spots", "models and figures that cannot be compared", NULL, stage_blind_spots},
    {"built", "what a model was built with, where it explains figures", NULL, stage_built},
    {"confirmations", "causes and other figures that confirm a finding", NULL, stage_confirmations},
};
const size_t judge_stage_count = COUNT_OF(judge_stages);

struct judge *judge_create(const struct judge_basis *basis, size_t capacity)
{
    struct judge *judge = mem_array(1, sizeof *judge);
    judge->basis = *basis;
    fleet_init(&judge->fleet, capacity);
    return judge;
}

void judge_destroy(struct judge *judge)
{
    if (!judge)
        return;
    findings_fini(&judge->findings);
    free(judge->repeats.items);
    fleet_fini(&judge->fleet);
    free(judge->inventories);
    free(judge->earlier);
    free(judge->columns);
    free(judge->scored);
    free(judge->rows);
    free(judge->figures);
    free(judge->worse);
    free(judge->scores);
    free(judge->sources);
    free(judge->usual);
    free(judge->clock_ratio);
    free(judge->other_hardware);
    free(judge);
}

int judge_add(struct judge *judge, const struct gpu_result *gpu, struct err *err)
{
    if (judge->fleet.count == judge->fleet.capacity)
        return err_set(err, -ENOSPC, "the judge has room for %zu GPUs", judge->fleet.capacity);
    judge_repeats_add(judge, (uint32_t)judge->fleet.count, &gpu->measured_again);
    fleet_add(&judge->fleet, gpu);
    return 0;
}

int judge_add_inventory(struct judge *judge, const struct inventory *inventory, struct err *err)
{
    struct inventory_lookup *lookup = NULL;
    judge->inventories = mem_grow(judge->inventories, &judge->inventory_capacity,
                                  judge->inventory_count + 1, sizeof *judge->inventories);
    judge->inventories[judge->inventory_count++] =
        (struct judged_inventory){inventory, judge->fleet.count, inventory->gpu_count};
    lookup = inventory_lookup_create(inventory);
    int rc = 0;
    for (size_t i = 0; i < inventory->gpu_count && !rc; i++) {
        struct gpu_result result = {0};
        inventory_result(lookup, &inventory->gpus[i], &result);
        rc = judge_add(judge, &result, err);
        gpu_result_fini(&result);
    }
    inventory_lookup_destroy(lookup);
    return rc;
}

void judge_add_earlier(struct judge *judge, const struct judge_earlier *earlier)
{
    judge->earlier = mem_grow(judge->earlier, &judge->earlier_capacity, judge->earlier_count + 1,
                              sizeof *judge->earlier);
    judge->earlier[judge->earlier_count++] = *earlier;
}

static void judge_find_scored(struct judge *judge)
{
    const struct judge_config *config = judge->basis.config;
    judge->scored = mem_array(config->metric_count, sizeof *judge->scored);
    judge->rows = mem_array(config->metric_count, sizeof *judge->rows);
    for (size_t m = 0; m < config->metric_count; m++)
        if (judge->columns[m] && config->metrics[m].worse != JUDGE_NONE)
            judge->scored[judge->scored_count++] = m;
    for (size_t m = 0; m < config->metric_count; m++)
        judge->rows[m] = judge->scored_count;
    for (size_t k = 0; k < judge->scored_count; k++)
        judge->rows[judge->scored[k]] = k;
}

void judge_compare(struct judge *judge)
{
    const struct judge_config *config = judge->basis.config;
    struct fleet *fleet = &judge->fleet;
    fleet_group(fleet);
    fleet_populate(fleet);
    fleet_find_usual(fleet);
    fleet_find_busy(fleet);
    findings_init(&judge->findings, fleet->count);
    fleet_leave_second(fleet);
    judge->columns = mem_array(config->metric_count, sizeof *judge->columns);
    for (size_t m = 0; m < config->metric_count; m++)
        judge->columns[m] = fleet_metric(fleet, config->metrics[m].metric);
    judge_find_scored(judge);
    judge_conditions_find(judge);
    for (size_t i = 0; i < judge_stage_count; i++) {
        judge->stage = (uint8_t)i;
        if (judge_stages[i].compare)
            judge_stages[i].compare(judge);
    }
    judge->compared = true;
}

/* The facts in which the GPU differs from its model. A fact that the model's record has and the GPU
 * does not know is null. For a GPU that was not measured such a fact is left out, because a reader
 * of the inventory does not assume it. */
static void judge_list_differences(const struct fleet *fleet, enum fact_set set, uint32_t gpu,
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
        fleet_put_fact(fleet, column, code, out_facts);
    }
}

static void judge_list_facts(const struct fleet *fleet, enum fact_set set, uint32_t gpu,
                             struct facts *out_facts)
{
    for (size_t i = 0; i < fleet->facts[set].count; i++) {
        const struct fact_column *column = &fleet->facts[set].items[i];
        if (column->codes[gpu])
            fleet_put_fact(fleet, column, column->codes[gpu], out_facts);
    }
}

static void judge_list_usual_facts(const struct fleet *fleet, const struct group *group,
                                   enum fact_set set, struct facts *out_facts)
{
    for (size_t i = 0; i < fleet->facts[set].count; i++) {
        const struct usual *usual = &group->usual[set][i];
        if (usual_holds(usual))
            fleet_put_fact(fleet, &fleet->facts[set].items[i], usual->code, out_facts);
    }
}

/* Every judged metric that was measured; NaN (null in the file) if that failed. */
static void judge_list_judged_values(const struct judge *judge, uint32_t gpu,
                                     struct inventory_gpu *out)
{
    const struct judge_config *config = judge->basis.config;
    size_t count = 0;
    for (size_t i = 0; i < config->metric_count; i++)
        count += judge->columns[i] && judge->columns[i]->cells[gpu].present;
    out->values = mem_array(count, sizeof *out->values);
    for (size_t i = 0; i < config->metric_count; i++) {
        const struct cell *cell = judge->columns[i] ? &judge->columns[i]->cells[gpu] : NULL;
        if (!cell || !cell->present)
            continue;
        bool valued = measure_status_valued(cell->status) && cell->kind == MEASURE_NUMBER;
        out->values[out->value_count++] =
            (struct inventory_value){.metric = str_copy(config->metrics[i].metric),
                                     .value = valued ? cell->value : NAN,
                                     .spread = valued ? cell->spread : NAN,
                                     .status = (enum measure_status)cell->status,
                                     .bound = (enum measure_bound)cell->bound};
    }
}

/* Notes that findings tell: from them an inventory is judged again. */
static void judge_list_notes(const struct judge *judge, uint32_t gpu, struct inventory_gpu *out)
{
    const struct judge_config *config = judge->basis.config;
    for (size_t i = 0; i < config->metric_count; i++) {
        const struct metric_column *column = judge->columns[i];
        struct facts notes = {0};
        for (size_t k = 0; column && config->metrics[i].keep_notes && k < column->note_count; k++)
            fleet_put_note(&judge->fleet, &column->notes[k], &column->notes[k].notes[gpu], &notes);
        if (!notes.count)
            continue;
        const size_t count = out->noted_count++;
        out->noted = mem_resize(out->noted, count, count + 1, sizeof *out->noted);
        out->noted[count] = (struct inventory_noted){str_copy(config->metrics[i].metric), notes};
    }
}

static void judge_fill_inventory_gpu(const struct judge *judge, uint32_t number,
                                     struct inventory_gpu *out)
{
    const struct fleet *fleet = &judge->fleet;
    const struct fleet_gpu *gpu = &fleet->gpus[number];
    out->uuid = str_copy(fleet_text(fleet, gpu->uuid));
    out->node = str_copy(fleet_text(fleet, gpu->node));
    out->pci = str_copy(fleet_text(fleet, gpu->pci));
    out->index = gpu->index;
    out->rank = gpu->rank;
    schema_copy(&gpu_run_schema, &out->run, &gpu->run);
    out->status = !gpu->measured ? gpu->status
                  : gpu->busy    ? GPU_BUSY
                  : gpu->outlier ? GPU_OUTLIER
                                 : GPU_OK;
    judge_list_facts(fleet, SET_BOARD, number, &out->board);
    judge_list_judged_values(judge, number, out);
    judge_list_notes(judge, number, out);
    judge_repeats_list(judge, number, &out->measured_again);
    link_row_list(fleet, number, &out->links);
    judge_load_list(judge, number, &out->load);
    bool known = gpu->group != GROUP_NONE;
    void (*const list)(const struct fleet *, enum fact_set, uint32_t, struct facts *) =
        known ? judge_list_differences : judge_list_facts;
    out->model = known ? str_copy(fleet->groups[gpu->group].id) : NULL;
    list(fleet, SET_HARDWARE, number, &out->hardware);
    list(fleet, SET_CONFIG, number, &out->config);
    list(fleet, SET_HEALTH, number, &out->health);
}

static void judge_fill_inventory_model(const struct judge *judge, const struct group *group,
                                       struct inventory_model *out)
{
    const struct fleet *fleet = &judge->fleet;
    for (size_t i = 0; i < group->count; i++)
        out->count += fleet->gpus[group->members[i]].measured;
    out->id = str_copy(group->id);
    out->name = str_copy(fleet_text(fleet, group->name));
    out->key = str_copy(fleet_text(fleet, group->key));
    judge_list_usual_facts(fleet, group, SET_CONFIG, &out->config);
    judge_list_usual_facts(fleet, group, SET_HEALTH, &out->health);
    model_report_populations(judge, group, out);
    consensus_build(judge, group, out);
}

static void judge_fill_inventory(const struct judge *judge, struct inventory *inventory)
{
    const struct fleet *fleet = &judge->fleet;
    bool gpus = !judge->basis.drift_only;
    inventory->configuration = judge->basis.config->own ? str_copy(judge->basis.config->own) : NULL;
    inventory->total_gpus = (uint32_t)fleet->count;
    for (size_t i = 0; i < fleet->count; i++) {
        inventory->total_measured += fleet->gpus[i].measured;
        inventory->total_unmeasured += !fleet->gpus[i].measured;
        inventory->total_outliers += fleet->gpus[i].outlier;
    }
    inventory->models = mem_array(fleet->group_count, sizeof *inventory->models);
    inventory->gpus = mem_array(gpus ? fleet->count : 0, sizeof *inventory->gpus);
    inventory->unmeasured = mem_array(inventory->total_unmeasured, sizeof *inventory->unmeasured);
    for (size_t i = 0; i < fleet->group_count; i++)
        judge_fill_inventory_model(judge, &fleet->groups[i],
                                   &inventory->models[inventory->model_count++]);
    for (size_t i = 0; i < fleet->count; i++) {
        const struct fleet_gpu *gpu = &fleet->gpus[fleet->order[i]];
        if (gpus)
            judge_fill_inventory_gpu(judge, fleet->order[i],
                                     &inventory->gpus[inventory->gpu_count++]);
        if (!gpu->measured)
            inventory->unmeasured[inventory->unmeasured_count++] =
                (struct inventory_unmeasured){.node = str_copy(fleet_text(fleet, gpu->node)),
                                              .rank = gpu->rank,
                                              .uuid = str_copy(fleet_text(fleet, gpu->uuid)),
                                              .status = gpu->status,
                                              .reason = str_copy(fleet_text(fleet, gpu->reason))};
    }
    verdict_lists(judge, inventory);
}

void judge_finish(struct judge *judge, struct inventory *inventory)
{
    if (!judge->compared)
        judge_compare(judge);
    for (size_t i = 0; i < judge_stage_count; i++) {
        judge->stage = (uint8_t)i;
        if (judge_stages[i].conclude)
            judge_stages[i].conclude(judge, inventory);
    }
    verdict_mark_outliers(judge);
    judge_fill_inventory(judge, inventory);
    verdict_drop_places(inventory);
}
