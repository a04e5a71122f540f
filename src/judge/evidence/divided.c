/* Divided models: groups of GPUs that only a figure or a setting separates. The judge cannot tell
 * whether the worse group is bad or has other hardware that the driver does not report. So nobody
 * is accused, and the worse group is watched. */

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "judge/evidence/stages.h"
#include "judge/fact_text.h"
#include "judge/model.h"
#include "judge/robust.h"
#include "judge/verdict.h"

/* Each group has at least this share of the GPUs. See SMALL_SHARE for smaller groups. */
static const double GROUP_SHARE = 0.25;

/* Groups whose medians differ by less than NEAR have at least NEAR_MIN GPUs each: the scale of
 * fewer is too uncertain. */
static const double NEAR = 0.03;
enum { NEAR_MIN = 8 };

/* GPUs of a smaller group are outliers, unless they are at least SMALL_MIN and SMALL_SHARE of their
 * population, on SMALL_NODES nodes or more, and lose less than boards and chips of one model may
 * differ. */
static const double SMALL_SHARE = 0.05, SMALL_SCORE = 3;
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

/* The factor that makes values of a model comparable: at the usual SM clock, and as in the largest
 * population. The share that follows the clock is the stated one: in a divided model, that of the
 * fleet may be anything. */
static double divided_factor(const struct judge *judge, uint32_t gpu, size_t metric)
{
    const struct judge_metric *rule = &judge->basis.config->metrics[metric];
    const struct usual_figure *usual = model_figure(judge, gpu, metric);
    double as_largest = isfinite(usual->center) && usual->center != 0 && !usual->other_kind
                            ? usual->largest / usual->center
                            : 1;
    return judge_clock_factor(judge, rule->follows[JUDGE_SM_CLOCK], gpu) * as_largest;
}

/* Whether the evidence so far accuses the GPU by this metric. */
static bool gpu_is_suspect(const struct judge *judge, uint32_t gpu, size_t metric)
{
    const struct issue *issue = issue_last(judge, gpu);
    while (issue && !(issue_finding(judge, issue)->rule == (int32_t)metric &&
                      certainty_by_evidence(issue) == CERTAINTY_SURE))
        issue = issue_previous(judge, issue);
    return issue != NULL;
}

static void cut_gather(const struct judge *judge, const struct group *group, size_t metric,
                       struct cut *cut)
{
    cut->n = 0;
    for (size_t i = 0; i < group->count; i++) {
        uint32_t gpu = group->members[i];
        const struct cell *cell = fleet_number(judge->columns[metric], gpu, false);
        if (!cell || !fleet_judged(&judge->fleet.gpus[gpu]))
            continue;
        cut->gpus[cut->n] = gpu;
        cut->values[cut->n++] = cell->value * divided_factor(judge, gpu, metric);
    }
}

static void cut_divide(struct cut *cut, double at)
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
static bool cut_find_groups(struct cut *cut)
{
    enum { ROUNDS = 4 };
    for (size_t i = 0; i < cut->n; i++)
        cut->scratch[i] = cut->values[i];
    double middle = robust_quantile(cut->scratch, cut->n, GROUP_SHARE) / 2;
    middle += robust_quantile(cut->scratch, cut->n, 1 - GROUP_SHARE) / 2;
    for (int round = 0; round < ROUNDS; round++) {
        cut_divide(cut, middle);
        middle = (cut->center[0] + cut->center[1]) / 2;
    }
    size_t smaller = cut->below < cut->n - cut->below ? cut->below : cut->n - cut->below;
    bool near = cut->center[1] - cut->center[0] < NEAR * fabs(cut->center[1]);
    return smaller >= (near ? NEAR_MIN : DIVIDED_MIN) &&
           (double)smaller >= GROUP_SHARE * (double)cut->n;
}

static bool cut_is_wide(struct cut *cut, const struct judge_metric *rule)
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

/* One GPU of a group. usual: the figure of the other GPUs, as in the largest population at the
 * usual SM clock. */
static void divided_report_gpu(struct judge *judge, uint32_t gpu, size_t metric, double usual)
{
    const char *name = judge->basis.config->metrics[metric].metric;
    const struct issue *issue = issue_find(judge, gpu, name, BASIS_FLEET);
    struct finding finding = issue ? finding_about(judge, issue, EVIDENCE_GROUP)
                                   : judge_score_finding(judge, gpu, metric, EVIDENCE_GROUP);
    finding_compare(&finding, finding.value, usual / divided_factor(judge, gpu, metric));
    findings_add(judge, finding,
                 str_copy("cause unknown: one of a group of GPUs that only this figure separates "
                          "from the others"));
}

/* The two groups are two sets of boards: at most every tenth GPU is in the other group than most of
 * its population. Then the boards explain them. */
static bool cut_is_by_board(const struct judge *judge, const struct group *model,
                            const struct cut *cut)
{
    size_t(*sides)[2] = mem_array(model->populations, sizeof *sides), mixed = 0;
    for (size_t i = 0; i < cut->n; i++) {
        size_t number = judge->fleet.gpus[cut->gpus[i]].population - model->populations_at;
        sides[number][cut->values[i] >= (cut->center[0] + cut->center[1]) / 2]++;
    }
    for (size_t i = 0; i < model->populations; i++)
        mixed += sides[i][0] < sides[i][1] ? sides[i][0] : sides[i][1];
    free(sides);
    return model->populations > 1 && 10 * mixed <= cut->n;
}

