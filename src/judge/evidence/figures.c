/* Figures against what is usual: one decision for each GPU and cause, from all figures that the
 * cause would change. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "judge/evidence/stages.h"
#include "judge/model.h"
#include "judge/verdict.h"
#include "judge/world.h"

/* The second round leaves the GPUs of which the first one found a figure beyond its bound out of
 * what is usual. */
enum { ROUNDS = 2 };

/* In a pair, a partner counts as this score at most. */
static const double POOLED_MAX = 10;

/* What is a little worse joins no other figures if the GPU's clock is further away than this share.
 */
static const double CLOCK_AWAY = 0.05;

/* Figures that one fault of a GPU changes have one cause. */
static const char *const causes[] = {"main.",           "l2.", "host.", "clock.", "load.",
                                     "compute.slowest", ""};
enum { CAUSE_SMS = COUNT_OF(causes) - 1, CAUSE_FIGURES_MAX = 16 };

struct trial {
    struct judge *judge;
    const struct judge_config *config;
    bool *beyond;   /* [judge_slot]: beyond its bound */
    bool *left_out; /* per GPU: one of its figures is */
    size_t *cause;  /* per metric */
    /* Bounds of the scores of single figures and of pairs, by the number of figures of a cause that
     * a GPU has. */
    struct bounds {
        double single, pair;
    } accuse[CAUSE_FIGURES_MAX + 1], watch[CAUSE_FIGURES_MAX + 1];
};

static size_t trial_slot(const struct trial *trial, uint32_t gpu, size_t metric)
{
    return judge_slot(trial->judge, gpu, metric);
}

/* Compared with others by its score. */
static bool trial_has(const struct trial *trial, uint32_t gpu, size_t metric)
{
    return !isnan(trial->judge->scores[trial_slot(trial, gpu, metric)]);
}

static size_t cause_figures(const struct trial *trial, uint32_t gpu, size_t cause)
{
    size_t count = 0;
    for (size_t i = 0; i < trial->judge->scored_count; i++)
        count += trial->cause[trial->judge->scored[i]] == cause &&
                 trial_has(trial, gpu, trial->judge->scored[i]);
    return count < CAUSE_FIGURES_MAX ? count : CAUSE_FIGURES_MAX;
}

/* With N decisions about a GPU and a cause, each may be wrong with probability `false_alarms` / N.
 */
static void trial_find_bounds(struct trial *trial)
{
    const struct fleet *fleet = &trial->judge->fleet;
    double gpus = 0, decisions = 0;
    for (uint32_t i = 0; i < fleet->count; i++) {
        bool seen[COUNT_OF(causes)] = {false};
        gpus += fleet_judged(&fleet->gpus[i]);
        for (size_t k = 0; k < trial->judge->scored_count; k++)
            seen[trial->cause[trial->judge->scored[k]]] |=
                trial_has(trial, i, trial->judge->scored[k]);
        for (size_t c = 0; c < COUNT_OF(causes); c++)
            decisions += seen[c];
    }
    double accuse = trial->config->false_alarms * fmin(gpus / model_constants[FULL_SURVEY], 1);
    double watch = model_constants[WATCHED_SHARE] * gpus;
    for (size_t k = 1; k <= CAUSE_FIGURES_MAX; k++) {
        double pairs = k > 1 ? (double)(k * (k - 1) / 2) : 1, each = fmax(decisions, 1);
        trial->accuse[k] = (struct bounds){model_normal_bound(accuse / each / (double)k),
                                           model_normal_bound(accuse / each / pairs)};
        trial->watch[k] = (struct bounds){model_normal_bound(watch / each / (double)k),
                                          model_normal_bound(watch / each / pairs)};
    }
    trial->judge->bound = trial->accuse[CAUSE_FIGURES_MAX].single;
}

/* The largest score of another figure of the same cause that is worse by its floor; at most
 * `most`. The same assumption about the scatter is behind figures of few GPUs: they confirm
 * nothing. */
