/* The SM clock. It differs by several per cent between healthy GPUs of one model. So a small loss
 * counts only if a condition lowers the clock of this GPU and not that of its peers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "judge/conditions.h"
#include "judge/evidence/stages.h"
#include "judge/fact_text.h"
#include "judge/model.h"
#include "judge/verdict.h"

/* A throttle reason is unusual if at most this share of the model has it. */
static const double UNUSUAL = 0.2;

/* With an unusual condition, a GPU is accused if it loses this share, or if its clock is far below
 * those of its population. */
static const double LOSS = 0.03;

/* A setting explains a loss of 1 - ratio + FIT, where ratio is the setting over the usual one. */
static const double FIT = 0.02;

static const char METRIC[] = "clock.sm";
static const char CAUSE_UNKNOWN[] =
    "cause unknown: no limit, setting or throttle reason holds it down";

struct clock_view {
    struct judge *judge;
    const struct group *group;
    size_t judged; /* GPUs of the group */
    size_t metric; /* of clock.sm in the configuration */
    const struct fact_column *throttle;
    bool unusual[THROTTLE_REASONS]; /* throttle reasons that few GPUs of the model have */
};

static const char *throttle_list_of(const struct clock_view *view, uint32_t gpu)
{
    return fleet_fact_text(&view->judge->fleet, view->throttle, gpu);
}

static void clock_find_unusual(struct clock_view *view)
{
    for (size_t i = 0; i < view->group->count; i++)
        view->judged += fleet_judged(&view->judge->fleet.gpus[view->group->members[i]]);
    for (size_t k = 0; k < THROTTLE_REASONS; k++) {
        size_t having = 0, known = 0;
        for (size_t i = 0; i < view->group->count; i++) {
            const char *list = throttle_list_of(view, view->group->members[i]);
            having += str_list_has(list, throttle_reasons[k].name);
            known += list != NULL;
        }
        view->unusual[k] = known >= PEERS_MIN && (double)having <= fmax(UNUSUAL * (double)known, 1);
    }
}

static const struct throttle_reason *clock_find_reason(const struct clock_view *view, uint32_t gpu)
{
    for (size_t k = 0; k < THROTTLE_REASONS; k++)
        if (view->unusual[k] && str_list_has(throttle_list_of(view, gpu), throttle_reasons[k].name))
            return &throttle_reasons[k];
    return NULL;
}

/* A setting that is usual among GPUs with the same board part: boards have power limits of their
 * own. NULL: not known. */
static const struct usual *clock_usual_setting(const struct fleet *fleet, uint32_t gpu,
                                               const struct fact_column *column)
{
    const struct group *peers = &fleet->populations[fleet->gpus[gpu].population];
    return fleet_usual(fleet, peers, SET_CONFIG, column);
}

/* The setting that explains the loss; NULL if there is none. Settings come before throttle reasons,
 * because software can change them. The clock falls by a smaller share than the power, so a power
 * limit explains at most its own share. It explains nothing if the driver names another reason. */
static const char *clock_find_setting(const struct clock_view *view, uint32_t gpu, double loss,
                                      const struct throttle_reason *reason)
{
    static const char *const keys[] = {"sm_clock_limit_mhz", "sm_clock_application_mhz",
                                       "power_limit_w"};
    const struct fleet *fleet = &view->judge->fleet;
    bool by_power = !reason || strcmp(reason->name, "power_cap") == 0;
    for (size_t i = 0; i < COUNT_OF(keys) - !by_power; i++) {
        const struct fact_column *column = fleet_facts(fleet, SET_CONFIG, keys[i]);
        const struct usual *usual = clock_usual_setting(fleet, gpu, column);
        double ratio = fleet_fact_number(fleet, column, gpu) /
                       (usual ? fleet_code_number(fleet, usual->code) : NAN);
        if (ratio > 0 && ratio < 1 && loss <= 1 - ratio + FIT)
            return keys[i];
    }
    return NULL;
}

/* Enough GPUs agree on it. */
static bool clock_setting_is_clear(const struct fleet *fleet, uint32_t gpu, const char *key)
{
    return usual_is_clear(clock_usual_setting(fleet, gpu, fleet_facts(fleet, SET_CONFIG, key)));
}

