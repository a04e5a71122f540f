/* Figures against the fleet: robust scores inside each model. The bound depends on the number of
 * comparisons. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "judge/evidence/stages.h"
#include "judge/population_levels.h"

/* The second round leaves the GPUs of which the first one found a figure beyond its bound out of
 * the yardsticks. */
enum { ROUNDS = 2 };

/* A figure above the floor is also watched if its own score is WATCH_OWN and the score pooled with
 * other figures of its memory reaches the bound. */
static const double WATCH_OWN = 1.5, POOLED_MAX = 10;

/* A slow direction of the host link counts if the other one has this score. */
static const double SECOND_SCORE = 3;

/* If two figures of a GPU are beyond their bounds, all with this score join them, so that the entry
 * shows what the fault affects; not if its clock is further away than this share, or if another
 * condition is unusual. */
static const double JOIN_SCORE = 2, CLOCK_AWAY = 0.05;

struct trial {
    struct judge *judge;
    const struct judge_config *config;
    bool *beyond;     /* [gpu * metrics + metric]: beyond its bound */
    bool *left_out;   /* likewise: this or another figure of the GPU is */
    size_t *memories; /* per metric: the first metric of the same memory */
    struct work work;
};

static size_t trial_slot(const struct trial *trial, uint32_t gpu, size_t metric)
{
    return gpu * trial->config->metric_count + metric;
}

static void trial_make_yardsticks(struct trial *trial)
{
    const struct judge *judge = trial->judge;
    const struct fleet *fleet = &judge->fleet;
    population_levels_find(judge, trial->beyond, &trial->work);
    for (size_t g = 0; g < fleet->group_count; g++) {
        const struct group *group = &fleet->groups[g];
        for (size_t m = 0; m < trial->config->metric_count; m++) {
            /* If too few GPUs would be left to compare with, none is left out: the median bears
             * bad ones. */
            if (yardstick_gather(judge, group, m, trial->left_out, &trial->work) < YARDSTICK_MIN)
                for (size_t i = 0; i < group->count; i++)
                    trial->left_out[trial_slot(trial, group->members[i], m)] = false;
            yardstick_make(judge, group, m, trial->left_out, &trial->work,
                           yardstick_of(judge, group, m));
        }
    }
    const struct yardstick_chances chances = yardstick_find_chances(judge, trial->memories);
    for (size_t g = 0; g < fleet->group_count; g++) {
        const struct group *group = &fleet->groups[g];
        yardstick_find_scales(judge, group, trial->left_out, chances.single, &trial->work);
        yardstick_find_tails(judge, group, trial->left_out, &trial->work);
        yardstick_find_bounds(judge, group, &chances);
    }
}

/* Values that are fixed in hardware, such as a line size, do not scatter. They are compared if two
 * thirds of the GPUs have the same value. */
static bool figures_are_equal(const struct trial *trial, const struct group *group, size_t metric)
{
    const struct yardstick *y = yardstick_of(trial->judge, group, metric);
    const struct metric_column *column = trial->judge->columns[metric];
    size_t equal = 0;
    for (size_t i = 0; i < group->count; i++) {
        const struct cell *cell = fleet_number(column, group->members[i], false);
        equal += cell && fleet_judged(&trial->judge->fleet.gpus[group->members[i]]) &&
                 cell->value == y->center;
    }
    return 3 * equal >= 2 * y->n;
}

static void trial_score(struct trial *trial, const struct group *group, size_t metric,
                        const struct metric_column *column, uint32_t gpu)
{
    const struct judge_metric *rule = &trial->config->metrics[metric];
    const struct yardstick *y = yardstick_of(trial->judge, group, metric);
    const struct cell *cell = fleet_number(column, gpu, true);
    size_t slot = trial_slot(trial, gpu, metric);
    if (!cell || !fleet_judged(&trial->judge->fleet.gpus[gpu]))
        return;
    const struct population_level *level = judge_level(trial->judge, gpu, metric);
    if (level->not_compared)
        return;
    double value = cell->value * judge_common_factor(trial->judge, y, gpu, metric);
    double worse = judge_worse_share(rule->worse, (value - y->center) / fabs(y->center));
    double score =
        judge_worse_share(rule->worse, yardstick_score(y, value, cell->spread * level->factor,
                                                       trial->judge->clock_ratio[gpu], level));
    trial->judge->worse[slot] = (float)worse;
    trial->judge->scores[slot] = (float)score;
}

/* Whether another figure of the same memory is bad enough to be watched. */
static bool score_is_seconded(const struct trial *trial, uint32_t gpu, size_t metric)
{
    for (size_t m = 0; m < trial->config->metric_count; m++)
        if (m != metric && trial->memories[m] == trial->memories[metric] &&
            trial->judge->scores[trial_slot(trial, gpu, m)] >= SECOND_SCORE &&
            trial->judge->worse[trial_slot(trial, gpu, m)] >= trial->config->metrics[m].floor)
            return true;
    return false;
}

