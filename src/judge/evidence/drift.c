/* Drift: each GPU against itself in the baseline. Differences between GPUs do not matter. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/portable_math.h"
#include "base/str.h"
#include "catalogue/facts.h"
#include "inventory/results.h"
#include "judge/evidence/stages.h"
#include "judge/fact_text.h"
#include "judge/model.h"
#include "judge/robust.h"

/* The scale of changes is at least this share: few GPUs do not show how far healthy ones change. */
static const double REPEATS = 0.00375;

const char *judge_baseline_stamp(const struct judge *judge)
{
    const char *stamp = judge->basis.baseline->generated;
    return stamp ? stamp : "unknown date";
}

const struct inventory_gpu **judge_find_in_baseline(const struct judge *judge,
                                                    struct inventory_lookup **out_lookup)
{
    const struct fleet *fleet = &judge->fleet;
    const struct inventory_gpu **then = mem_array(fleet->count, sizeof *then);
    *out_lookup = inventory_lookup_create(judge->basis.baseline);
    for (size_t i = 0; i < fleet->count; i++)
        then[i] = inventory_find_gpu(*out_lookup, fleet_text(fleet, fleet->gpus[i].uuid));
    return then;
}

/* One figure of one GPU in the baseline and now. */
struct drift_pair {
    uint32_t gpu;
    const struct inventory_gpu *then;
    const struct inventory_value *was;
    const struct cell *is;
    double expected;  /* the value now, if only the SM clock had changed */
    double change;    /* of the value, as a share of `expected` */
    double uncertain; /* standard error of `change` that a changed SM clock causes */
};

struct drift_view {
    struct judge *judge;
    struct inventory_lookup *lookup;
    const struct inventory_gpu **then; /* per GPU; NULL: new */
    struct drift_pair *pairs;
    double *numbers, *scratch;
};

static const struct inventory_value *value_then(const struct inventory_gpu *gpu, const char *metric)
{
    const struct inventory_value *value = inventory_value_of(gpu, metric);
    return value && inventory_value_is_good(value) ? value : NULL;
}

static double clock_then(const struct drift_view *view, const struct group *group,
                         const struct inventory_gpu *then)
{
    const struct inventory_value *clock = value_then(then, "clock.sm");
    size_t g = (size_t)(group - view->judge->fleet.groups);
    double usual = view->judge->usual[g * JUDGE_CONDITION_COUNT + JUDGE_SM_CLOCK];
    return clock && usual > 0 ? clock->value / usual : 1;
}

/* Whether the GPU was of another kind in the baseline, on which the figure depends. */
static bool kind_changed(const struct drift_view *view, uint32_t gpu, const char *figure)
{
    const struct kind_view is = fleet_kind_view(&view->judge->fleet, gpu);
    const struct kind_view was = catalogue_kind_view(view->lookup, view->then[gpu]);
    return catalogue_kinds_differ(&is, &was, figure);
}

static size_t drift_gather(const struct drift_view *view, const struct group *group, size_t metric)
{
    const struct judge *judge = view->judge;
    const struct judge_metric *rule = &judge->basis.config->metrics[metric];
    const struct metric_column *column = judge->columns[metric];
    size_t n = 0;
    for (size_t i = 0; i < group->count && column; i++) {
        uint32_t gpu = group->members[i];
        const struct inventory_gpu *then = view->then[gpu];
        const struct cell *is = fleet_number(column, gpu, false);
        const struct inventory_value *was = then ? value_then(then, rule->metric) : NULL;
        if (!is || !was || was->value == 0 || then->status == GPU_BUSY ||
            !fleet_judged(&judge->fleet.gpus[gpu]) || kind_changed(view, gpu, rule->metric))
            continue;
        const struct usual_figure *usual = model_figure(judge, gpu, metric);
        double ratio = clock_then(view, group, then);
        double factor = 1 / (1 + usual->clock_share * (ratio - 1));
        double expected = was->value * factor / judge_clock_factor(judge, usual->clock_share, gpu);
        view->pairs[n++] =
            (struct drift_pair){gpu,
                                then,
                                was,
                                is,
                                expected,
                                is->value / expected - 1,
                                usual->share_error * (judge->clock_ratio[gpu] - ratio)};
    }
    return n;
}

