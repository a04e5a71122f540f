/* The reasons that the driver gives for a lowered clock. */
#ifndef GPUMEMTOPO_JUDGE_HELD_CLOCK_H
#define GPUMEMTOPO_JUDGE_HELD_CLOCK_H

#include <stdbool.h>

#include "inventory/inventory.h"

/* One reason, as `health.throttle` names it. */
struct held_clock_reason {
    const char *name;
    enum inventory_kind kind;
    bool wrong; /* on any GPU: no healthy GPU in a healthy node has this reason */
    const char *words;
};

/* The most specific reason first. */
enum { HELD_CLOCK_REASONS = 7 };
extern const struct held_clock_reason held_clock_reasons[HELD_CLOCK_REASONS];

/* Whether a list such as "power_cap,sw_thermal" has the reason; false for NULL. */
bool held_clock_has(const char *list, const struct held_clock_reason *reason);

#endif
