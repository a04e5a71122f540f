/* Counters of errors and repairs: during the survey, beside those of the model, and since the
 * baseline. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "catalogue/facts.h"
#include "inventory/results.h"
#include "judge/evidence/stages.h"
#include "judge/model.h"
#include "judge/robust.h"

/* A counter is far from those of the model if it is at least this many times their upper quartile.
 * Most GPUs have none, and drivers are loaded for hours or for a year. */
static const double COUNTER_FAR = 100;

/* What the other GPUs of a model have. */
struct counter_peers {
    size_t n;     /* GPUs whose counter is known */
    double upper; /* upper quartile; NaN if n is 0 */
};

/* Reorders the values. */
static struct counter_peers counter_peers_of(double *values, size_t n)
{
    return (struct counter_peers){n, n ? robust_quantile(values, n, 0.75) : NAN};
}

/* Whether there are enough GPUs to compare with. */
static bool counter_can_compare(const struct counter_peers *peers)
{
    return peers->n >= PEERS_MIN;
}

/* False if there are not. */
static bool counter_is_far(const struct counter_peers *peers, double value)
{
    return counter_can_compare(peers) && value > 0 && value >= COUNTER_FAR * peers->upper;
}

/* Counters of errors that the hardware corrects: ECC, PCIe replays, NVLink. A healthy GPU has a
 * few. So only the rate during the survey, and a count far from those of the model, mean anything.
 *
 * Errors at this rate per second, and at least as many in total, are a storm. NVIDIA/DCGM issue 313
 * has 4,600 to 17,700 corrected ECC errors per second on a GPU whose peers have none. DCGM counts
 * NVLink's CRC errors from 100 per second on. A PCIe replay takes some microseconds: 100 per second
 * of a survey, of which a tenth are copies, cost a part of the bandwidth that can be measured. */
static const double STORM_PER_S = 100, STORM_COUNT = 100;

/* A few errors of one GPU are not worth a line if a quarter of its model has a tenth of them. */
static const double UNUSUAL = 10;

static const struct corrected_counter {
    enum health_fact total, growth, rate;
    bool accuses_far; /* a storm's count far from the model's accuses, however slow it came */
    double notable;   /* since the driver was loaded: watched if far from the model's */
    double very_many; /* likewise: accused if far, watched if there are too few peers */
    const char *words;
} corrected_counters[] = {
    /* Health checks of large sites take a GPU out at 10,000,000 corrected errors. */
    {HEALTH_ECC_CORRECTED_VOLATILE, HEALTH_ECC_CORRECTED_NEW, HEALTH_ECC_CORRECTED_PER_S, false,
     1000, 1e7, "corrected ECC errors"},
    {HEALTH_PCIE_REPLAYS, HEALTH_PCIE_REPLAYS_NEW, HEALTH_PCIE_REPLAYS_PER_S, true, 1000, INFINITY,
     "PCIe replays"},
    /* A rule watches each GPU with NVLink errors. */
    {HEALTH_NVLINK_ERRORS, HEALTH_NVLINK_ERRORS_NEW, HEALTH_NVLINK_ERRORS_PER_S, false, INFINITY,
     INFINITY, "errors on NVLinks"},
};

/* One such counter in one model. */
struct counter_view {
    struct judge *judge;
    const struct corrected_counter *counter;
    const struct fact_column *total, *growth, *rate;
    struct counter_peers totals, growths; /* of the GPU's model */
};

static double counter_growth(const struct counter_view *view, uint32_t gpu)
{
    double growth = fleet_fact_number(&view->judge->fleet, view->growth, gpu);
    return growth > 0 ? growth : 0;
}

/* Since the driver was loaded, without the survey: that is judged by itself. NaN: not known. */
static double counter_before(const struct counter_view *view, uint32_t gpu)
{
    return fleet_fact_number(&view->judge->fleet, view->total, gpu) - counter_growth(view, gpu);
}

