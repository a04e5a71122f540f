/* Models and figures that the judge cannot compare: too few GPUs, divided, or scattered. */
#ifndef GPUMEMTOPO_JUDGE_BLIND_SPOTS_H
#define GPUMEMTOPO_JUDGE_BLIND_SPOTS_H

#include "judge/stages.h"

/* Adds entries to the inventory's nodes. They accuse no GPU. 0 or -ENOMEM. */
int blind_spots_report(const struct judge *judge, struct inventory *inventory);

#endif
