/* The SM clock. It differs by several per cent between healthy GPUs of one model. So a small loss
 * counts only if a condition lowers the clock of this GPU and not that of its peers. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "judge/fact_text.h"
#include "judge/held_clock.h"
#include "judge/own_defaults.h"
#include "judge/yardstick.h"

/* A throttle reason is unusual if at most this share of the model has it. */
static const double UNUSUAL = 0.2;

/* With an unusual condition, a GPU is accused if it loses this share, or if its clock is far below
 * those of its population. */
static const double LOSS = 0.03;

/* A setting explains a loss of 1 - ratio + FIT, where ratio is the setting over the usual one. */
static const double FIT = 0.02;

static const char METRIC[] = "clock.sm";
static const char UNEXPLAINED[] = "unexplained: no limit, setting or throttle reason holds it down";

struct view {
    struct judge *judge;
    const struct group *group;
    const struct fact_column *throttle;
    bool unusual[HELD_CLOCK_REASONS];
};

static bool has_reason(const struct view *view, uint32_t gpu, size_t reason)
{
    return held_clock_has(fleet_fact_text(&view->judge->fleet, view->throttle, gpu),
                          &held_clock_reasons[reason]);
}

static void find_unusual(struct view *view)
{
    for (size_t k = 0; k < HELD_CLOCK_REASONS; k++) {
        size_t having = 0, known = 0;
        for (size_t i = 0; i < view->group->count; i++) {
            having += has_reason(view, view->group->members[i], k);
            known += fleet_fact_text(&view->judge->fleet, view->throttle,
                                     view->group->members[i]) != NULL;
        }
        view->unusual[k] =
            known >= YARDSTICK_MIN && (double)having <= fmax(UNUSUAL * (double)known, 1);
    }
}

/* GPUs with the same board part: boards have power limits of their own. */
static const struct group *peers_of(const struct fleet *fleet, uint32_t gpu)
{
    return &fleet->populations[fleet->gpus[gpu].population];
}

/* The ratio of a setting to the usual one, if it is lower; otherwise 1. */
static double setting_ratio(const struct view *view, uint32_t gpu, const char *key)
{
    const struct fleet *fleet = &view->judge->fleet;
    const struct fact_column *column = fleet_facts(fleet, SET_CONFIG, key);
    const struct usual *usual = fleet_usual(fleet, peers_of(fleet, gpu), SET_CONFIG, column);
    double ratio = fleet_fact_number(fleet, column, gpu) /
                   (usual ? fleet_code_number(fleet, usual->code) : NAN);
    return ratio > 0 && ratio < 1 ? ratio : 1;
}

static char *setting_words(const struct view *view, uint32_t gpu, const char *key)
{
    const struct fleet *fleet = &view->judge->fleet;
    const struct fact_column *column = fleet_facts(fleet, SET_CONFIG, key);
    const struct usual *usual = fleet_usual(fleet, peers_of(fleet, gpu), SET_CONFIG, column);
    const struct fact own = fleet_fact(fleet, column, column->codes[gpu]);
    const struct fact other = fleet_fact(fleet, column, usual->code);
    struct strbuf text = {0};
    fact_text_put_key(&text, key);
    strbuf_puts(&text, " ");
    fact_text_put_value(&text, &own);
    strbuf_puts(&text, ", model has ");
    fact_text_put_value(&text, &other);
    if (text.failed)
        strbuf_fini(&text);
    return text.data;
}

/* The setting that explains the loss; NULL if there is none. Settings come before throttle reasons,
 * because software can change them. The clock falls by a smaller share than the power, so a power
 * limit explains at most its own share. It explains nothing if the driver names another reason. */
static const char *find_setting(const struct view *view, uint32_t gpu, double loss,
                                const struct held_clock_reason *reason)
{
    static const char *const keys[] = {"sm_clock_limit_mhz", "sm_clock_application_mhz",
                                       "power_limit_w"};
    bool by_power = !reason || strcmp(reason->name, "power_cap") == 0;
    for (size_t i = 0; i < COUNT_OF(keys) - !by_power; i++) {
        double room = 1 - setting_ratio(view, gpu, keys[i]);
        if (room > 0 && loss <= room + FIT)
            return keys[i];
    }
    return NULL;
}

static const struct held_clock_reason *find_reason(const struct view *view, uint32_t gpu)
{
    for (size_t k = 0; k < HELD_CLOCK_REASONS; k++)
        if (view->unusual[k] && has_reason(view, gpu, k))
            return &held_clock_reasons[k];
    return NULL;
}

static char *reason_words(const struct view *view, const struct held_clock_reason *reason,
                          uint32_t gpu)
{
    const struct fleet *fleet = &view->judge->fleet;
    double limit = fleet_fact_number(fleet, fleet_facts(fleet, SET_CONFIG, "power_limit_w"), gpu);
    double heat = fleet_fact_number(fleet, fleet_facts(fleet, SET_HEALTH, "temperature_c"), gpu);
    struct strbuf text = {0};
    strbuf_puts(&text, reason->words);
    if (strcmp(reason->name, "power_cap") == 0 && limit > 0)
        strbuf_printf(&text, " of %.0f W, the limit that its peers keep within", limit);
    else if (strstr(reason->name, "thermal") && heat > 0)
        strbuf_printf(&text, " at %.0f C", heat);
    strbuf_printf(&text, " (%s)", reason->name);
    if (text.failed)
        strbuf_fini(&text);
    return text.data;
}

