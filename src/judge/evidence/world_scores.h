/* Figures of small populations against the world. */
#ifndef GPUMEMTOPO_JUDGE_EVIDENCE_WORLD_SCORES_H
#define GPUMEMTOPO_JUDGE_EVIDENCE_WORLD_SCORES_H

#include "judge/state.h"

/* Whether the world has figures of this model by the same version of the program.
 * Adds an entry to the inventory's nodes if the model has small populations and the world has no
 * such figures of it. */
bool world_scores_knows(const struct judge *judge, const struct group *model);
void world_scores_report(const struct judge *judge, const struct group *model,
                         struct inventory *inventory);

#endif
