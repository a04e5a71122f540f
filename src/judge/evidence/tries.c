/* GPUs that were tried twice, because a first worker crashed, hung or failed. */
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "judge/evidence/stages.h"

/* How many GPUs of a node or a model were measured, and how many hung twice. */
struct tally {
    uint32_t measured, hung;
};

static bool gives_no_answer(enum gpu_status status)
{
    return status == GPU_CRASHED || status == GPU_TIMED_OUT;
}

/* Crashed or hung twice. */
static bool gpu_is_dead(const struct fleet_gpu *gpu)
{
    return gives_no_answer(gpu->status) && gives_no_answer(gpu->run.first_status);
}

static bool gpu_has_hung(const struct fleet_gpu *gpu)
{
    return gpu_is_dead(gpu) &&
           (gpu->status == GPU_TIMED_OUT || gpu->run.first_status == GPU_TIMED_OUT);
}

static void tally_add_gpu(struct tally *tally, const struct fleet_gpu *gpu)
{
    tally->measured += gpu->measured;
    tally->hung += gpu_has_hung(gpu);
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

/* How a worker ended. */
static const struct worker_end {
    const char *verb, *metric;
} crash = {"crashed", "worker.crash"}, hang = {"hung", "worker.hang"},
  failure = {"failed", "worker.failure"};

static const struct worker_end *worker_end_of(enum gpu_status status)
{
    return status == GPU_CRASHED ? &crash : status == GPU_TIMED_OUT ? &hang : &failure;
}

static void tries_report(struct judge *judge, uint32_t number, enum evidence evidence)
{
    const struct fleet *fleet = &judge->fleet;
    const struct fleet_gpu *gpu = &fleet->gpus[number];
    const char *metric = worker_end_of(gpu->measured ? gpu->run.first_status : gpu->status)->metric;
    const char *then = worker_end_of(gpu->run.first_status)->verb;
    const char *first = gpu->run.first_reason;
    const char *last = fleet_text(fleet, gpu->reason);
    first = first ? first : "no reason known";
    last = last ? last : "no reason known";
    struct finding finding = finding_new(judge, number, metric, BASIS_RULE, evidence);
    finding.verdict = VERDICT_FAILING;
    findings_add(
        judge, finding,
        gpu->measured
            ? str_format("worker %s once: %s; the second try measured the GPU", then, first)
        : str_equal(first, last) ? str_format("worker %s twice: %s", then, first)
                                 : str_format("worker %s: %s; second try: %s", then, first, last));
}

/* If no GPU of several nodes could be measured, the reason is not one of the GPUs. */
static bool failure_is_everywhere(const struct fleet *fleet)
{
    bool measured = false, several = false;
    for (size_t i = 0; i < fleet->count; i++) {
        measured |= fleet->gpus[i].measured;
        several |= fleet->gpus[i].node != fleet->gpus[0].node;
    }
    return several && !measured;
}

void stage_tries(struct judge *judge)
{
    static const struct tally none;
    const struct fleet *fleet = &judge->fleet;
    struct tally *nodes = mem_array(fleet->symbols.count + 1, sizeof *nodes); /* by symbol */
    struct tally *models = mem_array(fleet->group_count, sizeof *models);
    bool everywhere = failure_is_everywhere(fleet);
    for (size_t i = 0; i < fleet->count; i++) {
        const struct fleet_gpu *gpu = &fleet->gpus[i];
        tally_add_gpu(&nodes[gpu->node], gpu);
        if (gpu->group != GROUP_NONE)
            tally_add_gpu(&models[gpu->group], gpu);
    }
    for (size_t i = 0; i < fleet->count; i++) {
        const struct fleet_gpu *gpu = &fleet->gpus[fleet->order[i]];
        const struct tally *model = gpu->group == GROUP_NONE ? &none : &models[gpu->group];
        bool no_answer = gpu_is_dead(gpu) && !everywhere &&
                         (!gpu_has_hung(gpu) || hang_counts(&nodes[gpu->node], model));
        if (gpu->run.first_status != GPU_OK)
            tries_report(judge, fleet->order[i], no_answer ? EVIDENCE_NO_ANSWER : EVIDENCE_WORKER);
    }
    free(nodes);
    free(models);
}