static void counter_report_growth(const struct counter_view *view, uint32_t gpu)
{
    const struct corrected_counter *counter = view->counter;
    double growth = counter_growth(view, gpu);
    double rate = fleet_fact_number(&view->judge->fleet, view->rate, gpu);
    bool storm = growth >= STORM_COUNT && rate >= STORM_PER_S;
    bool far = growth >= STORM_COUNT && counter_is_far(&view->growths, growth);
    bool usual = counter_can_compare(&view->growths) && growth <= UNUSUAL * view->growths.upper;
    bool fault = storm || (far && counter->accuses_far);
    if (growth == 0 || (usual && !fault))
        return;
    char metric[64];
    snprintf(metric, sizeof metric, "health.%s", health_key(counter->growth));
    findings_add_rule(view->judge, gpu, metric, fault ? EVIDENCE_FAULT : EVIDENCE_HINT,
                      VERDICT_DEGRADED, growth,
                      rate >= 1 ? str_format("%s during the survey: %.0f, %.0f per second",
                                             counter->words, growth, rate)
                                : str_format("%s during the survey: %.0f", counter->words, growth));
}

static void counter_report_total(const struct counter_view *view, uint32_t gpu)
{
    const struct corrected_counter *counter = view->counter;
    double total = counter_before(view, gpu);
    bool far = counter_is_far(&view->totals, total);
    bool alone = !counter_can_compare(&view->totals);
    if (!(far && total >= counter->notable) && !(alone && total >= counter->very_many))
        return;
    char metric[64];
    snprintf(metric, sizeof metric, "health.%s", health_key(counter->total));
    struct finding finding =
        finding_new(view->judge, gpu, metric, BASIS_FLEET,
                    far && total >= counter->very_many ? EVIDENCE_FAULT : EVIDENCE_HINT);
    finding.value = total;
    finding.expected = far ? view->totals.upper : NAN;
    findings_add(
        view->judge, finding,
        far ? str_format(
                  "%s since the driver was loaded: %.0f; three quarters of its model have at "
                  "most %.0f",
                  counter->words, total, view->totals.upper)
            : str_format("%s since the driver was loaded: %.0f", counter->words, total));
}

/* scratch: room for all GPUs of the model. */
static struct counter_peers counter_find_peers(const struct counter_view *view,
                                               const struct group *model,
                                               const struct fact_column *column, double *scratch)
{
    const struct fleet *fleet = &view->judge->fleet;
    size_t n = 0;
    for (size_t i = 0; i < model->count; i++) {
        uint32_t gpu = model->members[i];
        if (fleet_judged(&fleet->gpus[gpu]) && !isnan(fleet_fact_number(fleet, column, gpu)))
            scratch[n++] =
                column == view->total ? counter_before(view, gpu) : counter_growth(view, gpu);
    }
    return counter_peers_of(scratch, n);
}

void stage_counters(struct judge *judge)
{
    const struct fleet *fleet = &judge->fleet;
    double *scratch = mem_array(fleet->count, sizeof *scratch);
    for (size_t k = 0; k < COUNT_OF(corrected_counters); k++) {
        const struct corrected_counter *counter = &corrected_counters[k];
        struct counter_view view = {
            .judge = judge,
            .counter = counter,
            .total = fleet_facts(fleet, SET_HEALTH, health_key(counter->total)),
            .growth = fleet_facts(fleet, SET_HEALTH, health_key(counter->growth)),
            .rate = fleet_facts(fleet, SET_HEALTH, health_key(counter->rate))};
        for (size_t i = 0; i < fleet->count; i++) {
            if (fleet->gpus[fleet->order[i]].group != GROUP_NONE)
                continue;
            counter_report_growth(&view, fleet->order[i]);
            counter_report_total(&view, fleet->order[i]);
        }
        for (size_t g = 0; g < fleet->group_count; g++) {
            const struct group *model = &fleet->groups[g];
            view.totals = counter_find_peers(&view, model, view.total, scratch);
            view.growths = counter_find_peers(&view, model, view.growth, scratch);
            for (size_t i = 0; i < model->count; i++) {
                counter_report_growth(&view, model->members[i]);
                counter_report_total(&view, model->members[i]);
            }
        }
    }
    free(scratch);
}

/* One counter of all GPUs, in the baseline and now. */
struct grown_view {
    struct judge *judge;
    const struct health_row *counter;
    const struct fact_column *column; /* now; NULL: no GPU has it */
    double *before;                   /* per GPU; NaN: unknown */
    double *growths;                  /* likewise */
    double *scratch;
};

