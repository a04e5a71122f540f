/* How far the figures of each population scatter, and the bounds that follow. */
#include "judge/population_scales.h"

#include <math.h>

#include "cpd/cpd.h"

/* From this number of GPUs on, a population is always judged by its own scatter. */
enum { OWN_MIN = 30 };

/* The scale of a few GPUs is uncertain: it counts as wider only from this ratio on. */
static const double WIDER = 2;

/* Share of healthy GPUs that may be watched by chance, for one of their figures. */
static const double WATCHED = 0.005;

/* The number of false accusations in one survey is for this many GPUs and more. Small surveys are
 * made often, of each node for instance: with fewer GPUs it is proportionally smaller. */
static const double FULL_SURVEY = 128;

static struct population_level *level_of(const struct judge *judge, size_t population,
                                         size_t metric)
{
    return &judge->levels[population * judge->basis.config->metric_count + metric];
}

/* The centre is known from n GPUs only. */
static double with_center(double sigma, size_t n)
{
    return sigma * sqrt(1 + CPD_MEDIAN_ERROR * CPD_MEDIAN_ERROR / (double)n);
}

/* The figures of one population, converted as the yardstick is. Scales are in units of its sigma.
 */
struct own_scale {
    size_t n;
    double cautious, dof; /* as the scale of the yardstick is found */
    double usual;         /* of the values near the centre */
    double better;        /* root mean square of the deviations to the better side */
};

static double better_scale(const struct judge_metric *rule, const struct work *work, size_t n,
                           double center)
{
    double squares = 0, count = 0;
    for (size_t i = 0; i < n; i++) {
        double worse = judge_worse_share(rule->worse, work->values[i] - center);
        squares += worse < 0 ? worse * worse : 0;
        count += worse < 0;
    }
    return count > 0 ? sqrt(squares / count) : 0;
}

static struct own_scale find_own(const struct judge *judge, const struct group *population,
                                 const struct yardstick *y, size_t metric, const bool *left_out,
                                 struct work *work)
{
    size_t n = yardstick_gather(judge, population, metric, left_out, work);
    for (size_t i = 0; i < n; i++)
        work->values[i] *= judge_common_factor(judge, y, work->gpus[i], metric);
    const struct robust_fit cautious = robust_fit_cautious(work->values, n, work->scratch);
    const struct robust_fit usual = robust_fit(work->values, n, work->scratch);
    return (struct own_scale){
        .n = n,
        .cautious = with_center(yardstick_scale(&cautious, y->spread), n) / y->sigma,
        .dof = cautious.kept > 1 ? (double)cautious.kept - 1 : 1,
        .usual = with_center(yardstick_scale(&usual, y->spread), n) / y->sigma,
        .better =
            better_scale(&judge->basis.config->metrics[metric], work, n, usual.center) / y->sigma,
    };
}

/* A population is judged by its own scatter if that is known well, if it is much wider than that of
 * the model, to the better side, where faults do not count, or if it is so narrow that smaller
 * losses stand out in spite of the uncertainty. Otherwise it is judged by the scatter of the model,
 * or by its own if that is a little wider. */
static void choose(struct population_level *level, const struct own_scale *own, double tail)
{
    bool narrow = own->n >= YARDSTICK_MIN && yardstick_bound(tail, own->dof) * own->cautious <
                                                 yardstick_bound(tail, level->dof) * level->scale;
    bool wide = own->n > 2 && own->better > WIDER * level->scale;
    if (own->n >= OWN_MIN || narrow || wide) {
        level->scale = own->cautious;
        level->dof = own->dof;
    } else if (own->n >= YARDSTICK_MIN)
        level->scale = fmax(level->scale, own->usual);
}

void population_scales_find(const struct judge *judge, const struct group *model,
                            const bool *left_out, double tail, struct work *work)
{
    const struct judge_config *config = judge->basis.config;
    for (size_t m = 0; m < config->metric_count; m++) {
        const struct yardstick *y = yardstick_of(judge, model, m);
        for (size_t i = 0; i < model->populations && y->usable; i++) {
            size_t number = model->populations_at + i;
            struct population_level *level = level_of(judge, number, m);
            level->scale = with_center(1, y->n);
            level->dof = y->dof;
            if (model->populations == 1 || config->metrics[m].worse == JUDGE_ANY)
                continue;
            const struct own_scale own =
                find_own(judge, &judge->fleet.populations[number], y, m, left_out, work);
            choose(level, &own, tail);
        }
    }
}

static void set_bounds(const struct yardstick *y, const struct population_tails *tails,
                       struct population_level *level)
{
    double dof = fmin(level->dof, y->tail_dof);
    level->bound = fmin(yardstick_bound(tails->single, dof), y->edge);
    /* The figures of a healthy memory may be correlated: assume the heaviest tails. */
    level->pair_bound = yardstick_bound(tails->pair, fmin(dof, ROBUST_DOF_MIN));
    level->watch_bound = yardstick_bound(tails->watch, dof);
}

void population_scales_bound(const struct judge *judge, const struct group *model,
                             const struct population_tails *tails)
{
    for (size_t m = 0; m < judge->basis.config->metric_count; m++) {
        const struct yardstick *y = yardstick_of(judge, model, m);
        for (size_t i = 0; i < model->populations && y->usable; i++)
            set_bounds(y, tails, level_of(judge, model->populations_at + i, m));
    }
}

/* The number of comparisons: of single figures, and of pairs of figures of one memory; and of the
 * GPUs compared. */
struct comparisons {
    double single, pairs, gpus;
};

static struct comparisons count_comparisons(const struct judge *judge, const size_t *memories)
{
    const struct fleet *fleet = &judge->fleet;
    struct comparisons count = {0};
    for (size_t i = 0; i < fleet->count; i++)
        count.gpus += fleet_judged(&fleet->gpus[i]);
    for (size_t m = 0; m < judge->basis.config->metric_count; m++) {
        const struct metric_column *column = judge->columns[m];
        double partners = 0;
        for (size_t k = 0; k < m; k++)
            partners += memories[k] == memories[m];
        for (size_t g = 0; g < fleet->group_count && column; g++) {
            const struct group *group = &fleet->groups[g];
            if (!yardstick_of(judge, group, m)->usable)
                continue;
            for (size_t i = 0; i < group->count; i++) {
                bool made = fleet_judged(&fleet->gpus[group->members[i]]) &&
                            fleet_number(column, group->members[i], false);
                count.single += made;
                count.pairs += made ? partners : 0;
            }
        }
    }
    return count;
}

struct population_tails population_scales_tails(const struct judge *judge, const size_t *memories)
{
    const struct comparisons made = count_comparisons(judge, memories);
    double allowed = judge->basis.config->false_alarms * fmin(made.gpus / FULL_SURVEY, 1);
    return (struct population_tails){
        .single = fmin(allowed / fmax(made.single, 1), 0.5),
        .pair = fmin(sqrt(allowed / fmax(made.pairs, 1)), 0.5),
        .watch = WATCHED * made.gpus / fmax(made.single, 1),
    };
}
