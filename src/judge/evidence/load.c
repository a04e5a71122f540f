/* What the sustained load shows of a GPU, and why its clock is lower there than its peers'. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "inventory/curves.h"
#include "inventory/throttle.h"
#include "judge/evidence/stages.h"
#include "judge/verdict.h"

/* A reason that more than this share of the model has under load is usual: the power cap is. */
static const double USUAL = 0.2;

/* A GPU without peers whose clock falls by this share after the first second is watched. */
static const double FALL = 0.1;

static uint64_t load_reasons(const struct fleet *fleet, uint32_t gpu)
{
    double bits = fleet_value(fleet, "load.throttle", gpu, true);
    return bits > 0 && bits < 0x1p53 ? (uint64_t)bits : 0;
}

/* The reasons of this GPU that few GPUs of its model have. */
static uint64_t load_unusual_reasons(const struct fleet *fleet, uint32_t gpu)
{
    const struct group *group = &fleet->groups[fleet->gpus[gpu].group];
    uint64_t reasons = load_reasons(fleet, gpu), unusual = 0;
    for (uint64_t bit = 2; bit && bit <= reasons; bit <<= 1) {
        size_t have = 0;
        for (size_t i = 0; (reasons & bit) && i < group->count; i++)
            have += (load_reasons(fleet, group->members[i]) & bit) != 0;
        if ((reasons & bit) && ((double)have <= USUAL * (double)group->count || have == 1))
            unusual |= bit;
    }
    return unusual;
}

/* "under load the SM clock fell from 1970 to 1600 MHz: sw_thermal". */
static char *load_cause(const struct fleet *fleet, uint32_t gpu, uint64_t reasons)
{
    struct strbuf text = {0};
    double first = fleet_value(fleet, "load.clock.first", gpu, true);
    double steady = fleet_value(fleet, "load.clock.steady", gpu, true);
    strbuf_puts(&text, "under load the SM clock ");
    if (judge_number_lower(steady, first))
        strbuf_printf(&text, "fell from %.0f to %.0f MHz: ", first, steady);
    else
        strbuf_printf(&text, "is %.0f MHz: ", steady);
    throttle_put_text(reasons, &text);
    return text.data;
}

/* The hardware lowers its clock only to protect itself. */
static void load_check_hardware(struct judge *judge, uint32_t gpu)
{
    uint64_t reasons = load_reasons(&judge->fleet, gpu);
    if (!throttle_by_hardware(reasons))
        return;
    uint64_t unusual = load_unusual_reasons(&judge->fleet, gpu);
    findings_add_rule(judge, gpu, "load.throttle", EVIDENCE_FAULT, VERDICT_DEGRADED,
                      (double)reasons, load_cause(&judge->fleet, gpu, unusual ? unusual : reasons));
}

static void load_check_fall(struct judge *judge, uint32_t gpu)
{
    const struct fleet *fleet = &judge->fleet;
    double steady = fleet_value(fleet, "load.clock.steady", gpu, true);
    double fall = 1 - steady / fleet_value(fleet, "load.clock.first", gpu, true);
    uint64_t reasons = load_unusual_reasons(fleet, gpu);
    if (!(fall >= FALL) || !reasons || throttle_by_hardware(reasons) ||
        issue_find(judge, gpu, "load.clock.steady", BASIS_FLEET) ||
        issue_find(judge, gpu, "load.clock.kept", BASIS_FLEET) ||
        issue_find(judge, gpu, "load.flops", BASIS_FLEET))
        return;
    findings_add_rule(judge, gpu, "load.clock.steady", EVIDENCE_HINT, VERDICT_DEGRADED, steady,
                      load_cause(fleet, gpu, reasons));
}

/* A power limit that explains the loss is a better reason than the power cap that follows from
 * it: causes.c names it. A clock that fell further than the peers' fell for the reasons of this
 * GPU, even if the peers have them too: a power cap holds every H200. */
static void load_explain(struct judge *judge, const struct issue *issue)
{
    const struct fleet *fleet = &judge->fleet;
    struct finding finding = finding_about(judge, issue, EVIDENCE_CAUSE);
    if (finding.cause || finding.basis != BASIS_FLEET ||
        strncmp(fleet_text(fleet, finding.metric), "load.", 5) != 0)
        return;
    uint64_t reasons = load_unusual_reasons(fleet, finding.gpu);
    if (!reasons && issue_find(judge, finding.gpu, "load.clock.kept", BASIS_FLEET))
        reasons = load_reasons(fleet, finding.gpu);
    if (!reasons ||
        judge_number_lower(judge_condition_ratio(judge, JUDGE_POWER_LIMIT, finding.gpu), 1))
        return;
    finding.verdict = VERDICT_DEGRADED;
    findings_add(judge, finding, load_cause(fleet, finding.gpu, reasons));
}

void stage_load(struct judge *judge)
{
    const struct fleet *fleet = &judge->fleet;
    if (!fleet_metric(fleet, "load.throttle"))
        return;
    for (uint32_t i = 0; i < fleet->count; i++) {
        if (!fleet_judged(&fleet->gpus[i]) || fleet->gpus[i].group == GROUP_NONE)
            continue;
        load_check_hardware(judge, i);
        load_check_fall(judge, i);
    }
    for (size_t i = 0; i < judge->findings.issue_count; i++)
        load_explain(judge, &judge->findings.issues[i]);
}

static bool gpu_is_bad(const struct judge *judge, uint32_t gpu)
{
    if (judge->fleet.gpus[gpu].outlier)
        return true;
    const struct issue *issue = issue_last(judge, gpu);
    while (issue && (strncmp(fleet_text(&judge->fleet, issue->metric), "load.", 5) != 0 ||
                     certainty_of(judge, issue) == CERTAINTY_IGNORED))
        issue = issue_previous(judge, issue);
    return issue != NULL;
}

void judge_load_list(const struct judge *judge, uint32_t gpu, struct facts *out_load)
{
    const struct fleet *fleet = &judge->fleet;
    const struct metric_column *column = fleet_metric(fleet, LOAD_CURVE_METRIC);
    for (size_t k = 0; column && k < LOAD_CURVE_KEYS; k++)
        for (size_t i = 0; i < column->note_count; i++) {
            const char *key = fleet_text(fleet, column->notes[i].head.name);
            const struct note *note = &column->notes[i].notes[gpu];
            bool curve = load_curve_has(key);
            if (!str_equal(key, load_curve_keys[k]) || (curve && !gpu_is_bad(judge, gpu)))
                continue;
            fleet_put_note(fleet, &column->notes[i], note, out_load);
        }
}
