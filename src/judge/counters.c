/* Counters of errors that the hardware corrects: ECC, PCIe replays, NVLink. A healthy GPU has a
 * few. So only the rate during the survey, and a count far from those of the model, mean anything.
 */
#include "judge/counters.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "judge/robust.h"
#include "judge/yardstick.h"

/* Errors at this rate per second, and at least as many in total, are a storm. NVIDIA/DCGM issue 313
 * has 4,600 to 17,700 corrected ECC errors per second on a GPU whose peers have none. DCGM counts
 * NVLink's CRC errors from 100 per second on. A PCIe replay takes some microseconds: 100 per second
 * of a survey, of which a tenth are copies, cost a part of the bandwidth that can be measured. */
static const double STORM_PER_S = 100, STORM_COUNT = 100;

/* A few errors of one GPU are not worth a line if a quarter of its model has a tenth of them. */
static const double UNUSUAL = 10;

static const struct counter {
    const char *key, *new_key, *rate_key;
    bool accuses_far; /* a storm's count far from the model's accuses, however slow it came */
    double notable;   /* since the driver was loaded: watched if far from the model's */
    double very_many; /* likewise: accused if far, watched if there are too few peers */
    const char *words;
} counters[] = {
    /* Health checks of large sites take a GPU out at 10,000,000 corrected errors. */
    {"ecc_corrected_volatile", "ecc_corrected_new", "ecc_corrected_per_s", false, 1000, 1e7,
     "corrected ECC errors"},
    {"pcie_replays", "pcie_replays_new", "pcie_replays_per_s", true, 1000, INFINITY,
     "PCIe replays"},
    /* A rule watches each GPU with NVLink errors. */
    {"nvlink_errors", "nvlink_errors_new", "nvlink_errors_per_s", false, INFINITY, INFINITY,
     "errors on NVLinks"},
};

struct counter_peers counter_peers_of(double *values, size_t n)
{
    return (struct counter_peers){n, n ? robust_quantile(values, n, 0.75) : NAN};
}

bool counter_can_compare(const struct counter_peers *peers)
{
    return peers->n >= YARDSTICK_MIN;
}

bool counter_is_far(const struct counter_peers *peers, double value)
{
    return counter_can_compare(peers) && value > 0 && value >= COUNTER_FAR * peers->upper;
}

/* The facts of one counter. */
struct columns {
    const struct fact_column *total, *growth, *rate;
};

struct view {
    struct judge *judge;
    const struct counter *counter;
    struct columns columns;
    struct counter_peers totals, growths; /* of the GPU's model */
};

static double growth_of(const struct view *view, uint32_t gpu)
{
    double growth = fleet_fact_number(&view->judge->fleet, view->columns.growth, gpu);
    return growth > 0 ? growth : 0;
}

/* Since the driver was loaded, without the survey: that is judged by itself. NaN: not known. */
static double earlier_of(const struct view *view, uint32_t gpu)
{
    return fleet_fact_number(&view->judge->fleet, view->columns.total, gpu) - growth_of(view, gpu);
}

static int report_growth(const struct view *view, uint32_t gpu)
{
    const struct counter *counter = view->counter;
    double growth = growth_of(view, gpu);
    double rate = fleet_fact_number(&view->judge->fleet, view->columns.rate, gpu);
    bool storm = growth >= STORM_COUNT && rate >= STORM_PER_S;
    bool far = growth >= STORM_COUNT && counter_is_far(&view->growths, growth);
    bool usual = counter_can_compare(&view->growths) && growth <= UNUSUAL * view->growths.upper;
    bool accused = storm || (far && counter->accuses_far);
    if (growth == 0 || (usual && !accused))
        return 0;
    char metric[64];
    snprintf(metric, sizeof metric, "health.%s", counter->new_key);
    return findings_add_rule(
        view->judge, gpu, metric, accused, KIND_DEGRADED, growth,
        rate >= 1 ? str_format("%s during the survey: %.0f, %.0f per second", counter->words,
                               growth, rate)
                  : str_format("%s during the survey: %.0f", counter->words, growth));
}

static int report_total(const struct view *view, uint32_t gpu)
{
    const struct counter *counter = view->counter;
    double total = earlier_of(view, gpu);
    bool far = counter_is_far(&view->totals, total);
    bool alone = !counter_can_compare(&view->totals);
    if (!(far && total >= counter->notable) && !(alone && total >= counter->very_many))
        return 0;
    char metric[64];
    snprintf(metric, sizeof metric, "health.%s", counter->key);
    struct finding *finding = findings_add(view->judge, gpu, metric, BASIS_FLEET);
    if (!finding || symbols_text(&view->judge->fleet.symbols, "", &finding->unit))
        return -ENOMEM;
    finding->accused = far && total >= counter->very_many;
    finding->value = total;
    finding->expected = far ? view->totals.upper : NAN;
    finding->cause =
        far ? str_format(
                  "%s since the driver was loaded: %.0f; three quarters of its model have at "
                  "most %.0f",
                  counter->words, total, view->totals.upper)
            : str_format("%s since the driver was loaded: %.0f", counter->words, total);
    return finding->cause ? 0 : -ENOMEM;
}

static int report_gpus(const struct view *view, const uint32_t *gpus, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (report_growth(view, gpus[i]) || report_total(view, gpus[i]))
            return -ENOMEM;
    return 0;
}

/* scratch: room for all GPUs of the model. */
static struct counter_peers find_peers(const struct view *view, const struct group *model,
                                       const struct fact_column *column,
                                       double (*value_of)(const struct view *view, uint32_t gpu),
                                       double *scratch)
{
    const struct fleet *fleet = &view->judge->fleet;
    size_t n = 0;
    for (size_t i = 0; i < model->count; i++) {
        uint32_t gpu = model->members[i];
        if (fleet_judged(&fleet->gpus[gpu]) && !isnan(fleet_fact_number(fleet, column, gpu)))
            scratch[n++] = value_of(view, gpu);
    }
    return counter_peers_of(scratch, n);
}

static int check_counter(struct judge *judge, const struct counter *counter, double *scratch)
{
    const struct fleet *fleet = &judge->fleet;
    struct view view = {.judge = judge,
                        .counter = counter,
                        .columns = {fleet_facts(fleet, SET_HEALTH, counter->key),
                                    fleet_facts(fleet, SET_HEALTH, counter->new_key),
                                    fleet_facts(fleet, SET_HEALTH, counter->rate_key)}};
    for (size_t i = 0; i < fleet->count; i++)
        if (fleet->gpus[fleet->order[i]].group == GROUP_NONE &&
            report_gpus(&view, &fleet->order[i], 1))
            return -ENOMEM;
    for (size_t g = 0; g < fleet->group_count; g++) {
        const struct group *model = &fleet->groups[g];
        view.totals = find_peers(&view, model, view.columns.total, earlier_of, scratch);
        view.growths = find_peers(&view, model, view.columns.growth, growth_of, scratch);
        if (report_gpus(&view, model->members, model->count))
            return -ENOMEM;
    }
    return 0;
}

int judge_counters(struct judge *judge)
{
    double *scratch = mem_array(judge->fleet.count, sizeof *scratch);
    int rc = scratch ? 0 : -ENOMEM;
    for (size_t i = 0; i < COUNT_OF(counters) && !rc; i++)
        rc = check_counter(judge, &counters[i], scratch);
    free(scratch);
    return rc;
}