static char *clock_setting_words(const struct fleet *fleet, uint32_t gpu, const char *key)
{
    const struct fact_column *column = fleet_facts(fleet, SET_CONFIG, key);
    const struct usual *usual = clock_usual_setting(fleet, gpu, column);
    const struct fact own = fleet_fact(fleet, column, column->codes[gpu]);
    const struct fact other = fleet_fact(fleet, column, usual->code);
    struct strbuf text = {0};
    fact_text_put_key(&text, key);
    strbuf_puts(&text, " ");
    fact_text_put_value(&text, &own);
    strbuf_puts(&text, ", model has ");
    fact_text_put_value(&text, &other);
    return text.data;
}

static char *clock_reason_words(const struct fleet *fleet, const struct throttle_reason *reason,
                                uint32_t gpu)
{
    double limit = fleet_fact_number(fleet, fleet_facts(fleet, SET_CONFIG, "power_limit_w"), gpu);
    double heat = fleet_fact_number(fleet, fleet_facts(fleet, SET_HEALTH, "temperature_c"), gpu);
    struct strbuf text = {0};
    strbuf_puts(&text, reason->words);
    if (strcmp(reason->name, "power_cap") == 0 && limit > 0)
        strbuf_printf(&text, " of %.0f W, the limit that its peers keep within", limit);
    else if (strstr(reason->name, "thermal") && heat > 0)
        strbuf_printf(&text, " at %.0f C", heat);
    strbuf_printf(&text, " (%s)", reason->name);
    return text.data;
}

/* Whether the clock is so low that a condition which holds it down accuses the GPU. */
static bool clock_is_much_lower(const struct clock_view *view, uint32_t gpu)
{
    const struct judge *judge = view->judge;
    const struct judge_config *config = judge->basis.config;
    double loss = 1 - judge->clock_ratio[gpu];
    return loss >= LOSS || (loss >= config->metrics[view->metric].floor &&
                            judge->scores[judge_slot(judge, gpu, view->metric)] >= judge->bound);
}

/* Adds the condition that lowers the clock, if it explains the loss. Without one, a cause that
 * another stage found is kept. */
static void clock_explain(const struct clock_view *view, const struct throttle_reason *reason,
                          const struct issue *issue)
{
    struct judge *judge = view->judge;
    const struct fleet *fleet = &judge->fleet;
    struct finding finding = finding_about(judge, issue, EVIDENCE_CAUSE);
    uint32_t gpu = finding.gpu;
    const char *setting = clock_find_setting(view, gpu, -finding.deviation, reason);
    bool lower = clock_is_much_lower(view, gpu), much = lower && view->judged >= PEERS_MIN;
    char *own_default = NULL;
    if (setting) {
        bool sure = lower && clock_setting_is_clear(fleet, gpu, setting);
        finding.evidence = sure ? EVIDENCE_HELD : EVIDENCE_HELD_A_LITTLE;
        finding.verdict = VERDICT_MISCONFIGURED;
        findings_add(judge, finding, clock_setting_words(fleet, gpu, setting));
    } else if (reason) {
        finding.evidence = much ? EVIDENCE_THROTTLED : EVIDENCE_THROTTLED_A_LITTLE;
        finding.verdict = reason->verdict;
        findings_add(judge, finding, clock_reason_words(fleet, reason, gpu));
    } else if (judge_clock_is_locked(fleet, gpu)) {
        finding.evidence = much ? EVIDENCE_HELD : EVIDENCE_HELD_A_LITTLE;
        finding.verdict = VERDICT_MISCONFIGURED;
        findings_add(judge, finding, judge_locked_clock_text(fleet, gpu));
    } else if ((own_default = judge_undercut_text(fleet, gpu)) != NULL) {
        finding.evidence = EVIDENCE_HELD_A_LITTLE;
        finding.verdict = VERDICT_MISCONFIGURED;
        findings_add(judge, finding, own_default);
    } else if (!finding.cause)
        findings_add(judge, finding, str_copy(CAUSE_UNKNOWN));
}

