/* Drift: each GPU against itself in the baseline. Differences between GPUs do not matter. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "inventory/results.h"
#include "judge/fact_text.h"
#include "judge/robust.h"
#include "judge/yardstick.h"

/* The scale of changes is at least this share: few GPUs do not show how far healthy ones change. */
static const double REPEATS = 0.00375;

/* One figure of one GPU in the baseline and now. */
struct pair {
    uint32_t gpu;
    const struct inventory_gpu *then;
    const struct inventory_value *was;
    const struct cell *is;
    double expected;  /* the value now, if only the SM clock had changed */
    double change;    /* of the value, as a share of `expected` */
    double uncertain; /* standard error of `change` that a changed SM clock causes */
};

struct view {
    struct judge *judge;
    struct inventory_lookup *lookup;
    const struct inventory_gpu **then; /* per GPU; NULL: new */
    struct pair *pairs;
    double *numbers, *scratch;
};

static const struct inventory_value *value_of(const struct inventory_gpu *gpu, const char *metric)
{
    for (size_t i = 0; i < gpu->value_count; i++)
        if (strcmp(gpu->values[i].metric, metric) == 0)
            return inventory_value_is_good(&gpu->values[i]) ? &gpu->values[i] : NULL;
    return NULL;
}

static double clock_then(const struct view *view, const struct group *group,
                         const struct inventory_gpu *then)
{
    const struct inventory_value *clock = value_of(then, "clock.sm");
    size_t g = (size_t)(group - view->judge->fleet.groups);
    double usual = view->judge->usual[g * JUDGE_CONDITION_COUNT + JUDGE_SM_CLOCK];
    return clock && usual > 0 ? clock->value / usual : 1;
}

static size_t gather(const struct view *view, const struct group *group, size_t metric)
{
    const struct judge *judge = view->judge;
    const struct judge_metric *rule = &judge->basis.config->metrics[metric];
    const struct metric_column *column = judge->columns[metric];
    const struct yardstick *y = yardstick_of(judge, group, metric);
    size_t n = 0;
    for (size_t i = 0; i < group->count && column; i++) {
        uint32_t gpu = group->members[i];
        const struct inventory_gpu *then = view->then[gpu];
        const struct cell *is = fleet_number(column, gpu, false);
        const struct inventory_value *was = then ? value_of(then, rule->metric) : NULL;
        if (!is || !was || was->value == 0 || then->status == GPU_BUSY ||
            !fleet_judged(&judge->fleet.gpus[gpu]))
            continue;
        double ratio = clock_then(view, group, then);
        double factor = 1 / (1 + y->clock_share * (ratio - 1));
        double expected = was->value * factor / judge_clock_factor(judge, y, gpu);
        view->pairs[n++] = (struct pair){gpu,
                                         then,
                                         was,
                                         is,
                                         expected,
                                         is->value / expected - 1,
                                         y->share_error * (judge->clock_ratio[gpu] - ratio)};
    }
    return n;
}

static double setting_then(const struct view *view, const struct pair *pair, const char *key)
{
    const struct fact *fact = inventory_fact_of(view->lookup, pair->then, INVENTORY_CONFIG, key);
    return fact && fact->kind == FACT_INT && fact->integer > 0 ? (double)fact->integer : NAN;
}

/* A condition in the baseline; NaN if it is not known. */
static double condition_then(const struct view *view, enum judge_condition condition,
                             const struct pair *pair)
{
    const struct inventory_value *clock = value_of(pair->then, "clock.memory");
    if (condition == JUDGE_MEMORY_CLOCK)
        return clock ? clock->value : NAN;
    return condition == JUDGE_PCIE
               ? exp2(setting_then(view, pair, "pcie_gen")) * setting_then(view, pair, "pcie_width")
               : NAN;
}

