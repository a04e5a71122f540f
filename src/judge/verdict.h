/* Makes the lists of outliers and watched GPUs from the findings. */
#ifndef GPUMEMTOPO_JUDGE_VERDICT_H
#define GPUMEMTOPO_JUDGE_VERDICT_H

#include "judge/stages.h"

/* Drops findings of GPUs that were not measured, and all but one of each GPU and metric. Busy GPUs
 * are not accused. */
void verdict_settle(struct judge *judge);

/* Sets fleet.gpus[].outlier. To be called after place_findings_collapse. */
void verdict_mark(struct judge *judge);

/* Fills outliers and watch, sorted by node, PCI address and UUID. 0 or -ENOMEM. */
int verdict_lists(const struct judge *judge, struct inventory *inventory);

#endif
