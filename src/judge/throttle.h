/* What the driver says of a clock that is held down. */
#ifndef GPUMEMTOPO_JUDGE_THROTTLE_H
#define GPUMEMTOPO_JUDGE_THROTTLE_H

#include <stdbool.h>

#include "inventory/inventory.h"

/* One reason, as `health.throttle` names it. */
struct throttle_reason {
    const char *name;
    enum inventory_kind kind;
    bool wrong; /* wherever it is seen: no healthy GPU in a healthy node has it */
    const char *words;
};

/* The most telling first. */
enum { THROTTLE_REASONS = 7 };
extern const struct throttle_reason throttle_reasons[THROTTLE_REASONS];

/* Whether a list "power_cap,sw_thermal" has the reason; false for NULL. */
bool throttle_has(const char *list, const struct throttle_reason *reason);

#endif
