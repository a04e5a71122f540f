/* Models and populations of two to four GPUs: a GPU that is much worse than the others is watched.
 */
#include <math.h>
#include <stdlib.h>

#include "base/str.h"
#include "judge/evidence/stages.h"
#include "judge/yardstick.h"

/* Nothing is known of the scatter between so few GPUs. A GPU is watched if it is worse than the
 * median of the others by LOSS, by `few` of the configuration and twice the share below which no
 * GPU is accused, and by SPREADS * sqrt(2) * the largest spread. */
static const double LOSS = 0.05, TIMES_ACCUSE = 2, SPREADS = 4;

/* One figure of the GPUs of a population, at equal clock. */
struct few_row {
    size_t n;
    uint32_t gpus[YARDSTICK_MIN];
    double values[YARDSTICK_MIN], spreads[YARDSTICK_MIN];
};

/* False if the figure has too few or too many GPUs. */
static bool few_gather(const struct judge *judge, const struct group *model,
                       const struct group *group, size_t metric, struct few_row *out)
{
    const struct yardstick *y = yardstick_of(judge, model, metric);
    out->n = 0;
    for (size_t i = 0; i < group->count; i++) {
        uint32_t gpu = group->members[i];
        const struct cell *cell = fleet_number(judge->columns[metric], gpu, false);
        if (!cell || !fleet_judged(&judge->fleet.gpus[gpu]))
            continue;
        if (out->n == YARDSTICK_MIN - 1)
            return false;
        out->gpus[out->n] = gpu;
        out->values[out->n] = cell->value * judge_common_factor(judge, y, gpu, metric);
        out->spreads[out->n++] = isfinite(cell->spread) ? cell->spread : 0;
    }
    return out->n > 1;
}

static void few_compare(struct judge *judge, const struct group *group, size_t metric,
                        const struct few_row *row, size_t number)
{
    const struct yardstick *y = yardstick_of(judge, group, metric);
    const struct judge_metric *rule = &judge->basis.config->metrics[metric];
    double others[YARDSTICK_MIN], own = row->values[number], spread = row->spreads[number];
    size_t n = 0;
    uint32_t gpu = row->gpus[number];
    for (size_t i = 0; i < row->n; i++) {
        if (i != number)
            others[n++] = row->values[i];
        spread = fmax(spread, row->spreads[i]);
    }
    double usual = robust_median(others, n),
           worse = judge_worse_share(rule->worse, own / usual - 1),
           least = fmax(fmax(LOSS, rule->few), TIMES_ACCUSE * fmax(rule->accuse, rule->floor));
    if (!(usual > 0) || !(worse >= least) || fabs(own - usual) < SPREADS * sqrt(2) * spread ||
        issue_find(judge, gpu, rule->metric, BASIS_FLEET))
        return;
    const struct cell *cell = fleet_number(judge->columns[metric], gpu, false);
    struct finding finding = finding_new(judge, gpu, rule->metric, BASIS_FLEET, EVIDENCE_FEW_PEERS);
    finding.rule = (int32_t)metric;
    finding.unit = cell->unit;
    finding.value = cell->value;
    finding.expected = usual / judge_common_factor(judge, y, gpu, metric);
    finding.deviation = own / usual - 1;
    const char *kind = group->populations == 1 ? "model" : "board part";
    findings_add(
        judge, finding,
        n == 1
            ? str_format("worse than the other one of its %s; too few to tell who is right", kind)
            : str_format("worse than the other %zu of its %s; too few to tell who is right", n,
                         kind));
}

void stage_few_peers(struct judge *judge)
{
    const struct fleet *fleet = &judge->fleet;
    const struct judge_config *config = judge->basis.config;
    for (size_t p = 0; p < fleet->population_count; p++) {
        const struct group *population = &fleet->populations[p];
        const struct group *model = &fleet->groups[fleet->gpus[population->members[0]].group];
        for (size_t m = 0; m < config->metric_count; m++) {
            enum judge_worse worse = config->metrics[m].worse;
            struct few_row row;
            if ((worse != JUDGE_LOWER && worse != JUDGE_HIGHER) ||
                !few_gather(judge, model, population, m, &row))
                continue;
            for (size_t i = 0; i < row.n; i++)
                few_compare(judge, model, m, &row, i);
        }
    }
}
