/* Centre, scale and bound of each metric in each model. */
#ifndef GPUMEMTOPO_JUDGE_YARDSTICK_H
#define GPUMEMTOPO_JUDGE_YARDSTICK_H

#include "judge/robust.h"
#include "judge/stages.h"

/* With fewer GPUs figures are not compared. */
enum { YARDSTICK_MIN = 5 };

/* Room for the figures of the largest group. */
struct work {
    uint32_t *gpus;
    double *ratios, *values, *scratch;
};
int work_init(struct work *work, size_t count); /* 0 or -ENOMEM; call work_fini in both cases */
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

/* Finds tail_dof, from the better side, and edge, for all metrics of the group. Needs the scales of
 * the populations. 0 or -ENOMEM. */
int yardstick_tails(const struct judge *judge, const struct group *group, const bool *left_out,
                    struct work *work);

/* The score of a value that was converted with judge_common_factor. spread: of the GPU's
 * repetitions, converted likewise; clock_ratio: of its own clock to the usual one; level: that of
 * its population. */
double yardstick_score(const struct yardstick *yardstick, double value, double spread,
                       double clock_ratio, const struct population_level *level);

/* The score that a healthy GPU exceeds with probability `tail`. */
double yardstick_bound(double tail, double dof);

#endif
