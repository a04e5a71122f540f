/* Where the judge cannot see: models too few to compare, figures too scattered to judge by. */
#ifndef GPUMEMTOPO_JUDGE_BLIND_SPOTS_H
#define GPUMEMTOPO_JUDGE_BLIND_SPOTS_H

#include "judge/stages.h"

/* Adds entries to the inventory's nodes, which accuse nobody. 0 or -ENOMEM. */
int blind_spots_tell(const struct judge *judge, struct inventory *inventory);

#endif