/* The host takes part in a copy. A slow link is slow in both directions. */
static bool score_needs_second(const struct trial *trial, uint32_t gpu, size_t metric)
{
    bool slower_link = judge_number_lower(judge_condition_ratio(trial->judge, JUDGE_PCIE, gpu), 1);
    return strncmp(trial->config->metrics[metric].metric, "host.", 5) == 0 && !slower_link;
}

static bool score_is_beyond(const struct trial *trial, uint32_t gpu, size_t metric)
{
    const struct judge *judge = trial->judge;
    const struct population_level *level = judge_level(judge, gpu, metric);
    double score = judge->scores[trial_slot(trial, gpu, metric)];
    if (trial->config->metrics[metric].worse == JUDGE_ANY)
        return judge->worse[trial_slot(trial, gpu, metric)] > 0;
    if (score >= level->bound &&
        (!score_needs_second(trial, gpu, metric) || score_is_seconded(trial, gpu, metric)))
        return true;
    for (size_t m = 0; m < trial->config->metric_count && score >= level->pair_bound; m++) {
        if (m != metric && trial->memories[m] == trial->memories[metric] &&
            trial->config->metrics[m].worse != JUDGE_ANY &&
            judge->scores[trial_slot(trial, gpu, m)] >= judge_level(judge, gpu, m)->pair_bound)
            return true;
    }
    return false;
}

static void trial_find_beyond(struct trial *trial, uint32_t gpu)
{
    bool any = false;
    for (size_t m = 0; m < trial->config->metric_count; m++) {
        const struct judge_metric *rule = &trial->config->metrics[m];
        double worse = trial->judge->worse[trial_slot(trial, gpu, m)];
        trial->beyond[trial_slot(trial, gpu, m)] =
            worse >= rule->floor && worse >= rule->accuse && score_is_beyond(trial, gpu, m) &&
            fleet_number(trial->judge->columns[m], gpu, false);
        any |= trial->beyond[trial_slot(trial, gpu, m)];
    }
    for (size_t m = 0; m < trial->config->metric_count; m++)
        trial->left_out[trial_slot(trial, gpu, m)] = any;
}

static void trial_score_all(struct trial *trial)
{
    const struct fleet *fleet = &trial->judge->fleet;
    size_t slots = fleet->count * trial->config->metric_count;
    for (size_t i = 0; i < slots; i++)
        trial->judge->worse[i] = trial->judge->scores[i] = NAN;
    memset(trial->beyond, 0, slots * sizeof *trial->beyond);
    for (size_t g = 0; g < fleet->group_count; g++) {
        const struct group *group = &fleet->groups[g];
        for (size_t m = 0; m < trial->config->metric_count; m++) {
            const struct metric_column *column = trial->judge->columns[m];
            bool any = trial->config->metrics[m].worse == JUDGE_ANY;
            if (!yardstick_of(trial->judge, group, m)->usable ||
                (any && !figures_are_equal(trial, group, m)))
                continue;
            for (size_t i = 0; i < group->count; i++)
                trial_score(trial, group, m, column, group->members[i]);
        }
        for (size_t i = 0; i < group->count; i++)
            trial_find_beyond(trial, group->members[i]);
    }
}

/* The score pooled with all figures of the same memory, or with the worst other one, whichever is
 * worse. A slow memory affects several of its figures, but not always all. */
static double score_pooled(const struct trial *trial, uint32_t gpu, size_t metric)
{
    double own = trial->judge->scores[trial_slot(trial, gpu, metric)], sum = own, worst = -INFINITY;
    size_t count = 1;
    for (size_t m = 0; m < trial->config->metric_count; m++) {
        double score = trial->judge->scores[trial_slot(trial, gpu, m)];
        if (m == metric || isnan(score) || trial->config->metrics[m].worse == JUDGE_ANY ||
            trial->memories[m] != trial->memories[metric])
            continue;
        score = fmin(score, POOLED_MAX);
        sum += score;
        worst = fmax(worst, score);
        count++;
    }
    return fmax(sum / sqrt((double)count), (own + worst) / sqrt(2));
}

static bool score_is_notable(const struct trial *trial, uint32_t gpu, size_t metric)
{
    double score = trial->judge->scores[trial_slot(trial, gpu, metric)];
    double worse = trial->judge->worse[trial_slot(trial, gpu, metric)];
    const struct judge_metric *rule = &trial->config->metrics[metric];
    if (!(worse >= rule->floor) || worse == 0)
        return false;
    double bound = judge_level(trial->judge, gpu, metric)->watch_bound;
    return rule->worse == JUDGE_ANY || score >= bound ||
           (score >= WATCH_OWN && score_pooled(trial, gpu, metric) >= bound);
}

