/* Nodes whose GPUs are all a little worse than others. Each deviation could be chance, but not all
 * of them together. */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "judge/evidence/stages.h"
#include "judge/model.h"
#include "judge/robust.h"
#include "judge/verdict.h"

/* A score counts as at most this multiple of the node's median score, so that the node is not
 * reported for one or two bad GPUs. */
static const double SCORE_MOST = 1.5;

/* The scores of n GPUs together: of standard deviation 1 if the GPUs are healthy. */
static double sum_scores(double *scores, size_t n)
{
    double most = SCORE_MOST * robust_median(scores, n), sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += fmin(scores[i], most);
    return sum / sqrt((double)n);
}

/* What the GPUs of a node show together in one metric: EVIDENCE_WEAK_NODE, EVIDENCE_WITHIN if the
 * loss is too small to accuse, or EVIDENCE_COUNT for nothing. losses, scores: room for all GPUs. */
static enum evidence node_evidence(const struct judge *judge, const uint32_t *gpus, size_t count,
                                   size_t metric, double *losses, double *scores)
{
    const struct judge_metric *rule = &judge->basis.config->metrics[metric];
    size_t n = 0, worse = 0;
    for (size_t i = 0; i < count; i++) {
        size_t slot = judge_slot(judge, gpus[i], metric);
        if (judge_is_divided(judge, gpus[i], metric))
            return EVIDENCE_COUNT;
        if (isnan(judge->worse[slot]))
            continue;
        losses[n] = judge->worse[slot];
        scores[n++] = judge->scores[slot];
    }
    double median = robust_median(losses, n);
    for (size_t i = 0; i < n; i++)
        worse += losses[i] >= fmax(rule->floor, median / 2);
    if (n < 2 || !(median > 0) || median < rule->floor ||
        2 * n > model_figure(judge, gpus[0], metric)->all || 3 * worse < 2 * n ||
        !(sum_scores(scores, n) >= judge->bound))
        return EVIDENCE_COUNT;
    return median >= rule->accuse ? EVIDENCE_WEAK_NODE : EVIDENCE_WITHIN;
}

/* GPUs that are accused for themselves need no node. */
static void node_report(struct judge *judge, const uint32_t *gpus, size_t count, size_t metric,
                        enum evidence evidence)
{
    const struct judge_metric *rule = &judge->basis.config->metrics[metric];
    for (size_t i = 0; i < count; i++) {
        uint32_t gpu = gpus[i];
        if (!(judge->worse[judge_slot(judge, gpu, metric)] >= rule->floor))
            continue;
        const struct issue *issue = issue_find(judge, gpu, rule->metric, BASIS_FLEET);
        if (!issue)
            findings_add(judge, judge_score_finding(judge, gpu, metric, evidence), NULL);
        else if (evidence == EVIDENCE_WEAK_NODE && certainty_by_evidence(issue) != CERTAINTY_SURE)
            findings_add(judge, finding_about(judge, issue, evidence), NULL);
    }
}

void stage_weak_nodes(struct judge *judge)
{
    const struct fleet *fleet = &judge->fleet;
    const struct judge_config *config = judge->basis.config;
    double *losses = mem_array(fleet->count, sizeof *losses);
    double *scores = mem_array(fleet->count, sizeof *scores);
    for (size_t g = 0; g < fleet->group_count; g++) {
        const struct group *group = &fleet->groups[g];
        for (size_t i = 0, end; i < group->count; i = end) {
            const uint32_t *gpus = &group->members[i];
            uint32_t name = fleet->gpus[gpus[0]].node;
            for (end = i + 1; end < group->count && fleet->gpus[group->members[end]].node == name;)
                end++;
            for (size_t m = 0; m < config->metric_count && end - i > 1; m++) {
                if (config->metrics[m].worse == JUDGE_ANY)
                    continue;
                enum evidence evidence = node_evidence(judge, gpus, end - i, m, losses, scores);
                if (evidence != EVIDENCE_COUNT)
                    node_report(judge, gpus, end - i, m, evidence);
            }
        }
    }
    free(scores);
    free(losses);
}
