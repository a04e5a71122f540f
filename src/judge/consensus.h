/* One record per model: median for numbers, majority for everything else. */
#ifndef GPUMEMTOPO_JUDGE_CONSENSUS_H
#define GPUMEMTOPO_JUDGE_CONSENSUS_H

#include "inventory/inventory.h"
#include "judge/fleet.h"

/* What an earlier record of the model knows and the GPUs' judged values do not tell: figures that
 * are not judged, methods and notes. 0 or -ENOMEM. */
int consensus_complete(struct measures *memory, const struct measures *earlier);

/* The model's topology from its healthy GPUs; where none is healthy from its outliers, else from
 * busy ones, all figures noisy then. 0 or -ENOMEM with a part of it filled. */
int consensus_build(const struct fleet *fleet, const struct group *group,
                    struct inventory_model *out_model);

#endif
