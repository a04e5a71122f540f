/* What the sustained load shows of a GPU, and why its clock is lower there than its peers'. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "inventory/load_curve.h"
#include "inventory/throttle.h"
#include "judge/stages.h"

/* A reason that more than this share of the model has under load is usual: the power cap is. */
static const double USUAL = 0.2;

/* A GPU without peers whose clock falls by this share after the first second is watched. */
static const double FALL = 0.1;

static double value_of(const struct fleet *fleet, const char *metric, uint32_t gpu)
{
    const struct cell *cell = fleet_number(fleet_metric(fleet, metric), gpu, true);
    return cell ? cell->value : NAN;
}

static uint64_t reasons_of(const struct fleet *fleet, uint32_t gpu)
{
    double bits = value_of(fleet, "load.throttle", gpu);
    return bits > 0 && bits < 0x1p53 ? (uint64_t)bits : 0;
}

/* The reasons of this GPU that few GPUs of its model have. */
static uint64_t unusual_reasons(const struct fleet *fleet, uint32_t gpu)
{
    const struct group *group = &fleet->groups[fleet->gpus[gpu].group];
    uint64_t reasons = reasons_of(fleet, gpu), unusual = 0;
    for (uint64_t bit = 2; bit && bit <= reasons; bit <<= 1) {
        size_t have = 0;
        for (size_t i = 0; (reasons & bit) && i < group->count; i++)
            have += (reasons_of(fleet, group->members[i]) & bit) != 0;
        if ((reasons & bit) && ((double)have <= USUAL * (double)group->count || have == 1))
            unusual |= bit;
    }
    return unusual;
}

/* "under load the SM clock fell from 1970 to 1600 MHz: sw_thermal"; NULL: out of memory. */
static char *cause_of(const struct fleet *fleet, uint32_t gpu, uint64_t reasons)
{
    struct strbuf text = {0};
    double first = value_of(fleet, "load.clock.first", gpu);
    double steady = value_of(fleet, "load.clock.steady", gpu);
    strbuf_puts(&text, "under load the SM clock ");
    if (judge_number_lower(steady, first))
        strbuf_printf(&text, "fell from %.0f to %.0f MHz: ", first, steady);
    else
        strbuf_printf(&text, "is %.0f MHz: ", steady);
    throttle_put_text(reasons, &text);
    if (text.failed)
        strbuf_fini(&text);
    return text.data;
}

/* The hardware lowers its clock only to protect itself. */
static int judge_hardware(struct judge *judge, uint32_t gpu)
{
    uint64_t reasons = reasons_of(&judge->fleet, gpu);
    if (!throttle_by_hardware(reasons))
        return 0;
    uint64_t usual = reasons & ~unusual_reasons(&judge->fleet, gpu);
    return findings_add_rule(
        judge, gpu, "load.throttle", true, KIND_DEGRADED, (double)reasons,
        cause_of(&judge->fleet, gpu, reasons & ~usual ? reasons & ~usual : reasons));
}

static bool has_finding(struct judge *judge, uint32_t gpu)
{
    return finding_of(judge, gpu, "load.clock.steady", BASIS_FLEET) ||
           finding_of(judge, gpu, "load.clock.kept", BASIS_FLEET) ||
           finding_of(judge, gpu, "load.flops", BASIS_FLEET);
}

static int watch_fall(struct judge *judge, uint32_t gpu)
{
    const struct fleet *fleet = &judge->fleet;
    double first = value_of(fleet, "load.clock.first", gpu);
    double fall = 1 - value_of(fleet, "load.clock.steady", gpu) / first;
    uint64_t reasons = unusual_reasons(fleet, gpu);
    if (!(fall >= FALL) || !reasons || throttle_by_hardware(reasons) || has_finding(judge, gpu))
        return 0;
    return findings_add_rule(judge, gpu, "load.clock.steady", false, KIND_DEGRADED,
                             value_of(fleet, "load.clock.steady", gpu),
                             cause_of(fleet, gpu, reasons));
}

/* The reasons that explain a figure under load. A clock that fell further than the peers' fell for
 * the reasons of this GPU, even if the peers have them too: a power cap holds every H200. */
static uint64_t explaining_reasons(struct judge *judge, const struct finding *finding)
{
    const struct fleet *fleet = &judge->fleet;
    uint64_t reasons = unusual_reasons(fleet, finding->gpu);
    if (strncmp(fleet_text(fleet, finding->metric), "load.", 5) != 0)
        return 0;
    bool fell = finding_of(judge, finding->gpu, "load.clock.kept", BASIS_FLEET) != NULL;
    return !reasons && fell ? reasons_of(fleet, finding->gpu) : reasons;
}

/* A power limit that explains the loss is a better reason than the power cap that follows from
 * it: causes.c names it. */
static int explain(struct judge *judge, struct finding *finding)
{
    const struct fleet *fleet = &judge->fleet;
    uint64_t reasons = explaining_reasons(judge, finding);
    if (finding->cause || finding->basis != BASIS_FLEET || !reasons ||
        judge_number_lower(judge_condition_ratio(judge, JUDGE_POWER_LIMIT, finding->gpu), 1))
        return 0;
    finding->cause = cause_of(fleet, finding->gpu, reasons);
    finding->kind = KIND_DEGRADED;
    return finding->cause ? 0 : -ENOMEM;
}

int judge_load(struct judge *judge)
{
    const struct fleet *fleet = &judge->fleet;
    if (!fleet_metric(fleet, "load.throttle"))
        return 0;
    for (uint32_t i = 0; i < fleet->count; i++)
        if (fleet_judged(&fleet->gpus[i]) && fleet->gpus[i].group != GROUP_NONE &&
            (judge_hardware(judge, i) || watch_fall(judge, i)))
            return -ENOMEM;
    for (size_t i = 0; i < judge->findings.count; i++)
        if (explain(judge, &judge->findings.items[i]))
            return -ENOMEM;
    return 0;
}

static bool is_bad(const struct judge *judge, uint32_t gpu)
{
    if (judge->fleet.gpus[gpu].outlier)
        return true;
    for (uint32_t at = judge->findings.last[gpu]; at;) {
        const struct finding *finding = &judge->findings.items[at - 1];
        const char *metric = fleet_text(&judge->fleet, finding->metric);
        if (!finding->dropped && strncmp(metric, "load.", 5) == 0)
            return true;
        at = finding->previous;
    }
    return false;
}

int judge_load_list(const struct judge *judge, uint32_t gpu, struct facts *out_load)
{
    const struct fleet *fleet = &judge->fleet;
    const struct metric_column *column = fleet_metric(fleet, LOAD_CURVE_METRIC);
    for (size_t k = 0; column && k < LOAD_CURVE_KEYS; k++)
        for (size_t i = 0; i < column->note_count; i++) {
            const char *key = fleet_text(fleet, column->notes[i].head.name);
            const struct note *note = &column->notes[i].notes[gpu];
            bool curve = str_equal(key, LOAD_CURVE_KEY);
            if (!str_equal(key, load_curve_keys[k]) || (curve && !is_bad(judge, gpu)))
                continue;
            if ((note->kind == FACT_TEXT &&
                 facts_set_text(out_load, key, fleet_text(fleet, note->text))) ||
                (note->kind == FACT_INT && facts_set_int(out_load, key, (int64_t)note->number)) ||
                (note->kind == FACT_REAL && facts_set_real(out_load, key, note->number)))
                return -ENOMEM;
        }
    return 0;
}
