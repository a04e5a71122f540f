/* Figures against the fleet: robust scores inside each model. The bound depends on the number of
 * comparisons. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "judge/population_levels.h"
#include "judge/population_scales.h"

/* The second round leaves the GPUs that the first one accused, in whatever figure, out of the
 * yardsticks. */
enum { ROUNDS = 2 };

/* A figure above the floor is also watched if its own score is WATCH_OWN and the score pooled with
 * other figures of its memory reaches the bound. */
static const double WATCH_OWN = 1.5, POOLED_MAX = 10;

/* A slow direction of the host link is accused if the other one has this score. */
static const double SECOND_SCORE = 3;

/* A GPU that is accused in two figures is accused in all with this score, so that the entry tells
 * what the fault affects; not if its clock is further away than this share, or if another condition
 * is unusual. */
static const double JOIN_SCORE = 2, CLOCK_AWAY = 0.05;

struct trial {
    struct judge *judge;
    const struct judge_config *config;
    bool *accused;    /* [gpu * metrics + metric] */
    bool *left_out;   /* likewise: accused in this or another figure */
    size_t *memories; /* per metric: the first metric of the same memory */
    struct work work;
};

static size_t at(const struct trial *trial, uint32_t gpu, size_t metric)
{
    return gpu * trial->config->metric_count + metric;
}

static bool comparable(const struct judge *judge, uint32_t gpu)
{
    return fleet_judged(&judge->fleet.gpus[gpu]);
}

static const struct metric_column *column_of(const struct trial *trial, size_t metric)
{
    return trial->judge->columns[metric];
}

/* If too few GPUs would be left to compare with, none is left out: the median bears bad ones. */
static void keep_enough(struct trial *trial, const struct group *group, size_t metric)
{
    const struct judge *judge = trial->judge;
    if (yardstick_gather(judge, group, metric, trial->left_out, &trial->work) >= YARDSTICK_MIN)
        return;
    for (size_t i = 0; i < group->count; i++)
        trial->left_out[at(trial, group->members[i], metric)] = false;
}

static int make_yardsticks(struct trial *trial)
{
    const struct fleet *fleet = &trial->judge->fleet;
    if (population_levels_find(trial->judge, trial->accused, &trial->work))
        return -ENOMEM;
    for (size_t g = 0; g < fleet->group_count; g++) {
        const struct group *group = &fleet->groups[g];
        for (size_t m = 0; m < trial->config->metric_count; m++) {
            keep_enough(trial, group, m);
            yardstick_make(trial->judge, group, m, trial->left_out, &trial->work,
                           yardstick_of(trial->judge, group, m));
        }
    }
    const struct population_tails tails = population_scales_tails(trial->judge, trial->memories);
    for (size_t g = 0; g < fleet->group_count; g++) {
        const struct group *group = &fleet->groups[g];
        population_scales_find(trial->judge, group, trial->left_out, tails.single, &trial->work);
        if (yardstick_tails(trial->judge, group, trial->left_out, &trial->work))
            return -ENOMEM;
        population_scales_bound(trial->judge, group, &tails);
    }
    return 0;
}

/* Values that are fixed in hardware, such as a line size, do not scatter. They are compared if two
 * thirds of the GPUs have the same value. */
static bool most_are_equal(const struct trial *trial, const struct group *group, size_t metric)
{
    const struct yardstick *y = yardstick_of(trial->judge, group, metric);
    const struct metric_column *column = column_of(trial, metric);
    size_t equal = 0;
    for (size_t i = 0; i < group->count; i++) {
        const struct cell *cell = fleet_number(column, group->members[i], false);
        equal += cell && comparable(trial->judge, group->members[i]) && cell->value == y->center;
    }
    return 3 * equal >= 2 * y->n;
}

static void score_gpu(struct trial *trial, const struct group *group, size_t metric,
                      const struct metric_column *column, uint32_t gpu)
{
    const struct judge_metric *rule = &trial->config->metrics[metric];
    const struct yardstick *y = yardstick_of(trial->judge, group, metric);
    const struct cell *cell = fleet_number(column, gpu, true);
    size_t slot = at(trial, gpu, metric);
    if (!cell || !comparable(trial->judge, gpu))
        return;
    const struct population_level *level = judge_level(trial->judge, gpu, metric);
    double value = cell->value * judge_common_factor(trial->judge, y, gpu, metric);
    double worse = judge_worse_share(rule->worse, (value - y->center) / fabs(y->center));
    double score =
        judge_worse_share(rule->worse, yardstick_score(y, value, cell->spread * level->factor,
                                                       trial->judge->clock_ratio[gpu], level));
    trial->judge->worse[slot] = (float)worse;
    trial->judge->scores[slot] = (float)score;
}

