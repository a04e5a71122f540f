/* By how much the figures of the populations of a model differ. */
#ifndef GPUMEMTOPO_JUDGE_POPULATION_LEVELS_H
#define GPUMEMTOPO_JUDGE_POPULATION_LEVELS_H

#include "judge/yardstick.h"

/* Fills judge.levels, without the GPUs that are accused in a figure (accused[gpu * metrics +
 * metric]). 0 or -ENOMEM. */
int population_levels_find(const struct judge *judge, const bool *accused, struct work *work);

/* Adds an entry to the inventory's nodes for each figure in which a population is worse than boards
 * usually differ: all of its GPUs may be bad. 0 or -ENOMEM. */
int population_levels_report_apart(const struct judge *judge, const struct group *model,
                                   struct inventory *inventory);

/* Lists the populations of a model, if there are several. 0 or -ENOMEM. */
int population_levels_report(const struct judge *judge, const struct group *model,
                             struct inventory_model *out_model);

#endif
