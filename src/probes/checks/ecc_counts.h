/* What the GPU's ECC counters say of a test of its memory. */
#ifndef GPUMEMTOPO_PROBES_CHECKS_ECC_COUNTS_H
#define GPUMEMTOPO_PROBES_CHECKS_ECC_COUNTS_H

#include "device/device.h"
#include "inventory/measure.h"

/* How often ECC reported an error meanwhile. n: passes of the test. */
void ecc_counts_add(struct measures *measures, const char *corrected, const char *uncorrected,
                    const struct device_ecc *before, const struct device_ecc *after, uint32_t n);

#endif