static double setting_then(const struct drift_view *view, const struct drift_pair *pair,
                           const char *key)
{
    const struct fact *fact = inventory_fact_of(view->lookup, pair->then, INVENTORY_CONFIG, key);
    return fact && fact->kind == FACT_INT && fact->integer > 0 ? (double)fact->integer : NAN;
}

/* A condition in the baseline; NaN if it is not known. */
static double condition_then(const struct drift_view *view, enum judge_condition condition,
                             const struct drift_pair *pair)
{
    const struct inventory_value *clock = value_then(pair->then, "clock.memory");
    if (condition == JUDGE_MEMORY_CLOCK)
        return clock ? clock->value : NAN;
    return condition == JUDGE_PCIE ? portable_exp2(setting_then(view, pair, "pcie_gen")) *
                                         setting_then(view, pair, "pcie_width")
                                   : NAN;
}

/* A condition that became worse since the baseline and explains the loss, or "cause unknown". */
static const char *drift_find_cause(const struct drift_view *view, const struct judge_metric *rule,
                                    const struct drift_pair *pair, double loss,
                                    enum verdict *out_verdict)
{
    static const struct {
        enum judge_condition condition;
        enum verdict verdict;
        const char *words;
    } causes[] = {
        {JUDGE_MEMORY_CLOCK, VERDICT_MISCONFIGURED, "the memory clock is lower than it was"},
        {JUDGE_PCIE, VERDICT_DEGRADED, "the PCIe link is slower than it was"},
    };
    for (size_t i = 0; i < COUNT_OF(causes); i++) {
        double ratio = judge_condition_value(&view->judge->fleet, causes[i].condition, pair->gpu) /
                       condition_then(view, causes[i].condition, pair);
        double share = rule->follows[causes[i].condition];
        double room = rule->worse == JUDGE_HIGHER ? share * (1 / ratio - 1) : share * (1 - ratio);
        if (!(ratio < 1) || !judge_loss_fits(loss, room, rule->floor))
            continue;
        *out_verdict = causes[i].verdict;
        return causes[i].words;
    }
    return "cause unknown";
}

static void drift_judge_metric(const struct drift_view *view, const struct group *group,
                               size_t metric, double tail)
{
    struct judge *judge = view->judge;
    const struct judge_metric *rule = &judge->basis.config->metrics[metric];
    size_t n = drift_gather(view, group, metric);
    for (size_t i = 0; i < n; i++)
        view->numbers[i] = view->pairs[i].change;
    struct robust_fit fit = robust_fit(view->numbers, n, view->scratch);
    bool enough = n >= PEERS_MIN;
    double sigma = fmax(enough ? fit.sigma : 0, REPEATS);
    double bound =
        robust_student_bound(tail, enough && fit.kept > 1 ? (double)(fit.kept - 1) : PEERS_MIN);
    for (size_t i = 0; i < n; i++) {
        const struct drift_pair *pair = &view->pairs[i];
        double own = isfinite(pair->is->spread) ? pair->is->spread / pair->expected : 0;
        double was = isfinite(pair->was->spread) ? pair->was->spread / pair->was->value : 0;
        double score = pair->change / sqrt(sigma * sigma + own * own + was * was +
                                           pair->uncertain * pair->uncertain);
        double worse = judge_worse_share(rule->worse, pair->change);
        double worse_score = judge_worse_share(rule->worse, score);
        if (!(worse >= rule->floor) || worse == 0 || !(worse_score >= 3))
            continue;
        bool beyond = worse_score >= bound && worse >= rule->accuse;
        struct finding finding = finding_new(judge, pair->gpu, rule->metric, BASIS_BASELINE,
                                             beyond ? EVIDENCE_BEYOND : EVIDENCE_WITHIN);
        const char *why = drift_find_cause(view, rule, pair, worse, &finding.verdict);
        finding.rule = (int32_t)metric;
        finding.unit = pair->is->unit;
        finding.value = pair->is->value;
        finding.expected = pair->expected;
        finding.deviation = pair->change;
        finding.score = score;
        findings_add(judge, finding,
                     str_format("%s (baseline of %s)", why, judge_baseline_stamp(judge)));
    }
}