static void clock_judge(const struct clock_view *view, uint32_t gpu)
{
    struct judge *judge = view->judge;
    double loss = 1 - judge->clock_ratio[gpu];
    const struct cell *cell = fleet_number(fleet_metric(&judge->fleet, METRIC), gpu, true);
    const struct throttle_reason *reason = clock_find_reason(view, gpu);
    if (!cell)
        return;
    if (loss >= judge->basis.config->metrics[view->metric].floor &&
        !issue_find(judge, gpu, METRIC, BASIS_FLEET) &&
        (reason || clock_find_setting(view, gpu, loss, reason))) {
        struct finding finding = finding_new(judge, gpu, METRIC, BASIS_FLEET, EVIDENCE_WITHIN);
        finding.rule = (int32_t)view->metric;
        finding.unit = cell->unit;
        finding.value = cell->value;
        finding.expected = cell->value / judge->clock_ratio[gpu];
        finding.deviation = judge->clock_ratio[gpu] - 1;
        findings_add(judge, finding, NULL);
    }
    for (int basis = BASIS_FLEET; basis <= BASIS_WORLD; basis++) {
        const struct issue *issue = issue_find(judge, gpu, METRIC, (enum basis)basis);
        if (issue)
            clock_explain(view, reason, issue);
    }
}

/* How far the figure is from what is usual at the usual clock, where the SMs are placed like this.
 */
static double whole_deviation(const struct judge *judge, uint32_t gpu, size_t metric)
{
    double worse = judge->worse[judge_slot(judge, gpu, metric)];
    double at_its_clock =
        judge->basis.config->metrics[metric].worse == JUDGE_HIGHER ? worse : -worse;
    double share = model_figure(judge, gpu, metric)->clock_share;
    return (1 + at_its_clock) / judge_clock_factor(judge, share, gpu) - 1;
}

/* Adds a finding for each figure that a lowered clock makes worse. */
static void clock_add_consequences(const struct clock_view *view, uint32_t gpu)
{
    struct judge *judge = view->judge;
    const struct judge_config *config = judge->basis.config;
    const struct issue *issue = issue_find(judge, gpu, METRIC, BASIS_FLEET);
    if (!issue || certainty_by_evidence(issue) != CERTAINTY_SURE)
        return;
    const struct finding clock = *issue_finding(judge, issue);
    for (size_t m = 0; m < config->metric_count; m++) {
        const struct judge_metric *rule = &config->metrics[m];
        const struct usual_figure *usual = model_figure(judge, gpu, m);
        const struct cell *cell = fleet_number(judge->columns[m], gpu, true);
        double share = whole_deviation(judge, gpu, m);
        if (!cell || !usual->usable || usual->clock_share <= 0 ||
            !(judge_worse_share(rule->worse, share) >= rule->accuse) ||
            issue_find(judge, gpu, rule->metric, BASIS_FLEET))
            continue;
        struct finding finding =
            finding_new(judge, gpu, rule->metric, BASIS_FLEET, EVIDENCE_CONSEQUENCE);
        finding.rule = (int32_t)m;
        finding.verdict = clock.verdict;
        finding.explained_by = 1u << JUDGE_SM_CLOCK;
        finding.unit = cell->unit;
        finding.value = cell->value;
        finding.expected = cell->value / (1 + share);
        finding.deviation = share;
        findings_add(judge, finding,
                     str_format("SM clock %.0f MHz, model runs at %.0f MHz: %s", clock.value,
                                clock.expected, clock.cause));
    }
}

void stage_clocks(struct judge *judge)
{
    const struct judge_config *config = judge->basis.config;
    size_t metric = 0;
    while (metric < config->metric_count && !str_equal(config->metrics[metric].metric, METRIC))
        metric++;
    for (size_t g = 0; g < judge->fleet.group_count && metric < config->metric_count; g++) {
        struct clock_view view = {.judge = judge,
                                  .group = &judge->fleet.groups[g],
                                  .metric = metric,
                                  .throttle = fleet_facts(&judge->fleet, SET_HEALTH, "throttle")};
        clock_find_unusual(&view);
        for (size_t i = 0; i < view.group->count; i++) {
            uint32_t gpu = view.group->members[i];
            if (!fleet_judged(&judge->fleet.gpus[gpu]))
                continue;
            clock_judge(&view, gpu);
            clock_add_consequences(&view, gpu);
        }
    }
}
