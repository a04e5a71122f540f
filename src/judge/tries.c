/* GPUs that were tried twice, because a first worker crashed, hung or failed. */
#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "judge/stages.h"

/* How many GPUs of a node or a model were measured, and how many hung twice. */
struct tally {
    uint32_t measured, hung;
};

static bool gives_no_answer(enum gpu_status status)
{
    return status == GPU_CRASHED || status == GPU_TIMED_OUT;
}

/* Crashed or hung twice. */
static bool is_dead(const struct fleet_gpu *gpu)
{
    return gives_no_answer(gpu->status) && gives_no_answer(gpu->first_status);
}

static bool has_hung(const struct fleet_gpu *gpu)
{
    return is_dead(gpu) && (gpu->status == GPU_TIMED_OUT || gpu->first_status == GPU_TIMED_OUT);
}

static void count(struct tally *tally, const struct fleet_gpu *gpu)
{
    tally->measured += gpu->measured;
    tally->hung += has_hung(gpu);
}

/* On a slow machine healthy GPUs exceed the time limit too. So a time-out counts only if on
 * its node, and in its model unless it is the only one there that hung, at least as many GPUs were
 * measured as hung; on a node without a measured GPU, if the model has three measured GPUs and
 * twice as many as hung. */
static bool hang_counts(const struct tally *node, const struct tally *model)
{
    if (node->measured)
        return node->measured >= node->hung && (model->measured >= model->hung || model->hung == 1);
    return model->measured >= 3 && model->measured >= 2 * model->hung;
}

static const char *verb(enum gpu_status status)
{
    return status == GPU_CRASHED ? "crashed" : status == GPU_TIMED_OUT ? "hung" : "failed";
}

static const char *metric_of(enum gpu_status status)
{
    return status == GPU_CRASHED     ? "worker.crash"
           : status == GPU_TIMED_OUT ? "worker.hang"
                                     : "worker.failure";
}

static char *describe(const struct fleet *fleet, const struct fleet_gpu *gpu)
{
    const char *first = fleet_text(fleet, gpu->first_reason);
    const char *last = fleet_text(fleet, gpu->reason);
    const char *then = verb(gpu->first_status);
    first = first ? first : "no reason known";
    last = last ? last : "no reason known";
    if (gpu->measured)
        return str_format("worker %s once: %s; the second try measured the GPU", then, first);
    if (str_equal(first, last))
        return str_format("worker %s twice: %s", then, first);
    return str_format("worker %s: %s; second try: %s", then, first, last);
}

static int report(struct judge *judge, uint32_t number, bool accused)
{
    const struct fleet_gpu *gpu = &judge->fleet.gpus[number];
    char *cause = describe(&judge->fleet, gpu);
    enum gpu_status shown = gpu->measured ? gpu->first_status : gpu->status;
    struct finding *finding =
        cause ? findings_add(judge, number, metric_of(shown), BASIS_RULE) : NULL;
    if (!finding) {
        free(cause);
        return -ENOMEM;
    }
    finding->of_worker = true;
    finding->accused = accused;
    finding->kind = KIND_FAILING;
    finding->cause = cause;
    return symbols_text(&judge->fleet.symbols, "", &finding->unit);
}

/* If no GPU of several nodes could be measured, the reason is not one of the GPUs. */
static bool is_everywhere(const struct fleet *fleet)
{
    bool measured = false, several = false;
    for (size_t i = 0; i < fleet->count; i++) {
        measured |= fleet->gpus[i].measured;
        several |= fleet->gpus[i].node != fleet->gpus[0].node;
    }
    return several && !measured;
}

/* models: one per group, nodes: one per symbol. */
static int judge_all(struct judge *judge, struct tally *nodes, struct tally *models)
{
    static const struct tally none;
    const struct fleet *fleet = &judge->fleet;
    bool everywhere = is_everywhere(fleet);
    for (size_t i = 0; i < fleet->count; i++) {
        const struct fleet_gpu *gpu = &fleet->gpus[i];
        count(&nodes[gpu->node], gpu);
        if (gpu->group != GROUP_NONE)
            count(&models[gpu->group], gpu);
    }
    for (size_t i = 0; i < fleet->count; i++) {
        const struct fleet_gpu *gpu = &fleet->gpus[fleet->order[i]];
        const struct tally *model = gpu->group == GROUP_NONE ? &none : &models[gpu->group];
        bool accused = is_dead(gpu) && !everywhere &&
                       (!has_hung(gpu) || hang_counts(&nodes[gpu->node], model));
        if (gpu->first_status != GPU_OK && report(judge, fleet->order[i], accused))
            return -ENOMEM;
    }
    return 0;
}

int judge_tries(struct judge *judge)
{
    struct tally *nodes = mem_array(judge->fleet.symbols.count + 1, sizeof *nodes);
    struct tally *models = mem_array(judge->fleet.group_count, sizeof *models);
    int rc = nodes && models ? judge_all(judge, nodes, models) : -ENOMEM;
    free(nodes);
    free(models);
    return rc;
}