static double partner_score(const struct trial *trial, uint32_t gpu, size_t metric, double most)
{
    double found = -INFINITY;
    for (size_t i = 0; i < trial->judge->scored_count; i++) {
        size_t m = trial->judge->scored[i];
        if (m != metric && trial->cause[m] == trial->cause[metric] && trial_has(trial, gpu, m) &&
            trial->judge->sources[trial_slot(trial, gpu, m)] & SOURCE_CERTAIN &&
            trial->judge->worse[trial_slot(trial, gpu, m)] >= trial->config->metrics[m].floor)
            found = fmax(found, fmin(trial->judge->scores[trial_slot(trial, gpu, m)], most));
    }
    return found;
}

/* The score of two figures together, whose healthy deviations may be correlated. */
static double pair_score(double a, double b)
{
    return (a + b) / sqrt(2 + 2 * model_constants[CORRELATION]);
}

/* The host takes part in a copy. A slow link is slow in both directions. */
static bool figure_needs_second(const struct trial *trial, uint32_t gpu, size_t metric)
{
    bool slower_link = judge_number_lower(judge_condition_ratio(trial->judge, JUDGE_PCIE, gpu), 1);
    return strncmp(trial->config->metrics[metric].metric, "host.", 5) == 0 && !slower_link;
}

/* GPUs elsewhere alone accuse nobody of a loss by which boards, chips and sites may differ, nor of
 * what the host or the cooling takes part in. */
static bool source_may_accuse(const struct trial *trial, uint32_t gpu, size_t metric)
{
    const char *name = trial->config->metrics[metric].metric;
    size_t slot = trial_slot(trial, gpu, metric);
    uint16_t source = trial->judge->sources[slot];
    if (!(source & SOURCE_CERTAIN) ||
        (source & SOURCE_FEW && trial->judge->worse[slot] < model_constants[FEW_LOSS]))
        return false;
    return !(source & SOURCE_WORLD) ||
           (trial->judge->worse[slot] >= model_constants[BUILT_APART] &&
            strncmp(name, "host.", 5) != 0 && strncmp(name, "clock.", 6) != 0);
}

static bool figure_is_beyond(const struct trial *trial, uint32_t gpu, size_t metric)
{
    const struct judge *judge = trial->judge;
    const struct judge_metric *rule = &trial->config->metrics[metric];
    size_t slot = trial_slot(trial, gpu, metric);
    double score = judge->scores[slot], worse = judge->worse[slot];
    if (!(worse >= rule->floor && worse >= rule->accuse) ||
        !source_may_accuse(trial, gpu, metric) || !fleet_number(judge->columns[metric], gpu, false))
        return false;
    if (rule->worse == JUDGE_ANY)
        return worse > 0;
    if (!(score >= model_constants[JOIN_SCORE]))
        return false;
    const struct bounds *bounds = &trial->accuse[cause_figures(trial, gpu, trial->cause[metric])];
    double partner = partner_score(trial, gpu, metric, INFINITY);
    if (score >= bounds->single &&
        (!figure_needs_second(trial, gpu, metric) || partner >= model_constants[SECOND_SCORE]))
        return true;
    double least = fmin(score, partner);
    return pair_score(least, least) >= bounds->pair;
}

static bool figure_is_notable(const struct trial *trial, uint32_t gpu, size_t metric)
{
    size_t slot = trial_slot(trial, gpu, metric);
    double score = trial->judge->scores[slot], worse = trial->judge->worse[slot];
    const struct judge_metric *rule = &trial->config->metrics[metric];
    if (!(worse >= rule->floor) || worse == 0)
        return false;
    if (rule->worse == JUDGE_ANY)
        return true;
    if (!(score >= model_constants[WATCH_OWN]))
        return false;
    const struct bounds *bounds = &trial->watch[cause_figures(trial, gpu, trial->cause[metric])];
    double partner = partner_score(trial, gpu, metric, POOLED_MAX);
    return score >= bounds->single || pair_score(score, partner) >= bounds->pair;
}

