/* The ranks behind a merge: each survey's count once, and none is lost whose GPUs were heard of. */
#ifndef GPUMEMTOPO_REPORT_MERGE_RANKS_H
#define GPUMEMTOPO_REPORT_MERGE_RANKS_H

#include "report/merge_source.h"

/* Marks the plans and inventories of a survey that another file tells of as well, but one. 0 or
 * -ENOMEM. */
int merge_find_again(struct merge_source *sources, size_t count);

/* Marks plans all of whose GPUs a later survey has taken on, in a folder that is used again and
 * again. The pool is settled. 0 or -ENOMEM. */
int merge_find_overtaken(struct merge_source *sources, size_t count, const struct merge_pool *pool);

/* Which of the plan's ranks have a plan of their own in the same survey, as ranks without MPI have:
 * one flag per rank. Freed with free(); NULL when out of memory. */
bool *merge_own_plans(const struct merge_source *sources, size_t count,
                      const struct merge_source *plan);

/* Adds the ranks of source `number`, and those of them that are lost. The pool is settled. 0 or
 * -ENOMEM. */
int merge_add_ranks(const struct merge_source *sources, size_t count, size_t number,
                    const struct merge_pool *pool, struct inventory *inventory);

#endif
