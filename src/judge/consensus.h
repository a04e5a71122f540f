/* One record per model: median for numbers, majority for everything else. */
#ifndef GPUMEMTOPO_JUDGE_CONSENSUS_H
#define GPUMEMTOPO_JUDGE_CONSENSUS_H

#include "inventory/inventory.h"
#include "judge/fleet.h"

struct judge;

/* Fills the model's topology from its healthy GPUs. If none is healthy, from its outliers; if there
 * are none either, from busy GPUs, and then all figures are noisy. Every figure is the median (or
 * majority) of the GPUs that have it, and `n` their number; figures that an inventory has only once
 * per model count as often as GPUs of it are among them. */
void consensus_build(const struct judge *judge, const struct group *group,
                     struct inventory_model *out_model);

#endif
