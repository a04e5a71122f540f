/* Nodes whose GPUs are all a little worse than others. Each deviation could be chance, but not all
 * of them together. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "judge/figure_groups.h"
#include "judge/yardstick.h"

/* A score counts as at most this multiple of the node's median score, so that the node is not
 * reported for one or two bad GPUs. */
static const double SCORE_MOST = 1.5;

struct node {
    const uint32_t *gpus;
    size_t count;
};

/* The scores of n GPUs together: of standard deviation 1 if the GPUs are healthy. */
static double sum_scores(double *scores, size_t n)
{
    double most = SCORE_MOST * robust_median(scores, n), sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += fmin(scores[i], most);
    return sum / sqrt((double)n);
}

/* Whether the node is reported for a metric; *out_accused: whether it is accused. losses, scores:
 * with room for all GPUs of the node. */
static bool is_weak(const struct judge *judge, const struct node *node, size_t metric,
                    double *losses, double *scores, bool *out_accused)
{
    const struct judge_metric *rule = &judge->basis.config->metrics[metric];
    size_t metrics = judge->basis.config->metric_count, n = 0, worse = 0;
    for (size_t i = 0; i < node->count; i++) {
        size_t slot = node->gpus[i] * metrics + metric;
        if (figure_groups_has(judge, node->gpus[i], metric))
            return false;
        if (isnan(judge->worse[slot]))
            continue;
        losses[n] = judge->worse[slot];
        scores[n++] = judge->scores[slot];
    }
    double median = robust_median(losses, n);
    const struct fleet *fleet = &judge->fleet;
    const struct group *group = &fleet->groups[fleet->gpus[node->gpus[0]].group];
    const struct yardstick *y = yardstick_of(judge, group, metric);
    double bound = judge_level(judge, node->gpus[0], metric)->bound;
    for (size_t i = 0; i < n; i++)
        worse += losses[i] >= fmax(rule->floor, median / 2);
    *out_accused = median >= rule->accuse;
    return n >= 2 && median > 0 && median >= rule->floor && 2 * n <= y->n && 3 * worse >= 2 * n &&
           sum_scores(scores, n) >= bound;
}

static int mark(struct judge *judge, const struct node *node, size_t metric, bool accused)
{
    const struct judge_metric *rule = &judge->basis.config->metrics[metric];
    size_t metrics = judge->basis.config->metric_count;
    for (size_t i = 0; i < node->count; i++) {
        uint32_t gpu = node->gpus[i];
        double worse = judge->worse[gpu * metrics + metric];
        struct finding *finding = finding_of(judge, gpu, rule->metric, BASIS_FLEET);
        if (!(worse >= rule->floor))
            continue;
        if (!finding)
            finding = finding_of_score(judge, gpu, metric);
        if (!finding)
            return -ENOMEM;
        finding->by_node = accused && !finding->accused;
        finding->accused |= accused;
    }
    return 0;
}

int judge_nodes(struct judge *judge)
{
    const struct fleet *fleet = &judge->fleet;
    const struct judge_config *config = judge->basis.config;
    double *losses = mem_array(fleet->count, sizeof *losses);
    double *scores = mem_array(fleet->count, sizeof *scores);
    int rc = losses && scores ? 0 : -ENOMEM;
    for (size_t g = 0; g < fleet->group_count && !rc; g++) {
        const struct group *group = &fleet->groups[g];
        for (size_t i = 0, end; i < group->count && !rc; i = end) {
            uint32_t name = fleet->gpus[group->members[i]].node;
            for (end = i + 1; end < group->count && fleet->gpus[group->members[end]].node == name;)
                end++;
            const struct node node = {&group->members[i], end - i};
            for (size_t m = 0; m < config->metric_count && node.count > 1 && !rc; m++) {
                bool accused;
                if (config->metrics[m].worse != JUDGE_ANY &&
                    is_weak(judge, &node, m, losses, scores, &accused))
                    rc = mark(judge, &node, m, accused);
            }
        }
    }
    free(scores);
    free(losses);
    return rc;
}
