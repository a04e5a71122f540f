/* Groups of GPUs that only a figure separates. The judge cannot tell whether the worse group is bad
 * or has other hardware that the driver does not report. So nobody is accused, and the worse group
 * is watched. */
#include "judge/figure_groups.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "judge/divided_models.h"
#include "judge/yardstick.h"

/* Each group has at least this share of the GPUs. See SMALL_SHARE for smaller groups. */
static const double GROUP_SHARE = 0.25;

/* Groups whose medians differ by less than NEAR have at least NEAR_MIN GPUs each: the scale of
 * fewer is too uncertain. */
static const double NEAR = 0.03;
enum { NEAR_MIN = 8 };

/* GPUs of a smaller group are outliers, unless they are at least SMALL_MIN and SMALL_SHARE of their
 * population, on SMALL_NODES nodes or more, and lose less than boards and chips of one model may
 * differ. */
static const double SMALL_SHARE = 0.05, SMALL_LOSS = 0.045;
static const double ALIKE = 0.65; /* smallest loss / median loss, and median / largest */
enum { SMALL_MIN = 5, SMALL_NODES = 3 };

/* The medians of the groups differ by at least APART + APART_FEW / n standard deviations of the
 * wider group, and at most the share BETWEEN of the GPUs lies in the middle third between the
 * medians. */
static const double APART = 6, APART_FEW = 24, BETWEEN = 0.05;

/* The figures of a model at equal clock, cut at one value into two groups. */
struct cut {
    size_t n, below; /* GPUs; GPUs of the lower group */
    uint32_t *gpus;
    double *values, *low, *high, *scratch;
    double center[2];
};

static int cut_init(struct cut *cut, size_t count)
{
    cut->gpus = mem_array(count, sizeof *cut->gpus);
    cut->values = mem_array(count, sizeof *cut->values);
    cut->low = mem_array(count, sizeof *cut->low);
    cut->high = mem_array(count, sizeof *cut->high);
    cut->scratch = mem_array(count, sizeof *cut->scratch);
    return cut->gpus && cut->values && cut->low && cut->high && cut->scratch ? 0 : -ENOMEM;
}

static void cut_fini(struct cut *cut)
{
    free(cut->gpus);
    free(cut->values);
    free(cut->low);
    free(cut->high);
    free(cut->scratch);
}

/* The share that follows the clock is the stated one: in a divided model, that of the fleet may be
 * anything. */
double figure_groups_factor(const struct judge *judge, uint32_t gpu, size_t metric)
{
    const struct judge_metric *rule = &judge->basis.config->metrics[metric];
    const struct yardstick stated = {.clock_share = rule->follows[JUDGE_SM_CLOCK]};
    return judge_common_factor(judge, &stated, gpu, metric);
}

static void gather(const struct judge *judge, const struct group *group, size_t metric,
                   struct cut *cut)
{
    for (size_t i = 0; i < group->count; i++) {
        uint32_t gpu = group->members[i];
        const struct cell *cell = fleet_number(judge->columns[metric], gpu, false);
        if (!cell || !fleet_judged(&judge->fleet.gpus[gpu]) || findings_accuse(judge, gpu, metric))
            continue;
        cut->gpus[cut->n] = gpu;
        cut->values[cut->n++] = cell->value * figure_groups_factor(judge, gpu, metric);
    }
}

static void divide(struct cut *cut, double at)
{
    size_t above = 0;
    cut->below = 0;
    for (size_t i = 0; i < cut->n; i++) {
        if (cut->values[i] < at)
            cut->low[cut->below++] = cut->values[i];
        else
            cut->high[above++] = cut->values[i];
    }
    cut->center[0] = robust_median(cut->low, cut->below);
    cut->center[1] = robust_median(cut->high, above);
}