/* A condition that became worse since the baseline and explains the loss, or "unexplained". */
static const char *find_cause(const struct view *view, const struct judge_metric *rule,
                              const struct pair *pair, double loss, enum inventory_kind *out_kind)
{
    static const struct {
        enum judge_condition condition;
        enum inventory_kind kind;
        const char *words;
    } causes[] = {
        {JUDGE_MEMORY_CLOCK, KIND_MISCONFIGURED, "the memory clock is lower than it was"},
        {JUDGE_PCIE, KIND_DEGRADED, "the PCIe link is slower than it was"},
    };
    for (size_t i = 0; i < COUNT_OF(causes); i++) {
        double ratio = judge_condition_value(&view->judge->fleet, causes[i].condition, pair->gpu) /
                       condition_then(view, causes[i].condition, pair);
        double share = rule->follows[causes[i].condition];
        double room = rule->worse == JUDGE_HIGHER ? share * (1 / ratio - 1) : share * (1 - ratio);
        if (!(ratio < 1) || !judge_loss_fits(loss, room, rule->floor))
            continue;
        *out_kind = causes[i].kind;
        return causes[i].words;
    }
    return "unexplained";
}

static int report(const struct view *view, const struct judge_metric *rule, size_t metric,
                  const struct pair *pair, double score, bool accused)
{
    struct judge *judge = view->judge;
    struct finding *finding = findings_add(judge, pair->gpu, rule->metric, BASIS_BASELINE);
    if (!finding)
        return -ENOMEM;
    const char *stamp = judge->basis.baseline->generated;
    const char *why =
        find_cause(view, rule, pair, judge_worse_share(rule->worse, pair->change), &finding->kind);
    finding->rule = (int32_t)metric;
    finding->accused = accused;
    finding->unit = pair->is->unit;
    finding->value = pair->is->value;
    finding->expected = pair->expected;
    finding->deviation = pair->change;
    finding->score = score;
    finding->cause = str_format("%s (baseline of %s)", why, stamp ? stamp : "unknown date");
    return finding->cause ? 0 : -ENOMEM;
}

static int judge_metric(const struct view *view, const struct group *group, size_t metric,
                        double tail)
{
    const struct judge_metric *rule = &view->judge->basis.config->metrics[metric];
    size_t n = gather(view, group, metric);
    for (size_t i = 0; i < n; i++)
        view->numbers[i] = view->pairs[i].change;
    struct robust_fit fit = robust_fit(view->numbers, n, view->scratch);
    bool enough = n >= YARDSTICK_MIN;
    double sigma = fmax(enough ? fit.sigma : 0, REPEATS);
    double bound =
        yardstick_bound(tail, enough && fit.kept > 1 ? (double)(fit.kept - 1) : YARDSTICK_MIN);
    for (size_t i = 0; i < n; i++) {
        const struct pair *pair = &view->pairs[i];
        double own = isfinite(pair->is->spread) ? pair->is->spread / pair->expected : 0;
        double was = isfinite(pair->was->spread) ? pair->was->spread / pair->was->value : 0;
        double score = pair->change / sqrt(sigma * sigma + own * own + was * was +
                                           pair->uncertain * pair->uncertain);
        double worse = judge_worse_share(rule->worse, pair->change);
        bool sure = judge_worse_share(rule->worse, score) >= bound;
        if (!(worse >= rule->floor) || worse == 0 || !(judge_worse_share(rule->worse, score) >= 3))
            continue;
        if (report(view, rule, metric, pair, score, sure && worse >= rule->accuse))
            return -ENOMEM;
    }
    return 0;
}