/* Versions, and all settings but the free memory. */
static bool fact_is_setting(enum fact_set set, const char *key)
{
    if (set == SET_CONFIG)
        return strcmp(key, "memory_free_bytes") != 0;
    return strcmp(key, "driver") == 0 || strcmp(key, "vbios") == 0 || strcmp(key, "inforom") == 0;
}

/* A setting or version that changed since the baseline is watched: the change may be intended. */
static void drift_compare_settings(const struct drift_view *view, uint32_t gpu, enum fact_set set)
{
    struct judge *judge = view->judge;
    const struct fleet *fleet = &judge->fleet;
    bool board = set == SET_BOARD;
    struct facts then = {0};
    inventory_facts_of(view->lookup, view->then[gpu], board ? INVENTORY_BOARD : INVENTORY_CONFIG,
                       &then);
    for (size_t i = 0; i < then.count; i++) {
        const struct fact *was = &then.items[i];
        const struct fact_column *column = fleet_facts(fleet, set, was->key);
        if (!column || !fact_is_setting(set, was->key))
            continue;
        const struct fact is = fleet_fact(fleet, column, column->codes[gpu]);
        if (was->kind == FACT_UNKNOWN || is.kind == FACT_UNKNOWN || fact_equal(was, &is))
            continue;
        char *metric = str_format("%s.%s", board ? "board" : "config", was->key);
        struct finding finding = finding_new(judge, gpu, metric, BASIS_BASELINE, EVIDENCE_CHANGE);
        free(metric);
        finding.verdict = VERDICT_MISCONFIGURED;
        finding.unit = judge_symbol(judge, fact_text_unit(was->key));
        struct strbuf text = {0};
        fact_text_put_key(&text, was->key);
        strbuf_puts(&text, " ");
        fact_text_put_value(&text, &is);
        strbuf_puts(&text, ", was ");
        fact_text_put_value(&text, was);
        findings_add(judge, finding, text.data);
    }
    facts_fini(&then);
}

void stage_drift(struct judge *judge)
{
    const struct fleet *fleet = &judge->fleet;
    const struct judge_config *config = judge->basis.config;
    size_t count = fleet->count;
    if (!judge->basis.baseline)
        return;
    struct drift_view view = {.judge = judge,
                              .pairs = mem_array(count, sizeof *view.pairs),
                              .numbers = mem_array(count, sizeof *view.numbers),
                              .scratch = mem_array(count, sizeof *view.scratch)};
    view.then = judge_find_in_baseline(judge, &view.lookup);
    double comparisons = fmax((double)count * (double)judge->scored_count, 1);
    double tail = fmin(config->false_alarms / comparisons, 0.5);
    for (size_t g = 0; g < fleet->group_count; g++)
        for (size_t m = 0; m < config->metric_count; m++)
            if (config->metrics[m].worse == JUDGE_LOWER || config->metrics[m].worse == JUDGE_HIGHER)
                drift_judge_metric(&view, &fleet->groups[g], m, tail);
    for (uint32_t i = 0; i < count; i++) {
        if (!view.then[i] || !fleet_judged(&fleet->gpus[i]))
            continue;
        drift_compare_settings(&view, i, SET_BOARD);
        drift_compare_settings(&view, i, SET_CONFIG);
    }
    inventory_lookup_destroy(view.lookup);
    free(view.then);
    free(view.pairs);
    free(view.numbers);
    free(view.scratch);
}