/* Finds two centres, each the median of the values that are nearer to it than to the other. */
static bool find_groups(struct cut *cut)
{
    enum { ROUNDS = 4 };
    for (size_t i = 0; i < cut->n; i++)
        cut->scratch[i] = cut->values[i];
    double middle = robust_quantile(cut->scratch, cut->n, GROUP_SHARE) / 2;
    middle += robust_quantile(cut->scratch, cut->n, 1 - GROUP_SHARE) / 2;
    for (int round = 0; round < ROUNDS; round++) {
        divide(cut, middle);
        middle = (cut->center[0] + cut->center[1]) / 2;
    }
    size_t smaller = cut->below < cut->n - cut->below ? cut->below : cut->n - cut->below;
    bool near = cut->center[1] - cut->center[0] < NEAR * fabs(cut->center[1]);
    return smaller >= (near ? NEAR_MIN : DIVIDED_MIN) &&
           (double)smaller >= GROUP_SHARE * (double)cut->n;
}

static bool are_apart(struct cut *cut, const struct judge_metric *rule)
{
    double gap = cut->center[1] - cut->center[0];
    double low_sigma = robust_fit(cut->low, cut->below, cut->scratch).sigma;
    double sigma = fmax(low_sigma, robust_fit(cut->high, cut->n - cut->below, cut->scratch).sigma);
    size_t between = 0;
    for (size_t i = 0; i < cut->n; i++)
        between += fabs(cut->values[i] - cut->center[0] - gap / 2) < gap / 6;
    return gap >= fmax(rule->accuse, rule->floor) * fabs(cut->center[1]) &&
           gap >= (APART + APART_FEW / (double)cut->n) * sigma &&
           (double)between <= BETWEEN * (double)cut->n;
}

/* Watches a GPU as one of a group. usual: the figure of the other GPUs, as in the largest
 * population at the usual SM clock. */
static int watch(struct judge *judge, uint32_t gpu, size_t metric, double usual)
{
    const char *name = judge->basis.config->metrics[metric].metric;
    struct finding *finding = finding_of(judge, gpu, name, BASIS_FLEET);
    if (!finding)
        finding = finding_of_score(judge, gpu, metric);
    if (!finding)
        return -ENOMEM;
    finding->accused = false;
    finding->in_group = true;
    finding->expected = usual / figure_groups_factor(judge, gpu, metric);
    finding->deviation = finding->value / finding->expected - 1;
    free(finding->cause);
    finding->cause = str_copy("unexplained: one of a group of GPUs that only this figure separates "
                              "from the others");
    return finding->cause ? 0 : -ENOMEM;
}

/* Watches the worse of two groups. */
static int watch_worse_group(struct judge *judge, size_t metric, const struct cut *cut)
{
    bool worse_above = judge->basis.config->metrics[metric].worse == JUDGE_HIGHER;
    double middle = (cut->center[0] + cut->center[1]) / 2;
    for (size_t i = 0; i < cut->n; i++)
        if ((cut->values[i] >= middle) == worse_above &&
            watch(judge, cut->gpus[i], metric, cut->center[!worse_above]))
            return -ENOMEM;
    return 0;
}

/* The two groups are two sets of boards: at most every tenth GPU is in the other group than most of
 * its population. Then the boards explain them. */
static int are_boards(const struct judge *judge, const struct group *model, const struct cut *cut,
                      bool *out_boards)
{
    size_t(*sides)[2] = mem_array(model->populations, sizeof *sides), mixed = 0;
    if (!sides)
        return -ENOMEM;
    for (size_t i = 0; i < cut->n; i++) {
        size_t number = judge->fleet.gpus[cut->gpus[i]].population - model->populations_at;
        sides[number][cut->values[i] >= (cut->center[0] + cut->center[1]) / 2]++;
    }
    for (size_t i = 0; i < model->populations; i++)
        mixed += sides[i][0] < sides[i][1] ? sides[i][0] : sides[i][1];
    free(sides);
    *out_boards = model->populations > 1 && 10 * mixed <= cut->n;
    return 0;
}

static int find_large_groups(struct judge *judge, const struct group *group, size_t metric,
                             struct cut *cut)
{
    const struct judge_metric *rule = &judge->basis.config->metrics[metric];
    const struct yardstick *y = yardstick_of(judge, group, metric);
    /* Two groups make the scale large. So a small scale saves the search for them. */
    if (y->sigma < rule->accuse * fabs(y->center) / 4)
        return 0;
    cut->n = 0;
    gather(judge, group, metric, cut);
    if (!find_groups(cut) || !are_apart(cut, rule))
        return 0;
    bool boards;
    if (are_boards(judge, group, cut, &boards))
        return -ENOMEM;
    return boards ? 0 : watch_worse_group(judge, metric, cut);
}

