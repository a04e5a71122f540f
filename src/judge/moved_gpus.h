/* GPUs that are new, gone or elsewhere since the baseline. */
#ifndef GPUMEMTOPO_JUDGE_MOVED_GPUS_H
#define GPUMEMTOPO_JUDGE_MOVED_GPUS_H

#include "judge/stages.h"

/* Adds entries to the inventory's nodes, which accuse nobody. 0 or -ENOMEM. */
int moved_gpus_tell(const struct judge *judge, struct inventory *inventory);

#endif
