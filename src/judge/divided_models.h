/* Models whose GPUs fall into two camps of about equal size: somebody is wrong, nobody knows who.
 */
#ifndef GPUMEMTOPO_JUDGE_DIVIDED_MODELS_H
#define GPUMEMTOPO_JUDGE_DIVIDED_MODELS_H

#include "judge/stages.h"

/* Adds one entry to the inventory's nodes, which lists the worse camp and accuses nobody, and tells
 * whether there was one to add. 0 or -ENOMEM. */
int divided_models_tell(const struct judge *judge, const struct group *group, size_t metric,
                        struct inventory *inventory, bool *out_told);

/* Likewise for a setting or a version on which the model is divided: these GPUs, one at least, have
 * another than most. */
int divided_models_tell_fact(const struct judge *judge, const struct group *group,
                             enum fact_set set, const struct fact_column *column,
                             const uint32_t *gpus, size_t count, struct inventory *inventory);

/* A camp has at least this many GPUs. */
enum { DIVIDED_MIN = 3 };

#endif
