/* Conditions on which figures depend: clocks, reported hardware, the link; and the reasons that the
 * driver gives for a lowered clock. */
#include "judge/conditions.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/portable_math.h"
#include "judge/robust.h"

/* A GPU that differs in one of these facts has other hardware than its model. */
static const struct {
    enum fact_set set;
    const char *key;
} comparable[] = {
    {SET_HARDWARE, "sms"},
    {SET_HARDWARE, "memory_bytes"},
    {SET_HARDWARE, "memory_bus_bits"},
    {SET_HARDWARE, "l2_bytes"},
    {SET_CONFIG, "mig"},
};

/* Numbers closer than this share are the same: the memory that drivers reserve varies a little. */
static const double SAME = 0.005;

/* A condition explains a loss of FIT * the predicted loss, plus the floor of the metric. */
static const double FIT = 1.15;

bool judge_number_same(double own, double other)
{
    return fabs(own - other) <= SAME * fabs(other);
}

bool judge_number_lower(double own, double other)
{
    return own < other && !judge_number_same(own, other);
}

bool judge_loss_fits(double loss, double predicted, double floor)
{
    return loss <= FIT * predicted + floor;
}

static double condition_fact(const struct fleet *fleet, enum fact_set set, const char *key,
                             uint32_t gpu)
{
    return fleet_fact_number(fleet, fleet_facts(fleet, set, key), gpu);
}

double judge_condition_value(const struct fleet *fleet, enum judge_condition condition,
                             uint32_t gpu)
{
    switch (condition) {
    case JUDGE_SM_CLOCK:
        return fleet_value(fleet, "clock.sm", gpu, true);
    case JUDGE_MEMORY_CLOCK:
        return fleet_value(fleet, "clock.memory", gpu, true);
    case JUDGE_SMS:
        return condition_fact(fleet, SET_HARDWARE, "sms", gpu);
    case JUDGE_MEMORY_BUS:
        return condition_fact(fleet, SET_HARDWARE, "memory_bus_bits", gpu);
    case JUDGE_L2:
        return condition_fact(fleet, SET_HARDWARE, "l2_bytes", gpu);
    case JUDGE_PCIE: /* each generation doubles the rate of a lane */
        return portable_exp2(condition_fact(fleet, SET_CONFIG, "pcie_gen", gpu)) *
               condition_fact(fleet, SET_CONFIG, "pcie_width", gpu);
    case JUDGE_POWER_LIMIT:
        return condition_fact(fleet, SET_CONFIG, "power_limit_w", gpu);
    default:
        return NAN;
    }
}

/* The median. For conditions with few distinct values it is the upper one, which at least one GPU
 * has. */
static double condition_usual(const struct fleet *fleet, const struct group *group,
                              enum judge_condition condition, double *numbers)
{
    size_t n = 0;
    for (size_t i = 0; i < group->count; i++) {
        const struct fleet_gpu *gpu = &fleet->gpus[group->members[i]];
        double value = judge_condition_value(fleet, condition, group->members[i]);
        if (fleet_judged(gpu) && value > 0)
            numbers[n++] = value;
    }
    return condition == JUDGE_SM_CLOCK ? robust_median(numbers, n)
                                       : robust_upper_median(numbers, n);
}

static bool has_other_hardware(const struct fleet *fleet, const struct group *group, uint32_t gpu)
{
    for (size_t i = 0; i < COUNT_OF(comparable); i++) {
        const struct fact_column *column = fleet_facts(fleet, comparable[i].set, comparable[i].key);
        const struct usual *usual = fleet_usual(fleet, group, comparable[i].set, column);
        if (!usual || !fleet_known(fleet, column->codes[gpu]) || column->codes[gpu] == usual->code)
            continue;
        double own = fleet_fact_number(fleet, column, gpu);
        double other = fleet_code_number(fleet, usual->code);
        if (!judge_number_same(own, other))
            return true;
    }
    return false;
}

void judge_conditions_find(struct judge *judge)
{
    const struct fleet *fleet = &judge->fleet;
    double *numbers = mem_array(fleet->count, sizeof *numbers);
    judge->usual = mem_array(fleet->group_count * JUDGE_CONDITION_COUNT, sizeof *judge->usual);
    judge->other_hardware = mem_array(fleet->count, sizeof *judge->other_hardware);
    judge->clock_ratio = mem_array(fleet->count, sizeof *judge->clock_ratio);
    for (size_t g = 0; g < fleet->group_count; g++) {
        const struct group *group = &fleet->groups[g];
        for (int c = 0; c < JUDGE_CONDITION_COUNT; c++)
            judge->usual[g * JUDGE_CONDITION_COUNT + (size_t)c] =
                condition_usual(fleet, group, (enum judge_condition)c, numbers);
        for (size_t i = 0; i < group->count; i++) {
            uint32_t gpu = group->members[i];
            judge->other_hardware[gpu] = has_other_hardware(fleet, group, gpu);
            judge->clock_ratio[gpu] = judge_condition_ratio(judge, JUDGE_SM_CLOCK, gpu);
        }
    }
    free(numbers);
}

double judge_condition_ratio(const struct judge *judge, enum judge_condition condition,
                             uint32_t gpu)
{
    size_t group = judge->fleet.gpus[gpu].group;
    double ratio = judge_condition_value(&judge->fleet, condition, gpu) /
                   judge->usual[group * JUDGE_CONDITION_COUNT + condition];
    return ratio > 0 && isfinite(ratio) ? ratio : 1;
}

double judge_clock_factor(const struct judge *judge, double clock_share, uint32_t gpu)
{
    return 1 / (1 + clock_share * (judge->clock_ratio[gpu] - 1));
}

double judge_worse_share(enum judge_worse worse, double deviation)
{
    return worse == JUDGE_ANY ? fabs(deviation) : worse == JUDGE_HIGHER ? deviation : -deviation;
}

const struct throttle_reason throttle_reasons[THROTTLE_REASONS + 1] = {
    {"hw_power_brake", VERDICT_DEGRADED, true, "the power brake of the node slows the GPU down"},
    {"hw_thermal", VERDICT_DEGRADED, true, "the hardware slows down for heat"},
    {"hw_slowdown", VERDICT_DEGRADED, true, "the hardware slows down for heat or power"},
    {"sw_thermal", VERDICT_DEGRADED, false, "throttled for heat"},
    {"applications_clocks", VERDICT_MISCONFIGURED, false, "held at its application clock"},
    {"sync_boost", VERDICT_MISCONFIGURED, false, "held at the clock of its sync boost group"},
    {"power_cap", VERDICT_DEGRADED, false, "at its power cap"},
};
