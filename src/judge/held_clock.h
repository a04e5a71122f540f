/* What the driver says of a clock that is held down. */
#ifndef GPUMEMTOPO_JUDGE_HELD_CLOCK_H
#define GPUMEMTOPO_JUDGE_HELD_CLOCK_H

#include <stdbool.h>

#include "inventory/inventory.h"

/* One reason, as `health.throttle` names it. */
struct held_clock_reason {
    const char *name;
    enum inventory_kind kind;
    bool wrong; /* wherever it is seen: no healthy GPU in a healthy node has it */
    const char *words;
};

/* The most telling first. */
enum { HELD_CLOCK_REASONS = 7 };
extern const struct held_clock_reason held_clock_reasons[HELD_CLOCK_REASONS];

/* Whether a list "power_cap,sw_thermal" has the reason; false for NULL. */
bool held_clock_has(const char *list, const struct held_clock_reason *reason);

#endif