/* Whether another figure of the same memory is bad enough to be watched. */
static bool is_seconded(const struct trial *trial, uint32_t gpu, size_t metric)
{
    for (size_t m = 0; m < trial->config->metric_count; m++)
        if (m != metric && trial->memories[m] == trial->memories[metric] &&
            trial->judge->scores[at(trial, gpu, m)] >= SECOND_SCORE &&
            trial->judge->worse[at(trial, gpu, m)] >= trial->config->metrics[m].floor)
            return true;
    return false;
}

/* The host takes part in a copy. A slow link is slow in both directions. */
static bool needs_second(const struct trial *trial, uint32_t gpu, size_t metric)
{
    bool slower_link = judge_number_lower(judge_condition_ratio(trial->judge, JUDGE_PCIE, gpu), 1);
    return strncmp(trial->config->metrics[metric].metric, "host.", 5) == 0 && !slower_link;
}

static bool is_sure(const struct trial *trial, uint32_t gpu, size_t metric)
{
    const struct judge *judge = trial->judge;
    const struct population_level *level = judge_level(judge, gpu, metric);
    double score = judge->scores[at(trial, gpu, metric)];
    if (trial->config->metrics[metric].worse == JUDGE_ANY)
        return judge->worse[at(trial, gpu, metric)] > 0;
    if (score >= level->bound &&
        (!needs_second(trial, gpu, metric) || is_seconded(trial, gpu, metric)))
        return true;
    for (size_t m = 0; m < trial->config->metric_count && score >= level->pair_bound; m++) {
        if (m != metric && trial->memories[m] == trial->memories[metric] &&
            trial->config->metrics[m].worse != JUDGE_ANY &&
            judge->scores[at(trial, gpu, m)] >= judge_level(judge, gpu, m)->pair_bound)
            return true;
    }
    return false;
}

static void accuse(struct trial *trial, uint32_t gpu)
{
    bool any = false;
    for (size_t m = 0; m < trial->config->metric_count; m++) {
        const struct judge_metric *rule = &trial->config->metrics[m];
        double worse = trial->judge->worse[at(trial, gpu, m)];
        trial->accused[at(trial, gpu, m)] = worse >= rule->floor && worse >= rule->accuse &&
                                            is_sure(trial, gpu, m) &&
                                            fleet_number(column_of(trial, m), gpu, false);
        any |= trial->accused[at(trial, gpu, m)];
    }
    for (size_t m = 0; m < trial->config->metric_count; m++)
        trial->left_out[at(trial, gpu, m)] = any;
}

static void score_all(struct trial *trial)
{
    const struct fleet *fleet = &trial->judge->fleet;
    size_t slots = fleet->count * trial->config->metric_count;
    for (size_t i = 0; i < slots; i++)
        trial->judge->worse[i] = trial->judge->scores[i] = NAN;
    memset(trial->accused, 0, slots * sizeof *trial->accused);
    for (size_t g = 0; g < fleet->group_count; g++) {
        const struct group *group = &fleet->groups[g];
        for (size_t m = 0; m < trial->config->metric_count; m++) {
            const struct metric_column *column = column_of(trial, m);
            bool any = trial->config->metrics[m].worse == JUDGE_ANY;
            if (!yardstick_of(trial->judge, group, m)->usable ||
                (any && !most_are_equal(trial, group, m)))
                continue;
            for (size_t i = 0; i < group->count; i++)
                score_gpu(trial, group, m, column, group->members[i]);
        }
        for (size_t i = 0; i < group->count; i++)
            accuse(trial, group->members[i]);
    }
}

/* The score pooled with all figures of the same memory, or with the worst other one, whichever is
 * worse. A slow memory affects several of its figures, but not always all. */
