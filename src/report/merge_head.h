/* What a merged inventory says of the surveys behind it: header, counts, nodes, unknown ranks. */
#ifndef GPUMEMTOPO_REPORT_MERGE_HEAD_H
#define GPUMEMTOPO_REPORT_MERGE_HEAD_H

#include "report/merge.h"
#include "report/merge_source.h"

/* Before the judge: header, counts, nodes without a GPU. The pool is settled. 0 or -ENOMEM. */
int merge_head(const struct merge_source *sources, size_t count, const struct merge_pool *pool,
               const struct report_merge_request *request, struct inventory *inventory);

/* After it: ranks of whose GPUs nothing is known. */
int merge_unknown(const struct merge_source *sources, size_t count, struct inventory *inventory);

#endif