struct finding judge_score_finding(struct judge *judge, uint32_t gpu, size_t metric,
                                   enum evidence evidence)
{
    const struct judge_metric *rule = &judge->basis.config->metrics[metric];
    const struct fleet *fleet = &judge->fleet;
    const struct yardstick *y = yardstick_of(judge, &fleet->groups[fleet->gpus[gpu].group], metric);
    const struct cell *cell = fleet_number(judge->columns[metric], gpu, true);
    const struct population_level *level = judge_level(judge, gpu, metric);
    double factor = judge_common_factor(judge, y, gpu, metric), value = cell->value * factor;
    struct finding finding = finding_new(judge, gpu, rule->metric, BASIS_FLEET, evidence);
    finding.rule = (int32_t)metric;
    finding.unit = cell->unit;
    finding.value = cell->value;
    finding.expected = y->center / factor; /* at its clock, in its population */
    finding.deviation = value / y->center - 1;
    if (rule->worse != JUDGE_ANY)
        finding.score =
            yardstick_score(y, value, cell->spread * level->factor, judge->clock_ratio[gpu], level);
    return finding;
}

/* A condition of the GPU may explain what is beyond its bounds. What else is a little worse by
 * chance would not be explained by it. */
static bool gpu_has_condition(const struct judge *judge, uint32_t gpu)
{
    if (fabs(judge->clock_ratio[gpu] - 1) >= CLOCK_AWAY || judge->other_hardware[gpu])
        return true;
    for (int c = 0; c < JUDGE_CONDITION_COUNT; c++)
        if (c != JUDGE_SM_CLOCK &&
            judge_number_lower(judge_condition_ratio(judge, (enum judge_condition)c, gpu), 1))
            return true;
    return false;
}

static bool score_joins_others(const struct trial *trial, uint32_t gpu, size_t metric)
{
    size_t beyond = 0;
    for (size_t m = 0; m < trial->config->metric_count; m++)
        beyond += trial->beyond[trial_slot(trial, gpu, m)];
    double worse = trial->judge->worse[trial_slot(trial, gpu, metric)];
    const struct judge_metric *rule = &trial->config->metrics[metric];
    return beyond > 1 && worse >= rule->floor && worse >= rule->accuse &&
           trial->judge->scores[trial_slot(trial, gpu, metric)] >= JOIN_SCORE &&
           !gpu_has_condition(trial->judge, gpu) && !score_needs_second(trial, gpu, metric) &&
           fleet_number(trial->judge->columns[metric], gpu, false);
}

void stage_scores(struct judge *judge)
{
    const struct fleet *fleet = &judge->fleet;
    const struct judge_config *config = judge->basis.config;
    size_t metrics = config->metric_count, slots = fleet->count * metrics;
    struct trial trial = {.judge = judge,
                          .config = config,
                          .beyond = mem_array(slots, sizeof *trial.beyond),
                          .left_out = mem_array(slots, sizeof *trial.left_out),
                          .memories = mem_array(metrics, sizeof *trial.memories)};
    judge->yardsticks = mem_array(fleet->group_count * metrics, sizeof *judge->yardsticks);
    judge->levels = mem_array(fleet->population_count * metrics, sizeof *judge->levels);
    judge->worse = mem_array(slots, sizeof *judge->worse);
    judge->scores = mem_array(slots, sizeof *judge->scores);
    work_init(&trial.work, fleet->count);
    for (size_t m = 0; m < metrics; m++)
        while (!measure_same_memory(config->metrics[trial.memories[m]].metric,
                                    config->metrics[m].metric))
            trial.memories[m]++;
    for (int round = 0; round < ROUNDS; round++) {
        trial_make_yardsticks(&trial);
        trial_score_all(&trial);
    }
    for (size_t i = 0; i < fleet->count; i++)
        for (size_t m = 0; m < metrics; m++) {
            uint32_t gpu = fleet->order[i];
            enum evidence evidence = trial.beyond[trial_slot(&trial, gpu, m)] ? EVIDENCE_BEYOND
                                     : score_joins_others(&trial, gpu, m)     ? EVIDENCE_JOINING
                                                                              : EVIDENCE_WITHIN;
            if (evidence != EVIDENCE_WITHIN || score_is_notable(&trial, gpu, m))
                findings_add(judge, judge_score_finding(judge, gpu, m, evidence), NULL);
        }
    work_fini(&trial.work);
    free(trial.beyond);
    free(trial.left_out);
    free(trial.memories);
}
