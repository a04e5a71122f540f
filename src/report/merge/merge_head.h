/* Header, counts, nodes and ranks of a merged inventory: the ranks of each survey count once, and a
 * rank whose GPUs are in another file is not lost. */
#ifndef GPUMEMTOPO_REPORT_MERGE_MERGE_HEAD_H
#define GPUMEMTOPO_REPORT_MERGE_MERGE_HEAD_H

#include "report/merge/merge.h"
#include "report/merge/merge_source.h"

/* Marks all plans and inventories of a survey but one, if several files describe it. */
void merge_find_again(struct merge_source *sources, size_t count);

/* Marks plans whose GPUs were all measured by a later survey, for folders that are used repeatedly.
 * The pool must be settled. */
void merge_find_overtaken(struct merge_source *sources, size_t count,
                          const struct merge_pool *pool);

/* Called before judging: fills in header, counts and nodes without a GPU. The pool must be settled.
 */
void merge_head(const struct merge_source *sources, size_t count, const struct merge_pool *pool,
                const struct report_merge_request *request, struct inventory *inventory);

/* Called after judging: adds the ranks whose GPUs are not known. */
void merge_unknown(const struct merge_source *sources, size_t count, struct inventory *inventory);

#endif
