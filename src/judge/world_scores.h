/* Figures of small populations against the world. */
#ifndef GPUMEMTOPO_JUDGE_WORLD_SCORES_H
#define GPUMEMTOPO_JUDGE_WORLD_SCORES_H

#include "judge/stages.h"

/* Whether a figure of this model was compared with the world. */
bool world_scores_knows(const struct judge *judge, const struct group *model);

/* Adds an entry to the inventory's nodes if a small population is not compared with the world, or
 * only with care, because program or driver differ. 0 or -ENOMEM. */
int world_scores_report(const struct judge *judge, const struct group *model,
                        struct inventory *inventory);

#endif
