/* Temperatures after the measurements, which are the same work for every GPU. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "judge/held_clock.h"
#include "judge/robust.h"
#include "judge/yardstick.h"

/* Places in a chassis and in a room differ by 10 C and more. So a GPU is hot only if it is both
 * this many degrees and this many times the scatter above the median of its population. */
static const double HOT_C = 20, HOT_SIGMA = 5;

struct view {
    struct judge *judge;
    const struct fact_column *temperature, *margin, *throttle;
    double *numbers, *scratch;
};

/* Other rules report a clock that is lowered for heat. */
static bool is_throttled(const struct view *view, uint32_t gpu)
{
    static const char *const reasons[] = {"sw_thermal", "hw_thermal", "hw_slowdown"};
    const char *list = fleet_fact_text(&view->judge->fleet, view->throttle, gpu);
    for (size_t i = 0; i < COUNT_OF(reasons); i++) {
        const struct held_clock_reason reason = {.name = reasons[i]};
        if (held_clock_has(list, &reason))
            return true;
    }
    return false;
}

/* At the temperature at which the hardware slows down. */
static bool has_no_margin(const struct view *view, uint32_t gpu)
{
    return fleet_fact_number(&view->judge->fleet, view->margin, gpu) <= 0;
}

static int check_margin(const struct view *view)
{
    const struct fleet *fleet = &view->judge->fleet;
    for (size_t i = 0; i < fleet->count; i++) {
        uint32_t gpu = fleet->order[i];
        if (!has_no_margin(view, gpu) || is_throttled(view, gpu))
            continue;
        double margin = fleet_fact_number(fleet, view->margin, gpu);
        double celsius = fleet_fact_number(fleet, view->temperature, gpu);
        char *cause = isnan(celsius)
                          ? str_format("%.0f C above its slowdown temperature", -margin)
                          : str_format("temperature %.0f C, it slows down from %.0f C on", celsius,
                                       celsius + margin);
        if (findings_add_rule(view->judge, gpu, "health.temperature_margin_c", true, KIND_DEGRADED,
                              margin, cause))
            return -ENOMEM;
    }
    return 0;
}

/* A kind of temperature, and whether the margin to the slowdown belongs to it. */
struct sensor {
    const struct fact_column *column;
    const char *metric, *words;
    bool has_margin;
};

static char *words_of(const struct view *view, const struct sensor *sensor, uint32_t gpu,
                      double celsius, double usual)
{
    double margin = fleet_fact_number(&view->judge->fleet, view->margin, gpu);
    struct strbuf text = {0};
    strbuf_printf(&text, "%s %.0f C, its peers have %.0f C after the same work", sensor->words,
                  celsius, usual);
    if (sensor->has_margin && !isnan(margin))
        strbuf_printf(&text, "; it slows down from %.0f C on", celsius + margin);
    if (text.failed)
        strbuf_fini(&text);
    return text.data;
}

static int report(const struct view *view, const struct sensor *sensor, uint32_t gpu, double usual)
{
    double celsius = fleet_fact_number(&view->judge->fleet, sensor->column, gpu);
    struct finding *finding = findings_add(view->judge, gpu, sensor->metric, BASIS_FLEET);
    if (!finding || symbols_text(&view->judge->fleet.symbols, "C", &finding->unit))
        return -ENOMEM;
    finding->value = celsius;
    finding->expected = usual;
    finding->deviation = usual > 0 ? celsius / usual - 1 : NAN;
    finding->cause = words_of(view, sensor, gpu, celsius, usual);
    return finding->cause ? 0 : -ENOMEM;
}

/* Not reported in another way. */
static bool is_news(const struct view *view, uint32_t gpu)
{
    return !has_no_margin(view, gpu) && !is_throttled(view, gpu) &&
           !finding_of(view->judge, gpu, "health.temperature_c", BASIS_FLEET);
}

/* Reports the hot GPUs of a group; none if too few temperatures are known. */
static int check_group(const struct view *view, const struct group *group,
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
    for (size_t i = 0; i < group->count && n >= YARDSTICK_MIN; i++) {
        uint32_t gpu = group->members[i];
        if (fleet_fact_number(fleet, sensor->column, gpu) >= hot && is_news(view, gpu) &&
            report(view, sensor, gpu, fit.center))
            return -ENOMEM;
    }
    return 0;
}

int judge_heat(struct judge *judge)
{
    const struct fleet *fleet = &judge->fleet;
    struct view view = {.judge = judge,
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
    int rc = view.numbers && view.scratch ? check_margin(&view) : -ENOMEM;
    for (size_t s = 0; s < COUNT_OF(sensors); s++)
        for (size_t k = 0; k < fleet->population_count && !rc; k++)
            rc = check_group(&view, &fleet->populations[k], &sensors[s]);
    free(view.numbers);
    free(view.scratch);
    return rc;
}