/* An error counter that is lower than it was began again at 0. */
static void grown_find(const struct grown_view *view, const struct inventory_lookup *lookup,
                       const struct inventory_gpu *const *then)
{
    const struct fleet *fleet = &view->judge->fleet;
    for (uint32_t i = 0; i < fleet->count; i++) {
        const struct fact *fact =
            then[i] ? inventory_fact_of(lookup, then[i], INVENTORY_HEALTH, view->counter->key)
                    : NULL;
        double was = fact && fact->kind == FACT_BOOL  ? fact->flag
                     : fact && fact->kind == FACT_INT ? (double)fact->integer
                                                      : NAN;
        double is = fleet_fact_number(fleet, view->column, i);
        bool again = view->counter->growth.rule == GROWTH_COMPARED && is < was;
        view->before[i] = was;
        view->growths[i] = isnan(was) || isnan(is) || !fleet_judged(&fleet->gpus[i]) ? NAN
                           : again                                                   ? is
                                                                                     : is - was;
    }
}

/* Errors since the driver was loaded are also among those in the GPU's life. */
static bool grown_is_reported(const struct grown_view *view, uint32_t gpu)
{
    return view->counter == &catalogue_health[HEALTH_ECC_CORRECTED_VOLATILE] &&
           (issue_find(view->judge, gpu, "health.ecc_corrected_dram", BASIS_BASELINE) ||
            issue_find(view->judge, gpu, "health.ecc_corrected_sram", BASIS_BASELINE));
}

static void grown_report(const struct grown_view *view, uint32_t gpu, enum evidence evidence)
{
    struct judge *judge = view->judge;
    const struct health_row *counter = view->counter;
    const char *stamp = judge_baseline_stamp(judge);
    char metric[64];
    snprintf(metric, sizeof metric, "health.%s", counter->key);
    struct finding finding = finding_new(judge, gpu, metric, BASIS_BASELINE, evidence);
    finding.verdict = counter->growth.degrades ? VERDICT_DEGRADED : counter->verdict;
    finding.value = fleet_fact_number(&judge->fleet, view->column, gpu);
    finding.expected = view->before[gpu];
    bool flag = fleet_fact(&judge->fleet, view->column, view->column->codes[gpu]).kind == FACT_BOOL;
    findings_add(judge, finding,
                 flag ? str_format("%s: yes, was no (baseline of %s)", counter->words, stamp)
                      : str_format("%s: %.0f, was %.0f (baseline of %s)", counter->words,
                                   finding.value, finding.expected, stamp));
}

static void grown_check_model(const struct grown_view *view, const struct group *model)
{
    const struct health_row *counter = view->counter;
    size_t n = 0;
    for (size_t i = 0; i < model->count; i++)
        if (!isnan(view->growths[model->members[i]]))
            view->scratch[n++] = view->growths[model->members[i]];
    const struct counter_peers peers = counter_peers_of(view->scratch, n);
    for (size_t i = 0; i < model->count; i++) {
        uint32_t gpu = model->members[i];
        double growth = view->growths[gpu];
        bool far = counter_is_far(&peers, growth);
        bool usual = counter->growth.rule == GROWTH_COMPARED && counter_can_compare(&peers) && !far;
        bool very_many =
            counter->growth.rule == GROWTH_COMPARED && far && growth >= counter->growth.very_many;
        bool fault = counter->growth.rule == GROWTH_BY_RULE || very_many;
        if (growth >= counter->growth.least && !usual && !grown_is_reported(view, gpu))
            grown_report(view, gpu, fault ? EVIDENCE_FAULT : EVIDENCE_HINT);
    }
}

void stage_counter_drift(struct judge *judge)
{
    const struct fleet *fleet = &judge->fleet;
    size_t count = fleet->count;
    struct inventory_lookup *lookup = NULL;
    if (!judge->basis.baseline)
        return;
    const struct inventory_gpu **then = judge_find_in_baseline(judge, &lookup);
    struct grown_view view = {.judge = judge,
                              .before = mem_array(count, sizeof *view.before),
                              .growths = mem_array(count, sizeof *view.growths),
                              .scratch = mem_array(count, sizeof *view.scratch)};
    for (size_t i = 0; i < HEALTH_FACTS; i++) {
        view.counter = &catalogue_health[i];
        if (!view.counter->growth.rule)
            continue;
        view.column = fleet_facts(fleet, SET_HEALTH, view.counter->key);
        if (view.counter->growth.rule == GROWTH_BY_RULE && !judge->basis.drift_only)
            continue;
        grown_find(&view, lookup, then);
        for (size_t g = 0; g < fleet->group_count; g++)
            grown_check_model(&view, &fleet->groups[g]);
    }
    inventory_lookup_destroy(lookup);
    free(then);
    free(view.before);
    free(view.growths);
    free(view.scratch);
}
