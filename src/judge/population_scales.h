/* How far the figures of each population scatter, and the bounds that follow. */
#ifndef GPUMEMTOPO_JUDGE_POPULATION_SCALES_H
#define GPUMEMTOPO_JUDGE_POPULATION_SCALES_H

#include "judge/yardstick.h"

/* The probabilities with which one healthy figure may exceed its bounds by chance. */
struct population_tails {
    double single; /* the bound of one figure */
    double pair;   /* that of each of two figures of one memory */
    double watch;
};

/* Finds them from the number of comparisons. memories: per metric, the first metric of the same
 * memory. Needs the yardsticks. */
struct population_tails population_scales_tails(const struct judge *judge, const size_t *memories);

/* Fills scale and dof of the levels of a model, from the GPUs that are not left out. Needs the
 * yardsticks. */
void population_scales_find(const struct judge *judge, const struct group *model,
                            const bool *left_out, double tail, struct work *work);

/* Fills the bounds of the levels of a model. Needs the tails of the yardsticks. */
void population_scales_bound(const struct judge *judge, const struct group *model,
                             const struct population_tails *tails);

#endif
