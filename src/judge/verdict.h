/* From findings to the inventory. */
#ifndef GPUMEMTOPO_JUDGE_VERDICT_H
#define GPUMEMTOPO_JUDGE_VERDICT_H

#include "judge/stages.h"

/* Drops findings of GPUs that were not measured and second ones of the same metric; a busy GPU is
 * not accused. */
void verdict_settle(struct judge *judge);

/* Marks the outliers, fleet.gpus[].outlier, once it is known which findings are shared. */
void verdict_mark(struct judge *judge);

/* Fills outliers and watch, sorted by place. 0 or -ENOMEM. */
int verdict_lists(const struct judge *judge, struct inventory *inventory);

#endif
