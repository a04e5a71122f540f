/* Counts the ranks of a merge: those of each survey once. A rank whose GPUs are in another file is
 * not lost. */
#ifndef GPUMEMTOPO_REPORT_MERGE_RANKS_H
#define GPUMEMTOPO_REPORT_MERGE_RANKS_H

#include "report/merge_source.h"

/* Marks all plans and inventories of a survey but one, if several files describe it. 0 or
 * -ENOMEM. */
int merge_find_again(struct merge_source *sources, size_t count);

/* Marks plans whose GPUs were all measured by a later survey, for folders that are used repeatedly.
 * The pool must be settled. 0 or -ENOMEM. */
int merge_find_overtaken(struct merge_source *sources, size_t count, const struct merge_pool *pool);

/* One flag per rank of the plan: the rank has its own plan in the same survey, as ranks without MPI
 * have. Freed with free(); NULL: out of memory. */
bool *merge_own_plans(const struct merge_source *sources, size_t count,
                      const struct merge_source *plan);

/* Adds the ranks of source `number`, and how many of them are lost. The pool must be settled. 0 or
 * -ENOMEM. */
int merge_add_ranks(const struct merge_source *sources, size_t count, size_t number,
                    const struct merge_pool *pool, struct inventory *inventory);

#endif
