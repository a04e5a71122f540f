/* Header, counts, nodes and unknown ranks of a merged inventory. */
#ifndef GPUMEMTOPO_REPORT_MERGE_HEAD_H
#define GPUMEMTOPO_REPORT_MERGE_HEAD_H

#include "report/merge.h"
#include "report/merge_source.h"

/* Called before judging: fills in header, counts and nodes without a GPU. The pool must be settled.
 * 0 or -ENOMEM. */
int merge_head(const struct merge_source *sources, size_t count, const struct merge_pool *pool,
               const struct report_merge_request *request, struct inventory *inventory);

/* Called after judging: adds the ranks whose GPUs are not known. */
int merge_unknown(const struct merge_source *sources, size_t count, struct inventory *inventory);

#endif
