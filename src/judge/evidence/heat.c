/* Temperatures after the measurements, which are the same work for every GPU. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "judge/conditions.h"
#include "judge/evidence/stages.h"
#include "judge/model.h"
#include "judge/robust.h"

/* Places in a chassis and in a room differ by 10 C and more. So a GPU is hot only if it is both
 * this many degrees and this many times the scatter above the median of its population. */
static const double HOT_C = 20, HOT_SIGMA = 5;

struct heat_view {
    struct judge *judge;
    const struct fact_column *temperature, *margin, *throttle;
    double *numbers, *scratch;
};

/* Other rules report a clock that is lowered for heat. */
static bool is_slowed_for_heat(const struct heat_view *view, uint32_t gpu)
{
    const char *list = fleet_fact_text(&view->judge->fleet, view->throttle, gpu);
    return str_list_has(list, "sw_thermal") || str_list_has(list, "hw_thermal") ||
           str_list_has(list, "hw_slowdown");
}

/* The distance to the temperature at which the hardware slows down, in C; NaN: not known. */
static double heat_margin(const struct heat_view *view, uint32_t gpu)
{
    return fleet_fact_number(&view->judge->fleet, view->margin, gpu);
}

static void heat_check_margins(const struct heat_view *view)
{
    const struct fleet *fleet = &view->judge->fleet;
    for (size_t i = 0; i < fleet->count; i++) {
        uint32_t gpu = fleet->order[i];
        double margin = heat_margin(view, gpu);
        if (!(margin <= 0) || is_slowed_for_heat(view, gpu))
            continue;
        double celsius = fleet_fact_number(fleet, view->temperature, gpu);
        findings_add_rule(view->judge, gpu, "health.temperature_margin_c", EVIDENCE_FAULT,
                          VERDICT_DEGRADED, margin,
                          isnan(celsius)
                              ? str_format("%.0f C above its slowdown temperature", -margin)
                              : str_format("temperature %.0f C, it slows down from %.0f C on",
                                           celsius, celsius + margin));
    }
}

/* A kind of temperature, and whether the margin to the slowdown belongs to it. */
struct sensor {
    const struct fact_column *column;
    const char *metric, *words;
    bool has_margin;
};

static void heat_report(const struct heat_view *view, const struct sensor *sensor, uint32_t gpu,
                        double usual)
{
    struct judge *judge = view->judge;
    double celsius = fleet_fact_number(&judge->fleet, sensor->column, gpu);
    double margin = heat_margin(view, gpu);
    struct finding finding = finding_new(judge, gpu, sensor->metric, BASIS_FLEET, EVIDENCE_HINT);
    finding.unit = judge_symbol(judge, "C");
    finding_compare(&finding, celsius, usual);
    if (!(usual > 0))
        finding.deviation = NAN;
    struct strbuf text = {0};
    strbuf_printf(&text, "%s %.0f C, its peers have %.0f C after the same work", sensor->words,
                  celsius, usual);
    if (sensor->has_margin && !isnan(margin))
        strbuf_printf(&text, "; it slows down from %.0f C on", celsius + margin);
    findings_add(judge, finding, text.data);
}

/* Reports the hot GPUs of a group that are not reported in another way; none if too few
 * temperatures are known. */
static void heat_check_group(const struct heat_view *view, const struct group *group,
                             const struct sensor *sensor)
{
    const struct fleet *fleet = &view->judge->fleet;
    size_t n = 0;
    for (size_t i = 0; i < group->count; i++) {
        double celsius = fleet_fact_number(fleet, sensor->column, group->members[i]);
        if (fleet_judged(&fleet->gpus[group->members[i]]) && !isnan(celsius))
            view->numbers[n++] = celsius;
    }
    const struct robust_fit fit = robust_fit(view->numbers, n, view->scratch);
    double hot = fit.center + fmax(HOT_C, HOT_SIGMA * fit.sigma);
    for (size_t i = 0; i < group->count && n >= PEERS_MIN; i++) {
        uint32_t gpu = group->members[i];
        if (fleet_fact_number(fleet, sensor->column, gpu) >= hot &&
            !(heat_margin(view, gpu) <= 0) && !is_slowed_for_heat(view, gpu) &&
            !issue_find(view->judge, gpu, "health.temperature_c", BASIS_FLEET))
            heat_report(view, sensor, gpu, fit.center);
    }
}

void stage_heat(struct judge *judge)
{
    const struct fleet *fleet = &judge->fleet;
    struct heat_view view = {.judge = judge,
                             .temperature = fleet_facts(fleet, SET_HEALTH, "temperature_c"),
                             .margin = fleet_facts(fleet, SET_HEALTH, "temperature_margin_c"),
                             .throttle = fleet_facts(fleet, SET_HEALTH, "throttle"),
                             .numbers = mem_array(fleet->count, sizeof *view.numbers),
                             .scratch = mem_array(fleet->count, sizeof *view.scratch)};
    const struct sensor sensors[] = {
        {view.temperature, "health.temperature_c", "temperature", true},
        {fleet_facts(fleet, SET_HEALTH, "temperature_memory_c"), "health.temperature_memory_c",
         "temperature of the memory", false},
    };
    heat_check_margins(&view);
    for (size_t s = 0; s < COUNT_OF(sensors); s++)
        for (size_t k = 0; k < fleet->population_count; k++)
            heat_check_group(&view, &fleet->populations[k], &sensors[s]);
    free(view.numbers);
    free(view.scratch);
}
