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

/* How a counter that grew is judged. */
enum manner {
    COMPARED, /* healthy GPUs have some: only if it grew far more than on the others of the model */
    WATCHED,
    ACCUSED, /* by a rule, whether it grew or not; so only `diff` reports it here */
};

/* least: a smaller growth is not reported. */
static const struct counter {
    const char *key;
    enum manner manner;
    enum inventory_kind kind;
    double least;
    double very_many; /* COMPARED: accused from this growth on */
    const char *words;
} counters[] = {
    {"ecc_corrected_dram", COMPARED, KIND_DEGRADED, 1000, 1e7, "corrected ECC errors of memory"},
    {"ecc_corrected_sram", COMPARED, KIND_DEGRADED, 1000, 1e7, "corrected ECC errors of caches"},
    {"ecc_corrected_volatile", COMPARED, KIND_DEGRADED, 1000, 1e7,
     "corrected ECC errors since the driver was loaded"},
    {"pcie_replays", COMPARED, KIND_DEGRADED, 1000, INFINITY, "PCIe replays"},
    {"nvlink_errors", COMPARED, KIND_DEGRADED, 1000, INFINITY, "errors on NVLinks"},
    {"ecc_uncorrected_dram", WATCHED, KIND_FAILING, 1, 0,
     "uncorrectable ECC errors of memory in its life"},
    {"ecc_uncorrected_sram", WATCHED, KIND_FAILING, 1, 0,
     "uncorrectable ECC errors of caches in its life"},
    {"remapped_rows_corrected", WATCHED, KIND_DEGRADED, 1, 0,
     "rows remapped after corrected errors"},
    {"remapped_rows_uncorrected", WATCHED, KIND_DEGRADED, 1, 0,
     "rows remapped after uncorrectable errors"},
    {"retired_pages_corrected", WATCHED, KIND_DEGRADED, 1, 0,
     "pages retired after corrected errors"},
    {"retired_pages_uncorrected", WATCHED, KIND_DEGRADED, 1, 0,
     "pages retired after uncorrectable errors"},
    {"ecc_uncorrected_volatile", ACCUSED, KIND_FAILING, 1, 0,
     "uncorrectable ECC errors since the driver was loaded"},
    {"remap_pending", ACCUSED, KIND_FAILING, 1, 0, "row remap pending"},
    {"remap_failed", ACCUSED, KIND_FAILING, 1, 0, "row remap failed"},
    {"retired_pages_pending", ACCUSED, KIND_FAILING, 1, 0, "page retirement pending"},
    {"remap_banks_low", ACCUSED, KIND_DEGRADED, 1, 0, "banks of memory with few spare rows left"},
    {"remap_banks_none", ACCUSED, KIND_DEGRADED, 1, 0, "banks of memory without spare rows"},
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
    if (fact && fact->kind == FACT_BOOL)
        return fact->flag;
    return fact && fact->kind == FACT_INT ? (double)fact->integer : NAN;
}

/* An error counter that is lower than it was began again at 0. */
static double growth_of(const struct counter *counter, double was, double is)
{
    return counter->manner == COMPARED && is < was ? is : is - was;
}

static void find_growths(const struct view *view, const struct counter *counter)
{
    const struct fleet *fleet = &view->judge->fleet;
    const struct fact_column *column = fleet_facts(fleet, SET_HEALTH, counter->key);
    for (size_t i = 0; i < fleet->count; i++) {
        uint32_t gpu = (uint32_t)i;
        double was = value_then(view, gpu, counter->key);
        double is = fleet_fact_number(fleet, column, gpu);
        view->growths[i] = isnan(was) || isnan(is) || !fleet_judged(&fleet->gpus[i])
                               ? NAN
                               : growth_of(counter, was, is);
    }
}

/* Errors since the driver was loaded are also among those in the GPU's life. */
static bool is_told(const struct view *view, uint32_t gpu, const struct counter *counter)
{
    return strcmp(counter->key, "ecc_corrected_volatile") == 0 &&
           (finding_of(view->judge, gpu, "health.ecc_corrected_dram", BASIS_BASELINE) ||
            finding_of(view->judge, gpu, "health.ecc_corrected_sram", BASIS_BASELINE));
}

/* "row remap pending: yes, was no (baseline of ...)". */
static char *words_of(const struct view *view, const struct counter *counter, uint32_t gpu,
                      const struct finding *finding)
{
    const struct fleet *fleet = &view->judge->fleet;
    const struct fact_column *column = fleet_facts(fleet, SET_HEALTH, counter->key);
    const char *stamp = view->judge->basis.baseline->generated;
    stamp = stamp ? stamp : "unknown date";
    if (fleet_fact(fleet, column, column->codes[gpu]).kind == FACT_BOOL)
        return str_format("%s: yes, was no (baseline of %s)", counter->words, stamp);
    return str_format("%s: %.0f, was %.0f (baseline of %s)", counter->words, finding->value,
                      finding->expected, stamp);
}

static int report(const struct view *view, uint32_t gpu, const struct counter *counter,
                  bool accused)
{
    struct judge *judge = view->judge;
    const struct fact_column *column = fleet_facts(&judge->fleet, SET_HEALTH, counter->key);
    char metric[64];
    snprintf(metric, sizeof metric, "health.%s", counter->key);
    struct finding *finding = findings_add(judge, gpu, metric, BASIS_BASELINE);
    if (!finding || symbols_text(&judge->fleet.symbols, "", &finding->unit))
        return -ENOMEM;
    finding->kind = counter->kind;
    finding->accused = accused;
    finding->value = fleet_fact_number(&judge->fleet, column, gpu);
    finding->expected = value_then(view, gpu, counter->key);
    finding->cause = words_of(view, counter, gpu, finding);
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
        bool usual = counter->manner == COMPARED && counter_can_compare(&peers) && !far;
        bool very_many = counter->manner == COMPARED && far && growth >= counter->very_many;
        if (growth >= counter->least && !usual && !is_told(view, gpu, counter) &&
            report(view, gpu, counter, counter->manner == ACCUSED || very_many))
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
        if (counters[i].manner == ACCUSED && !view->judge->basis.drift_only)
            continue;
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
