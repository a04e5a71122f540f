/* Requests that meet on their way from the SMs to L2, and reach it as one. */
#ifndef GPUMEMTOPO_PREDICT_MERGE_H
#define GPUMEMTOPO_PREDICT_MERGE_H

#include "predict/model.h"

struct merge;

struct merge *merge_create(const struct model_config *config); /* NULL: out of memory */
void merge_destroy(struct merge *merge);                       /* accepts NULL */

/* The sectors of a request of an L1 (or past it) that go on to L2; the others join an earlier
 * request. */
uint32_t merge_load(struct merge *merge, uint32_t l1, uint64_t number, uint32_t sectors);
uint32_t merge_store(struct merge *merge, uint32_t l1, uint64_t number, uint32_t sectors);

/* How many ticks it takes until every warp of an SM has issued once. */
void merge_set_round(struct merge *merge, uint32_t ticks);

void merge_end_tick(struct merge *merge);

#endif
