/* Figures and hardware against the reference of the model. Needs no other GPUs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "judge/evidence/stages.h"
#include "judge/fact_text.h"
#include "judge/reference.h"

/* Drivers reserve up to this share of the memory, ECC included. */
static const double MEMORY_KEPT = 0.07;

/* With a memory clock below this share of the highest one, a low bandwidth is explained by the
 * setting. */
static const double FULL_CLOCK = 0.98;

static void reference_check_hardware(struct judge *judge, const struct reference_entry *entry,
                                     uint32_t gpu)
{
    const struct fleet *fleet = &judge->fleet;
    double value = fleet_fact_number(fleet, fleet_facts(fleet, SET_HARDWARE, entry->key), gpu);
    double kept = strcmp(entry->key, "memory_bytes") == 0 ? MEMORY_KEPT : 0;
    const char *unit = fact_text_unit(entry->key);
    if (!(value < entry->value * (1 - kept)))
        return;
    char metric[80];
    snprintf(metric, sizeof metric, "hardware.%.60s", entry->key);
    struct finding finding = finding_new(judge, gpu, metric, BASIS_REFERENCE, EVIDENCE_FAULT);
    finding.unit = judge_symbol(judge, unit);
    finding.verdict = VERDICT_MISMATCHED;
    finding_compare(&finding, value, entry->value);
    struct strbuf text = {0};
    fact_text_put_key(&text, entry->key);
    strbuf_puts(&text, " ");
    fact_text_put_number(&text, value, unit);
    strbuf_puts(&text, ", the model is specified with ");
    fact_text_put_number(&text, entry->value, unit);
    findings_add(judge, finding, text.data);
}

static void reference_check_figure(struct judge *judge, const struct reference_entry *entry,
                                   uint32_t gpu)
{
    const struct judge_config *config = judge->basis.config;
    const struct fleet *fleet = &judge->fleet;
    const struct cell *cell = fleet_number(fleet_metric(fleet, entry->key), gpu, false);
    size_t m = 0;
    while (m < config->metric_count && !str_equal(config->metrics[m].metric, entry->key))
        m++;
    if (!cell || m == config->metric_count)
        return;
    const struct judge_metric *rule = &config->metrics[m];
    bool peak = entry->kind == REFERENCE_PEAK;
    double expected = entry->value * (peak ? rule->peak_share : 1);
    double worse = judge_worse_share(rule->worse, cell->value / expected - 1);
    /* The GPU must be worse by more than its own spread. */
    double own = isfinite(cell->spread) ? fabs(cell->spread / expected) : 0;
    if (rule->worse == JUDGE_NONE || expected <= 0 || worse <= (peak ? 0 : entry->tolerance) + own)
        return;
    struct finding finding = finding_new(judge, gpu, entry->key, BASIS_REFERENCE, EVIDENCE_BEYOND);
    finding.rule = (int32_t)m;
    finding.unit = cell->unit;
    finding_compare(&finding, cell->value, expected);
    double clock = judge_condition_value(fleet, JUDGE_MEMORY_CLOCK, gpu);
    double highest =
        fleet_fact_number(fleet, fleet_facts(fleet, SET_HARDWARE, "memory_clock_max_mhz"), gpu);
    double ratio = clock / highest > 0 && isfinite(clock / highest) ? clock / highest : 1;
    if (rule->follows[JUDGE_MEMORY_CLOCK] > 0 && ratio < FULL_CLOCK &&
        judge_loss_fits(worse, 1 - ratio, 0)) {
        finding.verdict = VERDICT_MISCONFIGURED;
        finding.explained_by = 1u << JUDGE_MEMORY_CLOCK;
        findings_add(judge, finding,
                     str_format("memory clock %.0f MHz of %.0f MHz", clock, clock / ratio));
    } else if (peak)
        findings_add(
            judge, finding,
            str_format(
                "cause unknown: below %.0f %% of the %.6g %s that the model is specified for",
                100 * rule->peak_share, entry->value, fleet_text(fleet, cell->unit)));
    else
        findings_add(judge, finding,
                     str_format("cause unknown: worse than the reference by more than %.0f %%",
                                100 * entry->tolerance));
}

/* Specifications are for whole GPUs, not for MIG instances and virtual GPUs; figures that depend on
 * the kind of the GPU are not compared with them. */
void stage_references(struct judge *judge)
{
    const struct fleet *fleet = &judge->fleet;
    const struct fact_column *mig = fleet_facts(fleet, SET_CONFIG, "mig");
    for (size_t g = 0; g < fleet->group_count; g++) {
        const struct group *group = &fleet->groups[g];
        const struct judge_reference *reference =
            judge_references_find(judge->basis.references, fleet_text(fleet, group->name));
        for (size_t i = 0; i < group->count && reference; i++) {
            uint32_t gpu = group->members[i];
            if (!fleet_judged(&fleet->gpus[gpu]) || fleet_fact_number(fleet, mig, gpu) > 0 ||
                fleet->gpus[gpu].sliced)
                continue;
            const struct kind_view kind = fleet_kind_view(fleet, gpu);
            for (size_t e = 0; e < reference->entry_count; e++) {
                const struct reference_entry *entry = &reference->entries[e];
                if (entry->kind == REFERENCE_HARDWARE)
                    reference_check_hardware(judge, entry, gpu);
                else if (!catalogue_kinds_differ(&kind, NULL, entry->key))
                    reference_check_figure(judge, entry, gpu);
            }
        }
    }
}
