/* Whether GPUs that lose in one figure have the same fault. */
#ifndef GPUMEMTOPO_JUDGE_SAME_FAULT_H
#define GPUMEMTOPO_JUDGE_SAME_FAULT_H

#include "judge/stages.h"

/* gpus: `count` GPUs that lose about as much in this metric. Sets out_other[i] for a GPU that also
 * loses in another figure of that memory in which fewer than two thirds of them lose: it has
 * another fault. 0 or -ENOMEM. */
int same_fault_find_others(const struct judge *judge, size_t metric, const uint32_t *gpus,
                           size_t count, bool *out_other);

/* The text of a cause without its numbers, as a symbol: GPUs with the same fault have different
 * numbers in it. 0 or -ENOMEM. */
int same_fault_cause(struct symbols *symbols, const char *cause, uint32_t *out_symbol);

#endif
