/* Divided models: the GPUs form two groups, and the judge cannot tell which group is right. */
#ifndef GPUMEMTOPO_JUDGE_DIVIDED_MODELS_H
#define GPUMEMTOPO_JUDGE_DIVIDED_MODELS_H

#include "judge/stages.h"

/* If the model is divided in the metric, adds one entry to the inventory's nodes. It lists the
 * worse group and accuses no GPU. *out_divided: whether there is such an entry. 0 or -ENOMEM. */
int divided_models_report(const struct judge *judge, const struct group *group, size_t metric,
                          struct inventory *inventory, bool *out_divided);

/* Adds such an entry for a setting or a version. `gpus`: the GPUs that differ from most of the
 * model, at least one. 0 or -ENOMEM. */
int divided_models_report_fact(const struct judge *judge, const struct group *group,
                               enum fact_set set, const struct fact_column *column,
                               const uint32_t *gpus, size_t count, struct inventory *inventory);

/* Each group of a divided model has at least this many GPUs. */
enum { DIVIDED_MIN = 3 };

#endif