/* The GPU's finding of its clock on basis `fleet`; a new one if the scores gave none. */
static struct finding *clock_finding(const struct view *view, uint32_t gpu, size_t metric)
{
    struct judge *judge = view->judge;
    struct finding *finding = finding_of(judge, gpu, METRIC, BASIS_FLEET);
    const struct cell *cell = fleet_number(fleet_metric(&judge->fleet, METRIC), gpu, true);
    if (finding)
        return finding;
    finding = findings_add(judge, gpu, METRIC, BASIS_FLEET);
    if (!finding)
        return NULL;
    finding->rule = (int32_t)metric;
    finding->unit = cell->unit;
    finding->value = cell->value;
    finding->expected = cell->value / judge->clock_ratio[gpu];
    finding->deviation = judge->clock_ratio[gpu] - 1;
    return finding;
}

/* Whether the clock is so low that a condition which holds it down accuses the GPU. */
static bool is_much_lower(const struct view *view, uint32_t gpu, size_t metric)
{
    const struct judge *judge = view->judge;
    const struct judge_config *config = judge->basis.config;
    double loss = 1 - judge->clock_ratio[gpu];
    return loss >= LOSS || (loss >= config->metrics[metric].floor &&
                            judge->scores[gpu * config->metric_count + metric] >=
                                judge_level(judge, gpu, metric)->bound);
}

/* Sets the cause to the condition that lowers the clock, if it explains the loss. Without one, a
 * cause that another stage has set is kept. */
static int explain(const struct view *view, const struct held_clock_reason *reason,
                   struct finding *finding)
{
    const char *setting = find_setting(view, finding->gpu, -finding->deviation, reason);
    bool locked = !setting && !reason && own_defaults_locked(&view->judge->fleet, finding->gpu);
    bool held = setting || reason || locked;
    if (!held && finding->cause)
        return 0;
    char *cause = setting  ? setting_words(view, finding->gpu, setting)
                  : reason ? reason_words(view, reason, finding->gpu)
                  : locked ? own_defaults_locked_text(&view->judge->fleet, finding->gpu)
                           : str_copy(UNEXPLAINED);
    if (!cause)
        return -ENOMEM;
    free(finding->cause);
    finding->cause = cause;
    if (held)
        finding->kind = reason && !setting ? reason->kind : KIND_MISCONFIGURED;
    finding->clock_held = held;
    finding->throttled = reason && !setting;
    finding->accused |= held && is_much_lower(view, finding->gpu, (size_t)finding->rule);
    return 0;
}

static int judge_gpu(const struct view *view, uint32_t gpu, size_t metric)
{
    struct judge *judge = view->judge;
    double loss = 1 - judge->clock_ratio[gpu];
    const struct held_clock_reason *reason = find_reason(view, gpu);
    bool held = reason || find_setting(view, gpu, loss, reason);
    if (!fleet_number(fleet_metric(&judge->fleet, METRIC), gpu, true))
        return 0;
    if (held && loss >= judge->basis.config->metrics[metric].floor &&
        !clock_finding(view, gpu, metric))
        return -ENOMEM;
    for (int basis = BASIS_FLEET; basis <= BASIS_WORLD; basis++) {
        struct finding *finding = finding_of(judge, gpu, METRIC, (enum basis)basis);
        if (finding && explain(view, reason, finding))
            return -ENOMEM;
    }
    return 0;
}

/* Adds a finding for each figure that a lowered clock makes worse. */
static int add_consequences(const struct view *view, uint32_t gpu)
{
    struct judge *judge = view->judge;
    const struct judge_config *config = judge->basis.config;
    const struct finding *clock = finding_of(judge, gpu, METRIC, BASIS_FLEET);
    if (!clock || !clock->accused)
        return 0;
    const struct finding kept = *clock; /* findings_add may move the list */
    for (size_t m = 0; m < config->metric_count; m++) {
        const struct judge_metric *rule = &config->metrics[m];
        const struct yardstick *y = yardstick_of(judge, view->group, m);
        const struct cell *cell = fleet_number(judge->columns[m], gpu, true);
        double expected = y->center / judge_level(judge, gpu, m)->factor;
        double share = cell && y->usable ? cell->value / expected - 1 : 0;
        if (y->clock_share <= 0 || judge_worse_share(rule->worse, share) < rule->accuse ||
            finding_of(judge, gpu, rule->metric, BASIS_FLEET))
            continue;
        struct finding *finding = findings_add(judge, gpu, rule->metric, BASIS_FLEET);
        if (!finding)
            return -ENOMEM;
        finding->rule = (int32_t)m;
        finding->accused = true;
        finding->kind = kept.kind;
        finding->explained_by = 1u << JUDGE_SM_CLOCK;
        finding->unit = cell->unit;
        finding->value = cell->value;
        finding->expected = expected;
        finding->deviation = share;
        finding->cause = str_format("SM clock %.0f MHz, model runs at %.0f MHz: %s", kept.value,
                                    kept.expected, kept.cause);
        if (!finding->cause)
            return -ENOMEM;
    }
    return 0;
}

int judge_clocks(struct judge *judge)
{
    const struct judge_config *config = judge->basis.config;
    size_t metric = 0;
    while (metric < config->metric_count && !str_equal(config->metrics[metric].metric, METRIC))
        metric++;
    for (size_t g = 0; g < judge->fleet.group_count && metric < config->metric_count; g++) {
        struct view view = {.judge = judge,
                            .group = &judge->fleet.groups[g],
                            .throttle = fleet_facts(&judge->fleet, SET_HEALTH, "throttle")};
        find_unusual(&view);
        for (size_t i = 0; i < view.group->count; i++) {
            uint32_t gpu = view.group->members[i];
            if (fleet_judged(&judge->fleet.gpus[gpu]) &&
                (judge_gpu(&view, gpu, metric) || add_consequences(&view, gpu)))
                return -ENOMEM;
        }
    }
    return 0;
}
