/* Why the driver limits a clock: NVML's bits of the clock event reasons. */
#ifndef GPUMEMTOPO_INVENTORY_THROTTLE_H
#define GPUMEMTOPO_INVENTORY_THROTTLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

/* The reasons as words, comma-separated ("power_cap,sw_thermal"); "none" if there is none. Idle is
 * left out, since clocks are read between two pieces of work. Unknown bits are printed as a
 * number. */
void throttle_put_text(uint64_t reasons, struct strbuf *out_text);

/* True if the hardware itself lowers the clock: heat, or the power supply. */
bool throttle_by_hardware(uint64_t reasons);

#endif