/* A setting or version that changed since the baseline is watched: the change may be intended. */
static int report_setting(struct judge *judge, uint32_t gpu, const char *set, const struct fact *is,
                          const struct fact *was)
{
    struct strbuf text = {0};
    char *metric = str_format("%s.%s", set, was->key);
    struct finding *finding = metric ? findings_add(judge, gpu, metric, BASIS_BASELINE) : NULL;
    free(metric);
    fact_text_put_key(&text, was->key);
    strbuf_puts(&text, " ");
    fact_text_put_value(&text, is);
    strbuf_puts(&text, ", was ");
    fact_text_put_value(&text, was);
    if (!finding || text.failed ||
        symbols_text(&judge->fleet.symbols, fact_text_unit(was->key), &finding->unit)) {
        strbuf_fini(&text);
        return -ENOMEM;
    }
    finding->kind = KIND_MISCONFIGURED;
    finding->cause = text.data;
    return 0;
}

static bool is_setting(enum fact_set set, const char *key)
{
    static const char *const versions[] = {"driver", "vbios", "inforom"};
    if (set == SET_CONFIG)
        return strcmp(key, "memory_free_bytes") != 0;
    for (size_t i = 0; i < COUNT_OF(versions); i++)
        if (strcmp(key, versions[i]) == 0)
            return true;
    return false;
}

static int compare_settings(const struct view *view, uint32_t gpu, enum fact_set set)
{
    const struct fleet *fleet = &view->judge->fleet;
    bool board = set == SET_BOARD;
    struct facts then = {0};
    int rc = inventory_facts_of(view->lookup, view->then[gpu],
                                board ? INVENTORY_BOARD : INVENTORY_CONFIG, &then);
    for (size_t i = 0; i < then.count && !rc; i++) {
        const struct fact *was = &then.items[i];
        const struct fact_column *column = fleet_facts(fleet, set, was->key);
        if (!column || !is_setting(set, was->key))
            continue;
        const struct fact is = fleet_fact(fleet, column, column->codes[gpu]);
        if (was->kind != FACT_UNKNOWN && is.kind != FACT_UNKNOWN && !fact_equal(was, &is))
            rc = report_setting(view->judge, gpu, board ? "board" : "config", &is, was);
    }
    facts_fini(&then);
    return rc;
}

static int judge_all(struct view *view)
{
    const struct fleet *fleet = &view->judge->fleet;
    const struct judge_config *config = view->judge->basis.config;
    double comparisons = fmax((double)fleet->count * (double)config->metric_count, 1);
    double tail = fmin(config->false_alarms / comparisons, 0.5);
    for (size_t i = 0; i < fleet->count; i++)
        view->then[i] = inventory_find_gpu(view->lookup, fleet_text(fleet, fleet->gpus[i].uuid));
    for (size_t g = 0; g < fleet->group_count; g++)
        for (size_t m = 0; m < config->metric_count; m++)
            if (config->metrics[m].worse == JUDGE_LOWER || config->metrics[m].worse == JUDGE_HIGHER)
                if (judge_metric(view, &fleet->groups[g], m, tail))
                    return -ENOMEM;
    for (size_t i = 0; i < fleet->count; i++)
        if (view->then[i] && fleet_judged(&fleet->gpus[i]) &&
            (compare_settings(view, (uint32_t)i, SET_BOARD) ||
             compare_settings(view, (uint32_t)i, SET_CONFIG)))
            return -ENOMEM;
    return 0;
}

int judge_drift(struct judge *judge)
{
    size_t count = judge->fleet.count;
    if (!judge->basis.baseline)
        return 0;
    struct view view = {.judge = judge,
                        .then = mem_array(count, sizeof *view.then),
                        .pairs = mem_array(count, sizeof *view.pairs),
                        .numbers = mem_array(count, sizeof *view.numbers),
                        .scratch = mem_array(count, sizeof *view.scratch)};
    int rc = -ENOMEM;
    if (view.then && view.pairs && view.numbers && view.scratch &&
        !inventory_lookup_create(judge->basis.baseline, &view.lookup))
        rc = judge_all(&view);
    inventory_lookup_destroy(view.lookup);
    free(view.then);
    free(view.pairs);
    free(view.numbers);
    free(view.scratch);
    return rc;
}
