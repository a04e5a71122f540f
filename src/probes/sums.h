/* Compares figures of one GPU that must add up. */
#ifndef GPUMEMTOPO_PROBES_SUMS_H
#define GPUMEMTOPO_PROBES_SUMS_H

#include "inventory/measure.h"

/* Called after all measurements: figures that do not add up become noisy, with both figures in the
 * reason. What was not measured is not checked. */
void sums_check(struct measures *measures);

#endif
