/* Settings that are below the GPU's own default or limit. */
#include "judge/own_defaults.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "judge/place_findings.h"

/* GPUs of one model reach clocks that are 8 % apart for other reasons. So a clock counts as locked
 * only if it is at most LOCKED of the allowed one, its repetitions scatter by at most STEADY, and
 * the driver reports the same clock within SAME. On an H200 locked at 900 of 1980 MHz, the spread
 * is 0.0002 % and both clocks agree within 0.002 %. */
static const double LOCKED = 0.92, STEADY = 0.002, SAME = 0.01;

static double setting(const struct fleet *fleet, const char *key, uint32_t gpu)
{
    return fleet_fact_number(fleet, fleet_facts(fleet, SET_CONFIG, key), gpu);
}

/* The lower of clock limit and application clock; NaN if neither is known. */
static double allowed_clock(const struct fleet *fleet, uint32_t gpu)
{
    return fmin(setting(fleet, "sm_clock_limit_mhz", gpu),
                setting(fleet, "sm_clock_application_mhz", gpu));
}

bool own_defaults_locked(const struct fleet *fleet, uint32_t gpu)
{
    const struct cell *clock = fleet_number(fleet_metric(fleet, "clock.sm"), gpu, false);
    const struct cell *reported =
        fleet_number(fleet_metric(fleet, "clock.sm_reported"), gpu, false);
    const char *throttle = fleet_fact_text(fleet, fleet_facts(fleet, SET_HEALTH, "throttle"), gpu);
    return clock && reported && throttle && strcmp(throttle, "none") == 0 &&
           clock->value <= LOCKED * allowed_clock(fleet, gpu) &&
           clock->spread <= STEADY * clock->value &&
           fabs(clock->value / reported->value - 1) <= SAME;
}

char *own_defaults_locked_text(const struct fleet *fleet, uint32_t gpu)
{
    const struct cell *clock = fleet_number(fleet_metric(fleet, "clock.sm"), gpu, false);
    return str_format("the SM clock is locked at %.0f of %.0f MHz: it is steady there and the "
                      "driver names no reason (nvidia-smi -lgc or a management tool sets this)",
                      clock->value, allowed_clock(fleet, gpu));
}

static bool has_low_power_limit(const struct fleet *fleet, uint32_t gpu)
{
    return judge_number_lower(setting(fleet, "power_limit_w", gpu),
                              setting(fleet, "power_limit_default_w", gpu));
}

static char *power_limit_text(const struct fleet *fleet, uint32_t gpu)
{
    return str_format("power limit %.0f W, the default of the card is %.0f W",
                      setting(fleet, "power_limit_w", gpu),
                      setting(fleet, "power_limit_default_w", gpu));
}

static bool has_low_application_clock(const struct fleet *fleet, uint32_t gpu)
{
    return judge_number_lower(setting(fleet, "sm_clock_application_mhz", gpu),
                              setting(fleet, "sm_clock_application_default_mhz", gpu));
}

static char *application_clock_text(const struct fleet *fleet, uint32_t gpu)
{
    return str_format("SM application clock %.0f MHz, the default of the card is %.0f MHz "
                      "(nvidia-smi -rac sets the default)",
                      setting(fleet, "sm_clock_application_mhz", gpu),
                      setting(fleet, "sm_clock_application_default_mhz", gpu));
}

static const struct own_default {
    bool (*is_low)(const struct fleet *fleet, uint32_t gpu);
    char *(*text)(const struct fleet *fleet, uint32_t gpu);
} own_defaults[] = {
    {has_low_power_limit, power_limit_text},
    {has_low_application_clock, application_clock_text},
    {own_defaults_locked, own_defaults_locked_text},
};

struct low_count {
    size_t low, judged;
    uint32_t first; /* GPU that has it */
};

static struct low_count count_low(const struct fleet *fleet, const struct group *model,
                                  const struct own_default *check)
{
    struct low_count count = {0};
    for (size_t i = 0; i < model->count; i++) {
        uint32_t gpu = model->members[i];
        if (!fleet_judged(&fleet->gpus[gpu]))
            continue;
        count.judged++;
        if (!check->is_low(fleet, gpu))
            continue;
        count.first = count.low++ ? count.first : gpu;
    }
    return count;
}

/* At least two thirds of the judged GPUs have it. */
static bool is_shared(const struct low_count *count)
{
    return count->low && 3 * count->low >= 2 * count->judged;
}

static int report_one(const struct fleet *fleet, const struct group *population,
                      const struct own_default *check, struct inventory *inventory)
{
    const struct low_count count = count_low(fleet, population, check);
    if (!is_shared(&count))
        return 0;
    char *words = check->text(fleet, count.first);
    char *text = words ? str_format("%zu of %zu GPUs of %s: %s", count.low, count.judged,
                                    population->id, words)
                       : NULL;
    free(words);
    return place_findings_add(inventory, NULL, text, NULL);
}

int own_defaults_report(const struct judge *judge, const struct group *model,
                        struct inventory *inventory)
{
    const struct fleet *fleet = &judge->fleet;
    for (size_t k = 0; k < model->populations; k++)
        for (size_t i = 0; i < COUNT_OF(own_defaults); i++)
            if (report_one(fleet, &fleet->populations[model->populations_at + k], &own_defaults[i],
                           inventory))
                return -ENOMEM;
    return 0;
}
