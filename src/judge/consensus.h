/* One record per model: median for numbers, majority for everything else. */
#ifndef GPUMEMTOPO_JUDGE_CONSENSUS_H
#define GPUMEMTOPO_JUDGE_CONSENSUS_H

#include "inventory/inventory.h"
#include "judge/fleet.h"

/* Adds to `memory` what only an earlier record of the model has: figures that are not judged,
 * methods and notes. 0 or -ENOMEM. */
int consensus_complete(struct measures *memory, const struct measures *earlier);

/* Fills the model's topology from its healthy GPUs. If none is healthy, from its outliers; if there
 * are none either, from busy GPUs, and then all figures are noisy. 0, or -ENOMEM with *out_model
 * partly filled. */
int consensus_build(const struct fleet *fleet, const struct group *group,
                    struct inventory_model *out_model);

#endif