static double pooled_score(const struct trial *trial, uint32_t gpu, size_t metric)
{
    double own = trial->judge->scores[at(trial, gpu, metric)], sum = own, worst = -INFINITY;
    size_t count = 1;
    for (size_t m = 0; m < trial->config->metric_count; m++) {
        double score = trial->judge->scores[at(trial, gpu, m)];
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

static bool is_watched(const struct trial *trial, uint32_t gpu, size_t metric)
{
    double score = trial->judge->scores[at(trial, gpu, metric)];
    double worse = trial->judge->worse[at(trial, gpu, metric)];
    const struct judge_metric *rule = &trial->config->metrics[metric];
    if (!(worse >= rule->floor) || worse == 0)
        return false;
    double bound = judge_level(trial->judge, gpu, metric)->watch_bound;
    return rule->worse == JUDGE_ANY || score >= bound ||
           (score >= WATCH_OWN && pooled_score(trial, gpu, metric) >= bound);
}

struct finding *finding_of_score(struct judge *judge, uint32_t gpu, size_t metric)
{
    const struct judge_metric *rule = &judge->basis.config->metrics[metric];
    const struct fleet *fleet = &judge->fleet;
    const struct yardstick *y = yardstick_of(judge, &fleet->groups[fleet->gpus[gpu].group], metric);
    const struct cell *cell = fleet_number(judge->columns[metric], gpu, true);
    struct finding *finding = findings_add(judge, gpu, rule->metric, BASIS_FLEET);
    if (!finding)
        return NULL;
    const struct population_level *level = judge_level(judge, gpu, metric);
    double factor = judge_common_factor(judge, y, gpu, metric), value = cell->value * factor;
    finding->rule = (int32_t)metric;
    finding->unit = cell->unit;
    finding->value = cell->value;
    finding->expected = y->center / factor; /* at its clock, in its population */
    finding->deviation = value / y->center - 1;
    if (rule->worse != JUDGE_ANY)
        finding->score =
            yardstick_score(y, value, cell->spread * level->factor, judge->clock_ratio[gpu], level);
    return finding;
}

/* A condition of the GPU may explain what it is accused of. What else is a little worse by chance
 * would not be explained by it. */
static bool has_condition(const struct judge *judge, uint32_t gpu)
{
    if (fabs(judge->clock_ratio[gpu] - 1) >= CLOCK_AWAY || judge->other_hardware[gpu])
        return true;
    for (int c = 0; c < JUDGE_CONDITION_COUNT; c++)
        if (c != JUDGE_SM_CLOCK &&
            judge_number_lower(judge_condition_ratio(judge, (enum judge_condition)c, gpu), 1))
            return true;
    return false;
}

static bool joins_others(const struct trial *trial, uint32_t gpu, size_t metric)
{
    size_t accused = 0;
    for (size_t m = 0; m < trial->config->metric_count; m++)
        accused += trial->accused[at(trial, gpu, m)];
    double worse = trial->judge->worse[at(trial, gpu, metric)];
    const struct judge_metric *rule = &trial->config->metrics[metric];
    return accused > 1 && worse >= rule->floor && worse >= rule->accuse &&
           trial->judge->scores[at(trial, gpu, metric)] >= JOIN_SCORE &&
           !has_condition(trial->judge, gpu) && !needs_second(trial, gpu, metric) &&
           fleet_number(column_of(trial, metric), gpu, false);
}

static int report_all(struct trial *trial)
{
    const struct fleet *fleet = &trial->judge->fleet;
    for (size_t i = 0; i < fleet->count; i++) {
        uint32_t gpu = fleet->order[i];
        for (size_t m = 0; m < trial->config->metric_count; m++) {
            bool accused = trial->accused[at(trial, gpu, m)] || joins_others(trial, gpu, m);
            if (!accused && !is_watched(trial, gpu, m))
                continue;
            struct finding *finding = finding_of_score(trial->judge, gpu, m);
            if (!finding)
                return -ENOMEM;
            finding->accused = accused;
            finding->joined = accused && !trial->accused[at(trial, gpu, m)];
        }
    }
    return 0;
}

static void find_memories(struct trial *trial)
{
    const struct judge_metric *metrics = trial->config->metrics;
    for (size_t m = 0; m < trial->config->metric_count; m++) {
        size_t first = 0;
        while (!measure_same_memory(metrics[first].metric, metrics[m].metric))
            first++;
        trial->memories[m] = first;
    }
}

int judge_scores(struct judge *judge)
{
    const struct fleet *fleet = &judge->fleet;
    size_t metrics = judge->basis.config->metric_count, slots = fleet->count * metrics;
    struct trial trial = {.judge = judge,
                          .config = judge->basis.config,
                          .accused = mem_array(slots, sizeof *trial.accused),
                          .left_out = mem_array(slots, sizeof *trial.left_out),
                          .memories = mem_array(metrics, sizeof *trial.memories)};
    judge->yardsticks = mem_array(fleet->group_count * metrics, sizeof *judge->yardsticks);
    judge->levels = mem_array(fleet->population_count * metrics, sizeof *judge->levels);
    judge->worse = mem_array(slots, sizeof *judge->worse);
    judge->scores = mem_array(slots, sizeof *judge->scores);
    int rc = -ENOMEM;
    if (work_init(&trial.work, fleet->count) || !trial.accused || !trial.left_out ||
        !trial.memories || !judge->yardsticks || !judge->levels || !judge->worse || !judge->scores)
        goto out;
    find_memories(&trial);
    for (int round = 0; round < ROUNDS; round++) {
        if (make_yardsticks(&trial))
            goto out;
        score_all(&trial);
    }
    rc = report_all(&trial);
out:
    work_fini(&trial.work);
    free(trial.accused);
    free(trial.left_out);
    free(trial.memories);
    return rc;
}
