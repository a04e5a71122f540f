/* Figures of one GPU that must add up, held against each other. */
#ifndef GPUMEMTOPO_PROBES_SUMS_H
#define GPUMEMTOPO_PROBES_SUMS_H

#include "inventory/measure.h"

/* Once all is measured: what does not add up becomes noisy, with both figures in the reason. What
 * was not measured is not looked at. 0 or -ENOMEM. */
int sums_check(struct measures *measures);

#endif
