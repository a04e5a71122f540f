/* Groups of GPUs that only a figure separates. */
#ifndef GPUMEMTOPO_JUDGE_FIGURE_GROUPS_H
#define GPUMEMTOPO_JUDGE_FIGURE_GROUPS_H

#include "judge/stages.h"

/* The GPU is in the worse group of a metric. */
bool figure_groups_has(const struct judge *judge, uint32_t gpu, size_t metric);

/* As judge_common_factor, for the search for groups. */
double figure_groups_factor(const struct judge *judge, uint32_t gpu, size_t metric);

#endif
