/* Centre, scale and bound of each metric in each model, and in each of its populations. */
#ifndef GPUMEMTOPO_JUDGE_YARDSTICK_H
#define GPUMEMTOPO_JUDGE_YARDSTICK_H

#include "judge/robust.h"
#include "judge/state.h"

/* With fewer GPUs figures are not compared. */
enum { YARDSTICK_MIN = 5 };

/* Room for the figures of the largest group. */
struct work {
    uint32_t *gpus;
    double *ratios, *values, *scratch;
};
void work_init(struct work *work, size_t count);
void work_fini(struct work *work);

/* Collects into `work` the GPUs of a group that show what is usual, with values and (in scratch)
 * spreads: judged, usual hardware, figure `ok`, not left out (left_out[gpu *
 * metrics + metric]; may be NULL). Returns their number. */
size_t yardstick_gather(const struct judge *judge, const struct group *group, size_t metric,
                        const bool *left_out, struct work *work);

struct yardstick *yardstick_of(const struct judge *judge, const struct group *group, size_t metric);

/* The scale of figures: their scatter, but no less than their repetitions and the method allow.
 * spread: median spread of the repetitions. */
double yardstick_scale(const struct robust_fit *fit, double spread);

/* Finds centre, scale and clock share of a metric from the GPUs that are not left
 * out. */
void yardstick_make(const struct judge *judge, const struct group *group, size_t metric,
                    const bool *left_out, struct work *work, struct yardstick *out);

/* The probabilities with which one healthy figure may exceed its bounds by chance. */
struct yardstick_chances {
    double single; /* the bound of one figure */
    double pair;   /* that of each of two figures of one memory */
    double watch;
};

/* Finds them from the number of comparisons. memories: per metric, the first metric of the same
 * memory. Needs the yardsticks. */
struct yardstick_chances yardstick_find_chances(const struct judge *judge, const size_t *memories);

/* Fills scale and dof of the levels of a model, from the GPUs that are not left out. Needs the
 * yardsticks. */
void yardstick_find_scales(const struct judge *judge, const struct group *model,
                           const bool *left_out, double tail, struct work *work);

/* Finds tail_dof, from the better side, and edge, for all metrics of the group. Needs the scales.
 */
void yardstick_find_tails(const struct judge *judge, const struct group *group,
                          const bool *left_out, struct work *work);

/* Fills the bounds of the levels of a model. Needs the tails. */
void yardstick_find_bounds(const struct judge *judge, const struct group *model,
                           const struct yardstick_chances *chances);

/* The score of a value that was converted with judge_common_factor. spread: of the GPU's
 * repetitions, converted likewise; clock_ratio: of its own clock to the usual one; level: that of
 * its population. */
double yardstick_score(const struct yardstick *yardstick, double value, double spread,
                       double clock_ratio, const struct population_level *level);

/* The score that a healthy GPU exceeds with probability `tail`. */
double yardstick_bound(double tail, double dof);

#endif
