/* Figures and hardware against the reference of the model. Needs no other GPUs. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "judge/fact_text.h"
#include "judge/reference.h"
#include "judge/stages.h"

/* Drivers reserve up to this share of the memory, ECC included. */
static const double MEMORY_KEPT = 0.07;

/* With a memory clock below this share of the highest one, a low bandwidth is explained by the
 * setting. */
static const double FULL_CLOCK = 0.98;

static int check_hardware(struct judge *judge, const struct reference_entry *entry, uint32_t gpu)
{
    const struct fleet *fleet = &judge->fleet;
    double value = fleet_fact_number(fleet, fleet_facts(fleet, SET_HARDWARE, entry->key), gpu);
    double kept = strcmp(entry->key, "memory_bytes") == 0 ? MEMORY_KEPT : 0;
    if (!(value < entry->value * (1 - kept)))
        return 0;
    char metric[80];
    snprintf(metric, sizeof metric, "hardware.%.60s", entry->key);
    struct finding *finding = findings_add(judge, gpu, metric, BASIS_REFERENCE);
    struct strbuf text = {0};
    if (!finding || symbols_text(&judge->fleet.symbols, fact_text_unit(entry->key), &finding->unit))
        return -ENOMEM;
    fact_text_put_key(&text, entry->key);
    strbuf_puts(&text, " ");
    fact_text_put_number(&text, value, fact_text_unit(entry->key));
    strbuf_puts(&text, ", the model is specified with ");
    fact_text_put_number(&text, entry->value, fact_text_unit(entry->key));
    finding->accused = true;
    finding->kind = KIND_MISMATCHED;
    finding->value = value;
    finding->expected = entry->value;
    finding->deviation = value / entry->value - 1;
    finding->cause = text.data;
    return text.failed ? -ENOMEM : 0;
}

/* The memory clock over the highest one of the hardware; 1 if it is not known. */
static double memory_clock_ratio(const struct fleet *fleet, uint32_t gpu)
{
    double limit =
        fleet_fact_number(fleet, fleet_facts(fleet, SET_HARDWARE, "memory_clock_max_mhz"), gpu);
    double ratio = judge_condition_value(fleet, JUDGE_MEMORY_CLOCK, gpu) / limit;
    return ratio > 0 && isfinite(ratio) ? ratio : 1;
}

static bool clock_explains(const struct judge *judge, const struct judge_metric *rule,
                           const struct finding *finding)
{
    double ratio = memory_clock_ratio(&judge->fleet, finding->gpu);
    return rule->follows[JUDGE_MEMORY_CLOCK] > 0 && ratio < FULL_CLOCK &&
           judge_loss_fits(judge_worse_share(rule->worse, finding->deviation), 1 - ratio, 0);
}

static int explain(const struct judge *judge, const struct judge_metric *rule,
                   const struct reference_entry *entry, struct finding *finding)
{
    double clock = judge_condition_value(&judge->fleet, JUDGE_MEMORY_CLOCK, finding->gpu);
    if (clock_explains(judge, rule, finding)) {
        finding->kind = KIND_MISCONFIGURED;
        finding->explained_by = 1u << JUDGE_MEMORY_CLOCK;
        finding->cause = str_format("memory clock %.0f MHz of %.0f MHz", clock,
                                    clock / memory_clock_ratio(&judge->fleet, finding->gpu));
    } else if (entry->kind == REFERENCE_PEAK) {
        finding->cause = str_format(
            "unexplained: below %.0f %% of the %.6g %s that the model is specified for",
            100 * rule->peak_share, entry->value, fleet_text(&judge->fleet, finding->unit));
    } else {
        finding->cause = str_format("unexplained: worse than the reference by more than %.0f %%",
                                    100 * entry->tolerance);
    }
    return finding->cause ? 0 : -ENOMEM;
}

static int check_figure(struct judge *judge, const struct reference_entry *entry, uint32_t gpu)
{
    const struct judge_config *config = judge->basis.config;
    const struct cell *cell = fleet_number(fleet_metric(&judge->fleet, entry->key), gpu, false);
    size_t m = 0;
    while (m < config->metric_count && !str_equal(config->metrics[m].metric, entry->key))
        m++;
    if (!cell || m == config->metric_count)
        return 0;
    const struct judge_metric *rule = &config->metrics[m];
    bool peak = entry->kind == REFERENCE_PEAK;
    double expected = entry->value * (peak ? rule->peak_share : 1);
    double worse = judge_worse_share(rule->worse, cell->value / expected - 1);
    /* The GPU must be worse by more than its own spread. */
    double own = isfinite(cell->spread) ? fabs(cell->spread / expected) : 0;
    if (rule->worse == JUDGE_NONE || expected <= 0 || worse <= (peak ? 0 : entry->tolerance) + own)
        return 0;
    struct finding *finding = findings_add(judge, gpu, entry->key, BASIS_REFERENCE);
    if (!finding)
        return -ENOMEM;
    finding->rule = (int32_t)m;
    finding->accused = true;
    finding->unit = cell->unit;
    finding->value = cell->value;
    finding->expected = expected;
    finding->deviation = cell->value / expected - 1;
    return explain(judge, rule, entry, finding);
}

/* Specifications are for whole GPUs, not for MIG instances. */
static bool is_partitioned(const struct fleet *fleet, uint32_t gpu)
{
    return fleet_fact_number(fleet, fleet_facts(fleet, SET_CONFIG, "mig"), gpu) > 0;
}

int judge_specifications(struct judge *judge)
{
    const struct fleet *fleet = &judge->fleet;
    for (size_t g = 0; g < fleet->group_count; g++) {
        const struct group *group = &fleet->groups[g];
        const struct judge_reference *reference =
            judge_references_find(judge->basis.references, fleet_text(fleet, group->name));
        for (size_t i = 0; i < group->count && reference; i++) {
            uint32_t gpu = group->members[i];
            if (!fleet_judged(&fleet->gpus[gpu]) || is_partitioned(fleet, gpu))
                continue;
            for (size_t e = 0; e < reference->entry_count; e++) {
                const struct reference_entry *entry = &reference->entries[e];
                if (entry->kind == REFERENCE_HARDWARE ? check_hardware(judge, entry, gpu)
                                                      : check_figure(judge, entry, gpu))
                    return -ENOMEM;
            }
        }
    }
    return 0;
}
