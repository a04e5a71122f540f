/* Models and figures that the judge cannot compare. */
#include <math.h>

#include "base/str.h"
#include "judge/evidence/stages.h"
#include "judge/model.h"
#include "judge/reference.h"
#include "judge/verdict.h"

/* A figure is scattered if it scatters by SCATTER, so that a GPU must be worse by BLIND to be
 * noticed. Both are shares of the centre. */
static const double SCATTER = 0.05, BLIND = 0.25;

/* If half of a model is slow, the model is divided or its figures scatter. */
static void report_scattered(const struct judge *judge, const struct group *model,
                             struct inventory *inventory)
{
    const struct judge_config *config = judge->basis.config;
    for (size_t m = 0; m < config->metric_count; m++) {
        const struct usual_figure
            *first = &judge->figures[model->populations_at * config->metric_count + m],
            *usual = first;
        for (size_t i = 1; i < model->populations; i++)
            if (first[i * config->metric_count].n > usual->n)
                usual = &first[i * config->metric_count];
        double scatter = usual->sigma;
        double hidden = scatter * model_score_size(judge->bound, usual->dof);
        if (judge_report_divided_figure(judge, model, m, inventory) || !usual->usable ||
            usual->all < PEERS_MIN || config->metrics[m].worse == JUDGE_ANY || !(hidden >= BLIND) ||
            scatter < fmax(SCATTER, config->metrics[m].accuse))
            continue;
        verdict_add_remark(
            inventory,
            str_format("%zu GPUs of %s: %s scatters by %.0f %% among them: a GPU must be "
                       "%.0f %% worse to be noticed",
                       usual->all, model->id, config->metrics[m].metric, 100 * scatter,
                       100 * hidden));
    }
}

/* All GPUs of a population may be bad. */
static void report_worse_populations(const struct judge *judge, const struct group *model,
                                     struct inventory *inventory)
{
    const struct judge_config *config = judge->basis.config;
    for (size_t i = 0; i < model->populations; i++)
        for (size_t m = 0; m < config->metric_count; m++) {
            size_t number = model->populations_at + i;
            const struct usual_figure *usual = &judge->figures[number * config->metric_count + m];
            double loss =
                judge_worse_share(config->metrics[m].worse, usual->center / usual->largest - 1);
            if (loss > model_constants[BUILT_APART] && !usual->other_kind)
                verdict_add_remark(
                    inventory,
                    str_format("all GPUs of %s: %s is %.0f %% worse than in the largest "
                               "population, more than boards usually differ: nobody is flagged",
                               judge->fleet.populations[number].id, config->metrics[m].metric,
                               100 * loss));
        }
}

void stage_blind_spots(struct judge *judge, struct inventory *inventory)
{
    const struct fleet *fleet = &judge->fleet;
    for (size_t g = 0; g < fleet->group_count && !judge->basis.drift_only; g++) {
        const struct group *model = &fleet->groups[g];
        size_t count = 0;
        for (size_t i = 0; i < model->count; i++)
            count += fleet_judged(&fleet->gpus[model->members[i]]);
        bool known =
            judge_references_find(judge->basis.references, fleet_text(fleet, model->name)) ||
            model_world_knows(judge, model);
        judge_report_world(judge, model, inventory);
        if (count && count < PEERS_MIN && !known && !judge->basis.baseline)
            verdict_add_remark(
                inventory, str_format("%zu of %s: too few to compare, and no reference: judged by "
                                      "rules alone",
                                      count, model->id));
        for (size_t k = 0; k < model->populations; k++)
            judge_report_defaults(judge, &fleet->populations[model->populations_at + k], inventory);
        report_worse_populations(judge, model, inventory);
        judge_report_divided_settings(judge, model, inventory);
        report_scattered(judge, model, inventory);
    }
}
