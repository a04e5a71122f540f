/* Why the driver limits a clock, in words. */
#ifndef GPUMEMTOPO_PROBES_METHOD_THROTTLE_NOTE_H
#define GPUMEMTOPO_PROBES_METHOD_THROTTLE_NOTE_H

#include "device/device.h"
#include "schema/facts.h"

/* Sets `throttle`: "none", or the names of the reasons; unknown if the driver does not tell. 0 or
 * -ENOMEM. */
int throttle_note(struct facts *notes, const struct device_clocks *clocks);

#endif
