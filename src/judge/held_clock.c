/* The reasons that the driver gives for a lowered clock. */
#include "judge/held_clock.h"

#include <string.h>

const struct held_clock_reason held_clock_reasons[HELD_CLOCK_REASONS] = {
    {"hw_power_brake", KIND_DEGRADED, true, "the power brake of the node slows the GPU down"},
    {"hw_thermal", KIND_DEGRADED, true, "the hardware slows down for heat"},
    {"hw_slowdown", KIND_DEGRADED, true, "the hardware slows down for heat or power"},
    {"sw_thermal", KIND_DEGRADED, false, "throttled for heat"},
    {"applications_clocks", KIND_MISCONFIGURED, false, "held at its application clock"},
    {"sync_boost", KIND_MISCONFIGURED, false, "held at the clock of its sync boost group"},
    {"power_cap", KIND_DEGRADED, false, "at its power cap"},
};

bool held_clock_has(const char *list, const struct held_clock_reason *reason)
{
    size_t length = strlen(reason->name);
    for (; list; list = strchr(list, ',')) {
        list += *list == ',';
        if (strncmp(list, reason->name, length) == 0 && (!list[length] || list[length] == ','))
            return true;
    }
    return false;
}
