/* Divided models: groups of GPUs that only a figure or a setting separates. */
#ifndef GPUMEMTOPO_JUDGE_EVIDENCE_DIVIDED_H
#define GPUMEMTOPO_JUDGE_EVIDENCE_DIVIDED_H

#include "judge/state.h"

/* Whether the GPU is in the worse group of a metric. */
bool divided_has(const struct judge *judge, uint32_t gpu, size_t metric);

/* If the model is divided in the metric, adds one entry to the inventory's nodes, which lists the
 * worse group, and returns true. */
bool divided_report_figure(const struct judge *judge, const struct group *model, size_t metric,
                           struct inventory *inventory);

/* Adds such an entry for a setting or a version. `gpus`: the GPUs that differ from most of the
 * model, at least one. */
void divided_report_fact(const struct judge *judge, const struct group *group, enum fact_set set,
                         const struct fact_column *column, const uint32_t *gpus, size_t count,
                         struct inventory *inventory);

/* Each group of a divided model has at least this many GPUs. */
enum { DIVIDED_MIN = 3 };

#endif
