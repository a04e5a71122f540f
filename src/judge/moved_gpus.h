/* GPUs that are new, gone or in another place since the baseline. */
#ifndef GPUMEMTOPO_JUDGE_MOVED_GPUS_H
#define GPUMEMTOPO_JUDGE_MOVED_GPUS_H

#include "judge/stages.h"

/* Adds entries to the inventory's nodes. They accuse no GPU. 0 or -ENOMEM. */
int moved_gpus_report(const struct judge *judge, struct inventory *inventory);

#endif
