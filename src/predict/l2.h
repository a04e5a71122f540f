/* L2: one cache, or two parts of which each SM has one near; and the way to it, where requests that
 * meet reach it as one. */
#ifndef GPUMEMTOPO_PREDICT_L2_H
#define GPUMEMTOPO_PREDICT_L2_H

#include "predict/model.h"

struct merge;

struct merge *merge_create(const struct model_config *config);
void merge_destroy(struct merge *merge); /* accepts NULL */

/* The sectors of a request of an L1 (or past it) that go on to L2; the others join an earlier
 * request. */
uint32_t merge_load(struct merge *merge, uint32_t l1, uint64_t number, uint32_t sectors);
uint32_t merge_store(struct merge *merge, uint32_t l1, uint64_t number, uint32_t sectors);

/* How many ticks it takes until every warp of an SM has issued once. */
void merge_set_round(struct merge *merge, uint32_t ticks);

void merge_end_tick(struct merge *merge);

enum { L2_TOGETHER = 512 }; /* requests that l2_serve takes at most */

/* Note of a request that needed main memory. */
enum { L2_FROM_MAIN = 4 };

struct l2;

struct l2 *l2_create(const struct model_config *config);
void l2_destroy(struct l2 *l2); /* accepts NULL */

/* Serves loads and stores of lines of L2; `cache` of a request is the L1 that it comes from.
 * `missing` becomes the sectors that the near part did not have; L2_FROM_MAIN is set or cleared.
 * More than L2_TOGETHER are served in several turns. */
void l2_serve(struct l2 *l2, struct cache_request *requests, size_t count, struct rng *rng);

/* True if the part near to the request's L1 has all its sectors. */
bool l2_holds(const struct l2 *l2, const struct cache_request *request);

/* Sectors that came from main memory and were written back to it so far. */
uint64_t l2_main_reads(const struct l2 *l2);
uint64_t l2_main_writes(const struct l2 *l2);

#endif