struct finding judge_score_finding(struct judge *judge, uint32_t gpu, size_t metric,
                                   enum evidence evidence)
{
    const struct judge_metric *rule = &judge->basis.config->metrics[metric];
    const struct cell *cell = fleet_number(judge->columns[metric], gpu, true);
    size_t slot = judge_slot(judge, gpu, metric);
    double worse = judge->worse[slot], sign = rule->worse == JUDGE_HIGHER ? 1 : -1;
    struct finding finding =
        finding_new(judge, gpu, rule->metric,
                    judge->sources[slot] & SOURCE_ALONE ? BASIS_WORLD : BASIS_FLEET, evidence);
    finding.rule = (int32_t)metric;
    finding.unit = cell->unit;
    finding.value = cell->value;
    if (rule->worse == JUDGE_ANY) {
        finding_compare(&finding, cell->value, model_figure(judge, gpu, metric)->level);
        return finding;
    }
    finding.deviation = sign * worse;
    /* At its clock, for its kind. */
    finding.expected = worse < 1 || rule->worse == JUDGE_HIGHER
                           ? cell->value / (1 + finding.deviation)
                           : model_figure(judge, gpu, metric)->level;
    finding.score = sign * judge->scores[slot];
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

static bool figure_joins_others(const struct trial *trial, uint32_t gpu, size_t metric)
{
    size_t beyond = 0, slot = trial_slot(trial, gpu, metric);
    for (size_t i = 0; i < trial->judge->scored_count; i++)
        beyond += trial->beyond[trial_slot(trial, gpu, trial->judge->scored[i])];
    double worse = trial->judge->worse[slot];
    const struct judge_metric *rule = &trial->config->metrics[metric];
    return beyond > 1 && worse >= rule->floor && worse >= rule->accuse &&
           source_may_accuse(trial, gpu, metric) &&
           trial->judge->scores[slot] >= model_constants[JOIN_SCORE] &&
           !gpu_has_condition(trial->judge, gpu) && !figure_needs_second(trial, gpu, metric) &&
           fleet_number(trial->judge->columns[metric], gpu, false);
}

/* A GPU's condition over the usual one elsewhere; 1 if either is unknown. */
static double world_ratio(const struct judge *judge, const struct world_peers *source,
                          const char *metric, uint32_t gpu)
{
    const struct world_figure *usual = world_find_figure(source->population, metric);
    double ratio = usual ? fleet_value(&judge->fleet, metric, gpu, true) / usual->median : 1;
    return ratio > 0 && isfinite(ratio) ? ratio : 1;
}

/* Adds a finding against GPUs elsewhere with its cause: without peers, nobody else knows what is
 * usual. A lower SM clock that explains a loss of bandwidth absolves the memory. */
static void report_world(struct judge *judge, struct finding finding, size_t metric)
{
    const struct fleet *fleet = &judge->fleet;
    const struct judge_metric *rule = &judge->basis.config->metrics[metric];
    const struct world_peers source =
        model_world(judge, &fleet->populations[fleet->gpus[finding.gpu].population], rule->metric);
    double worse = judge_worse_share(rule->worse, finding.deviation);
    double sm_clock = world_ratio(judge, &source, "clock.sm", finding.gpu);
    double memory_clock = world_ratio(judge, &source, "clock.memory", finding.gpu);
    const char *remark = source.same_driver ? "" : "; they had another driver";
    char *cause;
    if (judge_number_lower(memory_clock, 1) &&
        judge_loss_fits(worse, rule->follows[JUDGE_MEMORY_CLOCK] * (1 - memory_clock),
                        rule->floor)) {
        double clock = judge_condition_value(fleet, JUDGE_MEMORY_CLOCK, finding.gpu);
        finding.verdict = VERDICT_MISCONFIGURED;
        finding.explained_by = 1u << JUDGE_MEMORY_CLOCK;
        cause = str_format("memory clock %.0f MHz, GPUs elsewhere run at %.0f MHz%s", clock,
                           clock / memory_clock, remark);
    } else if (judge_number_lower(sm_clock, 1) && strstr(rule->metric, ".bandwidth") &&
               judge_loss_fits(worse, 1 - sm_clock, rule->floor)) {
        finding.evidence = EVIDENCE_WITHIN;
        finding.explained_by = 1u << JUDGE_SM_CLOCK;
        cause = str_format("SM clock %.1f %% lower than of GPUs elsewhere%s", 100 * (1 - sm_clock),
                           remark);
    } else
        cause =
            str_format("cause unknown: worse than %u GPU%s elsewhere %s%s", source.figure->n,
                       source.figure->n == 1 ? "" : "s",
                       source.own_kind ? "with its board part" : "with another board part", remark);
    findings_add(judge, finding, cause);
}

static void report_figure(struct judge *judge, uint32_t gpu, size_t metric, enum evidence evidence)
{
    const struct fleet *fleet = &judge->fleet;
    struct finding finding = judge_score_finding(judge, gpu, metric, evidence);
    size_t others = model_figure(judge, gpu, metric)->n;
    uint16_t source = judge->sources[judge_slot(judge, gpu, metric)];
    others -= others > 0;
    if (finding.basis == BASIS_WORLD) {
        report_world(judge, finding, metric);
    } else if (!(source & SOURCE_CERTAIN) && others) {
        const struct group *model = &fleet->groups[fleet->gpus[gpu].group];
        const char *kind = model->populations == 1 ? "model" : "board part";
        finding.evidence = EVIDENCE_FEW_PEERS;
        findings_add(judge, finding,
                     others == 1
                         ? str_format("worse than the other one of its %s; too few to tell who is "
                                      "right",
                                      kind)
                         : str_format("worse than the other %zu of its %s; too few to tell who is "
                                      "right",
                                      others, kind));
    } else
        findings_add(judge, finding, NULL);
}

void stage_figures(struct judge *judge)
{
    const struct fleet *fleet = &judge->fleet;
    const struct judge_config *config = judge->basis.config;
    size_t metrics = config->metric_count, slots = (judge->scored_count + 1) * fleet->count;
    struct trial trial = {.judge = judge,
                          .config = config,
                          .beyond = mem_array(slots, sizeof *trial.beyond),
                          .left_out = mem_array(fleet->count, sizeof *trial.left_out),
                          .cause = mem_array(metrics, sizeof *trial.cause)};
    judge->figures = mem_array(fleet->population_count * metrics, sizeof *judge->figures);
    judge->worse = mem_array(slots, sizeof *judge->worse);
    judge->scores = mem_array(slots, sizeof *judge->scores);
    judge->sources = mem_array(slots, sizeof *judge->sources);
    for (size_t m = 0; m < metrics; m++)
        while (strncmp(config->metrics[m].metric, causes[trial.cause[m]],
                       strlen(causes[trial.cause[m]])) != 0)
            trial.cause[m]++;
    for (int round = 0; round < ROUNDS; round++) {
        model_find(judge, trial.left_out);
        trial_find_bounds(&trial);
        for (uint32_t gpu = 0; gpu < fleet->count; gpu++)
            for (size_t k = 0; k < judge->scored_count; k++) {
                bool beyond = figure_is_beyond(&trial, gpu, judge->scored[k]);
                trial.beyond[trial_slot(&trial, gpu, judge->scored[k])] = beyond;
                trial.left_out[gpu] |= beyond;
            }
    }
    for (size_t i = 0; i < fleet->count; i++)
        for (size_t k = 0; k < judge->scored_count; k++) {
            uint32_t gpu = fleet->order[i];
            size_t m = judge->scored[k];
            enum evidence evidence = trial.beyond[trial_slot(&trial, gpu, m)] ? EVIDENCE_BEYOND
                                     : figure_joins_others(&trial, gpu, m)    ? EVIDENCE_JOINING
                                                                              : EVIDENCE_WITHIN;
            if (evidence != EVIDENCE_WITHIN || figure_is_notable(&trial, gpu, m))
                report_figure(judge, gpu, m, evidence);
        }
    free(trial.beyond);
    free(trial.left_out);
    free(trial.cause);
}

void judge_report_world(const struct judge *judge, const struct group *model,
                        struct inventory *inventory)
{
    bool few = false;
    if (!judge->basis.world || model_world_knows(judge, model))
        return;
    for (size_t i = 0; i < model->populations; i++) {
        const struct group *population = &judge->fleet.populations[model->populations_at + i];
        size_t count = 0;
        for (size_t k = 0; k < population->count; k++)
            count += fleet_judged(&judge->fleet.gpus[population->members[k]]);
        few |= count > 0 && count < PEERS_MIN;
    }
    if (!few)
        return;
    bool has_model = world_find_model(judge->basis.world, fleet_text(&judge->fleet, model->key));
    char *text = str_format("%s: not compared with GPUs elsewhere: %s", model->id,
                            has_model ? "another version of gpumemtopo made the --world file"
                                      : "no --world file has this model");
    verdict_add_remark(inventory, text);
}
