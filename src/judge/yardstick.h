/* What the GPUs of a model show in each metric, and from which score on a GPU is not there by
 * chance. */
#ifndef GPUMEMTOPO_JUDGE_YARDSTICK_H
#define GPUMEMTOPO_JUDGE_YARDSTICK_H

#include "judge/stages.h"

/* Fewer GPUs have no consensus to deviate from. */
enum { YARDSTICK_MIN = 5 };

/* Room for the figures of the largest group. */
struct work {
    uint32_t *gpus;
    double *ratios, *values, *scratch;
};
int work_init(struct work *work, size_t count); /* 0 or -ENOMEM; work_fini in either case */
void work_fini(struct work *work);

struct yardstick *yardstick_of(const struct judge *judge, const struct group *group, size_t metric);

/* Centre, scale and clock share of a metric, without the GPUs that are accused in it
 * (accused[gpu * metrics + metric]). dof is that of the scale alone. */
void yardstick_make(const struct judge *judge, const struct group *group, size_t metric,
                    const bool *accused, struct work *work, struct yardstick *out);

/* Brings the tails of the healthy side into every dof and edge of the group. 0 or -ENOMEM. */
int yardstick_tails(const struct judge *judge, const struct group *group, const bool *accused,
                    struct work *work);

/* How many deviations of the fleet a value is away that was brought to the usual clock from
 * `clock_ratio` of it, with this spread of its own. */
double yardstick_score(const struct yardstick *yardstick, double value, double spread,
                       double clock_ratio);

/* The score that chance exceeds with probability `tail`. */
double yardstick_bound(double tail, double dof);

#endif
