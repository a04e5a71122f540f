/* Models and figures that the judge cannot compare. */
#include "judge/blind_spots.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/str.h"
#include "judge/divided_models.h"
#include "judge/own_defaults.h"
#include "judge/place_findings.h"
#include "judge/population_levels.h"
#include "judge/reference.h"
#include "judge/world_scores.h"
#include "judge/yardstick.h"

/* A figure is scattered if it scatters by SCATTER, so that a GPU must be worse by BLIND to be
 * noticed. Both are shares of the centre. */
static const double SCATTER = 0.05, BLIND = 0.25;

static size_t judged_count(const struct fleet *fleet, const struct group *group)
{
    size_t count = 0;
    for (size_t i = 0; i < group->count; i++)
        count += fleet_judged(&fleet->gpus[group->members[i]]);
    return count;
}

/* The bound of the first population: that of a model with one board. */
static double first_bound(const struct judge *judge, const struct group *group, size_t metric)
{
    size_t metrics = judge->basis.config->metric_count;
    return judge->levels[group->populations_at * metrics + metric].bound;
}

/* If half of a model is slow, the model is divided or its figures scatter. */
static int report_scattered(const struct judge *judge, const struct group *group,
                            struct inventory *inventory)
{
    const struct judge_config *config = judge->basis.config;
    for (size_t m = 0; m < config->metric_count; m++) {
        const struct yardstick *y = yardstick_of(judge, group, m);
        double scatter = y->sigma / fabs(y->center);
        double hidden = first_bound(judge, group, m) * scatter;
        bool divided;
        if (divided_models_report(judge, group, m, inventory, &divided))
            return -ENOMEM;
        if (divided || !y->usable || config->metrics[m].worse == JUDGE_ANY || !(hidden >= BLIND) ||
            scatter < fmax(SCATTER, config->metrics[m].accuse))
            continue;
        char *text =
            str_format("%zu GPUs of %s: %s scatters by %.0f %% among them: a GPU must be "
                       "%.0f %% worse to be noticed",
                       y->n, group->id, config->metrics[m].metric, 100 * scatter, 100 * hidden);
        if (place_findings_add(inventory, NULL, text, NULL))
            return -ENOMEM;
    }
    return 0;
}

int blind_spots_report(const struct judge *judge, struct inventory *inventory)
{
    const struct fleet *fleet = &judge->fleet;
    for (size_t g = 0; g < fleet->group_count; g++) {
        const struct group *group = &fleet->groups[g];
        size_t count = judged_count(fleet, group);
        bool known = judge_references_find(judge->basis.references, fleet_text(fleet, group->name));
        known |= world_scores_knows(judge, group);
        if (world_scores_report(judge, group, inventory))
            return -ENOMEM;
        if (count && count < YARDSTICK_MIN && !known && !judge->basis.baseline) {
            char *text = str_format("%zu of %s: too few to compare, and no reference: judged by "
                                    "rules alone",
                                    count, group->id);
            if (place_findings_add(inventory, NULL, text, NULL))
                return -ENOMEM;
        }
        if (own_defaults_report(judge, group, inventory) ||
            population_levels_report_apart(judge, group, inventory) ||
            judge_settings_report_divided(judge, group, inventory) ||
            report_scattered(judge, group, inventory))
            return -ENOMEM;
    }
    return 0;
}