static void find_large_groups(struct judge *judge, const struct group *model, size_t metric,
                              struct cut *cut)
{
    const struct judge_metric *rule = &judge->basis.config->metrics[metric];
    /* Two groups make the scale large. So a small scale saves the search for them. */
    if (model_figure(judge, model->members[0], metric)->sigma < rule->accuse / 4)
        return;
    cut_gather(judge, model, metric, cut);
    if (!cut_find_groups(cut) || !cut_is_wide(cut, rule) || cut_is_by_board(judge, model, cut))
        return;
    bool worse_above = rule->worse == JUDGE_HIGHER;
    double middle = (cut->center[0] + cut->center[1]) / 2, usual = cut->center[!worse_above];
    double gap = (cut->center[1] - cut->center[0]) / fabs(usual);
    for (size_t i = 0; i < cut->n; i++) {
        /* Who loses much more than the group, or more than boards and chips differ, is an outlier.
         */
        bool alike =
            gap < model_constants[BUILT_APART] && fabs(cut->values[i] / usual - 1) <= gap / ALIKE;
        if ((cut->values[i] >= middle) == worse_above &&
            (alike || !gpu_is_suspect(judge, cut->gpus[i], metric)))
            divided_report_gpu(judge, cut->gpus[i], metric, usual);
    }
}

/* A condition of the GPU could explain its loss. */
static bool loss_may_be_explained(const struct judge *judge, uint32_t gpu, size_t metric)
{
    const struct judge_metric *rule = &judge->basis.config->metrics[metric];
    for (int c = 0; c < JUDGE_CONDITION_COUNT; c++)
        if (c != JUDGE_SM_CLOCK && rule->follows[c] > 0 &&
            judge_number_lower(judge_condition_ratio(judge, (enum judge_condition)c, gpu), 1))
            return true;
    return false;
}

/* GPUs that would be accused, and those with losses near theirs that are unusual too. */
static void find_small_group(struct judge *judge, const struct group *population, size_t metric,
                             struct cut *cut)
{
    const struct fleet *fleet = &judge->fleet;
    size_t all = 0, suspects = 0, nodes = 0;
    for (size_t i = 0; i < population->count; i++) {
        uint32_t gpu = population->members[i];
        all += fleet_number(judge->columns[metric], gpu, false) && fleet_judged(&fleet->gpus[gpu]);
        if (gpu_is_suspect(judge, gpu, metric) && !loss_may_be_explained(judge, gpu, metric))
            cut->scratch[suspects++] = judge->worse[judge_slot(judge, gpu, metric)];
    }
    double least = fmax(SMALL_MIN, SMALL_SHARE * (double)all);
    double median = robust_median(cut->scratch, suspects);
    if (!(median < model_constants[BUILT_APART]))
        return;
    cut->n = 0;
    for (size_t i = 0; i < population->count; i++) { /* sorted by node */
        uint32_t gpu = population->members[i];
        double loss = judge->worse[judge_slot(judge, gpu, metric)];
        if (!(loss >= ALIKE * median && loss <= median / ALIKE) ||
            !(judge->scores[judge_slot(judge, gpu, metric)] >= SMALL_SCORE) ||
            loss_may_be_explained(judge, gpu, metric) ||
            !fleet_number(judge->columns[metric], gpu, false))
            continue;
        nodes += !cut->n || fleet->gpus[gpu].node != fleet->gpus[cut->gpus[cut->n - 1]].node;
        cut->gpus[cut->n++] = gpu;
    }
    for (size_t i = 0; i < cut->n && (double)cut->n >= least && nodes >= SMALL_NODES; i++)
        divided_report_gpu(judge, cut->gpus[i], metric,
                           model_figure(judge, cut->gpus[i], metric)->largest);
}

void stage_groups(struct judge *judge)
{
    const struct judge_config *config = judge->basis.config;
    const struct fleet *fleet = &judge->fleet;
    struct cut cut = {.gpus = mem_array(fleet->count, sizeof *cut.gpus),
                      .values = mem_array(fleet->count, sizeof *cut.values),
                      .low = mem_array(fleet->count, sizeof *cut.low),
                      .high = mem_array(fleet->count, sizeof *cut.high),
                      .scratch = mem_array(fleet->count, sizeof *cut.scratch)};
    for (size_t g = 0; g < fleet->group_count; g++) {
        const struct group *model = &fleet->groups[g];
        for (size_t m = 0; m < config->metric_count; m++) {
            if (!judge->columns[m] || model_figure(judge, model->members[0], m)->all < PEERS_MIN ||
                config->metrics[m].worse == JUDGE_ANY)
                continue;
            find_large_groups(judge, model, m, &cut);
            for (size_t i = 0; i < model->populations; i++)
                find_small_group(judge, &fleet->populations[model->populations_at + i], m, &cut);
        }
    }
    free(cut.gpus);
    free(cut.values);
    free(cut.low);
    free(cut.high);
    free(cut.scratch);
}

