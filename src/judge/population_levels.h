/* By how much the figures of the populations of a model differ. */
#ifndef GPUMEMTOPO_JUDGE_POPULATION_LEVELS_H
#define GPUMEMTOPO_JUDGE_POPULATION_LEVELS_H

#include "judge/yardstick.h"

/* The boards of one model differ by a few per cent: 2.5 % in bandwidth and 4 % in latency on the
 * H200. The own distance of a population that is too small counts up to this share. */
#define POPULATION_BOARDS_APART 0.05

/* Fills judge.levels, without the figures that are left out (left_out[gpu * metrics + metric]). */
void population_levels_find(const struct judge *judge, const bool *left_out, struct work *work);

/* Lists the populations of a model, if there are several. */
void population_levels_report(const struct judge *judge, const struct group *model,
                              struct inventory_model *out_model);

#endif
