/* Counters of errors and repairs: each GPU against itself in the baseline. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "inventory/results.h"
#include "judge/counters.h"

/* least: a smaller growth is not reported. Counters of which healthy GPUs have some are also
 * compared with the growth on the other GPUs of the model. */
static const struct counter {
    const char *key;
    double least, very_many; /* very_many: accused, if far from the model's */
    bool healthy_have_some;
    enum inventory_kind kind;
    const char *words;
} counters[] = {
    {"ecc_corrected_dram", 1000, 1e7, true, KIND_DEGRADED, "corrected ECC errors of memory"},
    {"ecc_corrected_sram", 1000, 1e7, true, KIND_DEGRADED, "corrected ECC errors of caches"},
    {"ecc_corrected_volatile", 1000, 1e7, true, KIND_DEGRADED,
     "corrected ECC errors since the driver was loaded"},
    {"pcie_replays", 1000, INFINITY, true, KIND_DEGRADED, "PCIe replays"},
    {"nvlink_errors", 1000, INFINITY, true, KIND_DEGRADED, "errors on NVLinks"},
    {"ecc_uncorrected_dram", 1, INFINITY, false, KIND_FAILING,
     "uncorrectable ECC errors of memory in its life"},
    {"ecc_uncorrected_sram", 1, INFINITY, false, KIND_FAILING,
     "uncorrectable ECC errors of caches in its life"},
    {"remapped_rows_corrected", 1, INFINITY, false, KIND_DEGRADED,
     "rows remapped after corrected errors"},
    {"remapped_rows_uncorrected", 1, INFINITY, false, KIND_DEGRADED,
     "rows remapped after uncorrectable errors"},
    {"retired_pages_corrected", 1, INFINITY, false, KIND_DEGRADED,
     "pages retired after corrected errors"},
    {"retired_pages_uncorrected", 1, INFINITY, false, KIND_DEGRADED,
     "pages retired after uncorrectable errors"},
};

struct view {
    struct judge *judge;
    struct inventory_lookup *lookup;
    const struct inventory_gpu **then; /* per GPU; NULL: new */
    double *growths;                   /* per GPU, of the counter that is compared; NaN: unknown */
    double *scratch;
};

static double value_then(const struct view *view, uint32_t gpu, const char *key)
{
    const struct fact *fact =
        view->then[gpu] ? inventory_fact_of(view->lookup, view->then[gpu], INVENTORY_HEALTH, key)
                        : NULL;
    return fact && fact->kind == FACT_INT ? (double)fact->integer : NAN;
}

/* A counter that is lower than it was began again at 0. */
static double growth_of(double was, double is)
{
    return is >= was ? is - was : is;
}

static void find_growths(const struct view *view, const struct counter *counter)
{
    const struct fleet *fleet = &view->judge->fleet;
    const struct fact_column *column = fleet_facts(fleet, SET_HEALTH, counter->key);
    for (size_t i = 0; i < fleet->count; i++) {
        uint32_t gpu = (uint32_t)i;
        double was = value_then(view, gpu, counter->key);
        double is = fleet_fact_number(fleet, column, gpu);
        view->growths[i] =
            isnan(was) || isnan(is) || !fleet_judged(&fleet->gpus[i]) ? NAN : growth_of(was, is);
    }
}

/* Errors since the driver was loaded are also among those in the GPU's life. */
static bool is_told(const struct view *view, uint32_t gpu, const struct counter *counter)
{
    return strcmp(counter->key, "ecc_corrected_volatile") == 0 &&
           (finding_of(view->judge, gpu, "health.ecc_corrected_dram", BASIS_BASELINE) ||
            finding_of(view->judge, gpu, "health.ecc_corrected_sram", BASIS_BASELINE));
}

static int report(const struct view *view, uint32_t gpu, const struct counter *counter, bool far)
{
    struct judge *judge = view->judge;
    const char *stamp = judge->basis.baseline->generated;
    const struct fact_column *column = fleet_facts(&judge->fleet, SET_HEALTH, counter->key);
    char metric[64];
    snprintf(metric, sizeof metric, "health.%s", counter->key);
    struct finding *finding = findings_add(judge, gpu, metric, BASIS_BASELINE);
    if (!finding || symbols_text(&judge->fleet.symbols, "", &finding->unit))
        return -ENOMEM;
    finding->kind = counter->kind;
    finding->accused = far && view->growths[gpu] >= counter->very_many;
    finding->value = fleet_fact_number(&judge->fleet, column, gpu);
    finding->expected = value_then(view, gpu, counter->key);
    finding->cause = str_format("%s: %.0f, was %.0f (baseline of %s)", counter->words,
                                finding->value, finding->expected, stamp ? stamp : "unknown date");
    return finding->cause ? 0 : -ENOMEM;
}

static int check_model(const struct view *view, const struct group *model,
                       const struct counter *counter)
{
    size_t n = 0;
    for (size_t i = 0; i < model->count; i++)
        if (!isnan(view->growths[model->members[i]]))
            view->scratch[n++] = view->growths[model->members[i]];
    const struct counter_peers peers = counter_peers_of(view->scratch, n);
    for (size_t i = 0; i < model->count; i++) {
        uint32_t gpu = model->members[i];
        double growth = view->growths[gpu];
        bool far = counter_is_far(&peers, growth);
        bool usual = counter->healthy_have_some && counter_can_compare(&peers) && !far;
        if (growth >= counter->least && !usual && !is_told(view, gpu, counter) &&
            report(view, gpu, counter, far))
            return -ENOMEM;
    }
    return 0;
}

static int check_all(const struct view *view)
{
    const struct fleet *fleet = &view->judge->fleet;
    for (size_t i = 0; i < fleet->count; i++)
        view->then[i] = inventory_find_gpu(view->lookup, fleet_text(fleet, fleet->gpus[i].uuid));
    for (size_t i = 0; i < COUNT_OF(counters); i++) {
        find_growths(view, &counters[i]);
        for (size_t g = 0; g < fleet->group_count; g++)
            if (check_model(view, &fleet->groups[g], &counters[i]))
                return -ENOMEM;
    }
    return 0;
}

int judge_counter_drift(struct judge *judge)
{
    size_t count = judge->fleet.count;
    if (!judge->basis.baseline)
        return 0;
    struct view view = {.judge = judge,
                        .then = mem_array(count, sizeof *view.then),
                        .growths = mem_array(count, sizeof *view.growths),
                        .scratch = mem_array(count, sizeof *view.scratch)};
    int rc = -ENOMEM;
    if (view.then && view.growths && view.scratch &&
        !inventory_lookup_create(judge->basis.baseline, &view.lookup))
        rc = check_all(&view);
    inventory_lookup_destroy(view.lookup);
    free(view.then);
    free(view.growths);
    free(view.scratch);
    return rc;
}