bool judge_is_divided(const struct judge *judge, uint32_t gpu, size_t metric)
{
    const struct issue *issue = issue_last(judge, gpu);
    while (issue && !(issue_has(issue, EVIDENCE_SET(GROUP)) &&
                      issue_finding(judge, issue)->rule == (int32_t)metric))
        issue = issue_previous(judge, issue);
    return issue != NULL;
}

/* Nodes are named only if they are at most this many. */
enum { NODES_MAX = 4 };

/* ", all on n01, n02": the nodes of the GPUs, if they are few. */
static void divided_put_nodes(struct strbuf *out, const struct fleet *fleet, const uint32_t *gpus,
                              size_t n)
{
    uint32_t nodes[NODES_MAX];
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t node = fleet->gpus[gpus[i]].node; /* gpus is sorted by node */
        if (!node || (count && nodes[count - 1] == node))
            continue;
        if (count == NODES_MAX)
            return;
        nodes[count++] = node;
    }
    for (size_t i = 0; i < count; i++)
        strbuf_printf(out, "%s%s", i ? ", " : ", all on ", fleet_text(fleet, nodes[i]));
}

/* Adds one entry that lists these GPUs. Takes over the text. */
static void divided_add_entry(const struct fleet *fleet, char *text, const uint32_t *gpus, size_t n,
                              struct inventory *inventory)
{
    struct inventory_node *entry = verdict_add_remark(inventory, text);
    for (size_t i = 0; i < n; i++)
        verdict_add_place_gpu(entry, fleet_text(fleet, fleet->gpus[gpus[i]].uuid));
}

bool judge_report_divided_figure(const struct judge *judge, const struct group *model,
                                 size_t metric, struct inventory *inventory)
{
    const struct fleet *fleet = &judge->fleet;
    size_t first = 0, worse_count = 0, other_count = 0;
    while (first < model->count && !judge_is_divided(judge, model->members[first], metric))
        first++;
    if (first == model->count)
        return false;
    uint32_t *worse = mem_array(model->count, sizeof *worse);
    double *worse_values = mem_array(model->count, sizeof *worse_values);
    double *other_values = mem_array(model->count, sizeof *other_values);
    for (size_t i = 0; i < model->count; i++) {
        uint32_t gpu = model->members[i];
        const struct cell *cell = fleet_number(judge->columns[metric], gpu, false);
        if (!cell || !fleet_judged(&fleet->gpus[gpu]))
            continue;
        double value = cell->value * divided_factor(judge, gpu, metric);
        if (judge_is_divided(judge, gpu, metric)) {
            worse[worse_count] = gpu;
            worse_values[worse_count++] = value;
        } else
            other_values[other_count++] = value;
    }
    const struct cell *cell = fleet_number(judge->columns[metric], worse[0], false);
    const char *unit = cell->unit ? fleet_text(fleet, cell->unit) : "";
    double own = robust_median(worse_values, worse_count);
    double usual = robust_median(other_values, other_count);
    struct strbuf text = {0};
    strbuf_printf(&text, "%zu of %zu GPUs of %s: %s about ", worse_count, worse_count + other_count,
                  model->id, judge->basis.config->metrics[metric].metric);
    fact_text_put_number(&text, own, unit);
    strbuf_puts(&text, ", the others ");
    fact_text_put_number(&text, usual, unit);
    strbuf_printf(&text, " (%+.1f %%)", 100 * (own / usual - 1));
    divided_put_nodes(&text, fleet, worse, worse_count);
    strbuf_puts(&text, ": the model is divided, cause unknown: nobody is flagged");
    divided_add_entry(fleet, text.data, worse, worse_count, inventory);
    free(worse);
    free(worse_values);
    free(other_values);
    return true;
}

void judge_report_divided_fact(const struct judge *judge, const struct group *group,
                               enum fact_set set, const struct fact_column *column,
                               const uint32_t *gpus, size_t count, struct inventory *inventory)
{
    const struct fleet *fleet = &judge->fleet;
    const struct usual *usual = fleet_usual(fleet, group, set, column);
    const struct fact most = fleet_fact(fleet, column, usual->code);
    const struct fact other = fleet_fact(fleet, column, column->codes[gpus[0]]);
    struct strbuf text = {0};
    bool alike = true;
    for (size_t i = 0; i < count; i++)
        alike = alike && column->codes[gpus[i]] == column->codes[gpus[0]];
    fact_text_put_key(&text, most.key);
    strbuf_printf(&text, " of %s: ", group->id);
    fact_text_put_value(&text, &most);
    strbuf_printf(&text, " on %u of %u GPUs, ", usual->votes, usual->known);
    fact_text_put_value(&text, &other);
    strbuf_printf(&text, "%s on %zu", alike ? "" : " or another", count);
    divided_put_nodes(&text, fleet, gpus, count);
    strbuf_puts(&text, ": the model is divided, nobody is flagged");
    divided_add_entry(fleet, text.data, gpus, count, inventory);
}