/* Accused of a loss that no condition of the GPU could explain. */
static bool is_unexplained(const struct judge *judge, uint32_t gpu, size_t metric)
{
    const struct judge_metric *rule = &judge->basis.config->metrics[metric];
    for (int c = 0; c < JUDGE_CONDITION_COUNT; c++)
        if (c != JUDGE_SM_CLOCK && rule->follows[c] > 0 &&
            judge_number_lower(judge_condition_ratio(judge, (enum judge_condition)c, gpu), 1))
            return false;
    return findings_accuse(judge, gpu, metric);
}

/* Keeps the GPUs whose loss is near the median loss. Returns the median. */
static double keep_alike(const struct judge *judge, size_t metric, struct cut *cut)
{
    size_t metrics = judge->basis.config->metric_count, kept = 0;
    for (size_t i = 0; i < cut->n; i++)
        cut->values[i] = cut->scratch[i] = judge->worse[cut->gpus[i] * metrics + metric];
    double median = robust_median(cut->scratch, cut->n);
    for (size_t i = 0; i < cut->n; i++)
        if (cut->values[i] >= ALIKE * median && cut->values[i] <= median / ALIKE)
            cut->gpus[kept++] = cut->gpus[i];
    cut->n = kept;
    return median;
}

static size_t count_nodes(const struct fleet *fleet, const struct cut *cut)
{
    size_t count = 0;
    for (size_t i = 0; i < cut->n; i++) /* sorted by node */
        count += !i || fleet->gpus[cut->gpus[i]].node != fleet->gpus[cut->gpus[i - 1]].node;
    return count;
}

static int find_small_group(struct judge *judge, const struct group *population, size_t metric,
                            struct cut *cut)
{
    const struct fleet *fleet = &judge->fleet;
    size_t all = 0;
    cut->n = 0;
    for (size_t i = 0; i < population->count; i++) {
        uint32_t gpu = population->members[i];
        all += fleet_number(judge->columns[metric], gpu, false) && fleet_judged(&fleet->gpus[gpu]);
        if (is_unexplained(judge, gpu, metric))
            cut->gpus[cut->n++] = gpu;
    }
    double least = fmax(SMALL_MIN, SMALL_SHARE * (double)all);
    if ((double)cut->n < least)
        return 0;
    double loss = keep_alike(judge, metric, cut);
    if (!(loss < SMALL_LOSS) || (double)cut->n < least || count_nodes(fleet, cut) < SMALL_NODES)
        return 0;
    const struct group *model = &fleet->groups[fleet->gpus[cut->gpus[0]].group];
    for (size_t i = 0; i < cut->n; i++)
        if (watch(judge, cut->gpus[i], metric, yardstick_of(judge, model, metric)->center))
            return -ENOMEM;
    return 0;
}

static int find_in_model(struct judge *judge, const struct group *model, struct cut *cut)
{
    const struct judge_config *config = judge->basis.config;
    for (size_t m = 0; m < config->metric_count; m++) {
        if (!yardstick_of(judge, model, m)->usable || config->metrics[m].worse == JUDGE_ANY)
            continue;
        if (find_large_groups(judge, model, m, cut))
            return -ENOMEM;
        for (size_t i = 0; i < model->populations; i++)
            if (find_small_group(judge, &judge->fleet.populations[model->populations_at + i], m,
                                 cut))
                return -ENOMEM;
    }
    return 0;
}

int judge_groups(struct judge *judge)
{
    struct cut cut = {0};
    int rc = cut_init(&cut, judge->fleet.count);
    for (size_t g = 0; g < judge->fleet.group_count && !rc; g++)
        rc = find_in_model(judge, &judge->fleet.groups[g], &cut);
    cut_fini(&cut);
    return rc;
}

bool figure_groups_has(const struct judge *judge, uint32_t gpu, size_t metric)
{
    const struct findings *findings = &judge->findings;
    for (uint32_t at = findings->last[gpu]; at; at = findings->items[at - 1].previous)
        if (findings->items[at - 1].in_group && findings->items[at - 1].rule == (int32_t)metric)
            return true;
    return false;
}
