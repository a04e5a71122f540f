/* GPUs that are new, gone or elsewhere since the baseline. */
#ifndef GPUMEMTOPO_JUDGE_MOVES_H
#define GPUMEMTOPO_JUDGE_MOVES_H

#include "judge/internal.h"

/* Adds entries to the inventory's nodes, which accuse nobody. 0 or -ENOMEM. */
int moves_tell(const struct judge *judge, struct inventory *inventory);

#endif
