/* The ways in which a policy is told, and what they share. */
#ifndef GPUMEMTOPO_PROBES_METHOD_REPLACEMENT_KINDS_H
#define GPUMEMTOPO_PROBES_METHOD_REPLACEMENT_KINDS_H

#include "probes/method/replacement.h"

/* One set alone can be loaded if its lines are known to lie a period apart. Constant L1.5 is seen
 * only past L1, which would hold so few lines itself: there all sets are loaded. */
bool replacement_one_set(const struct study *study, const struct cache_sets *sets);

/* Lines number `from` to `to` of one set, or of every set. */
struct device_array replacement_rows(const struct study *study, const struct cache_sets *sets,
                                     uint64_t from, uint64_t to);

/* If every line of an overflowing set misses in every pass: LRU, FIFO or another one. */
int replacement_by_reuse(struct probe_context *context, const struct study *study,
                         const struct cache_sets *sets, struct replacement *r, struct err *err);

/* If not: random, biased or another one. */
int replacement_by_order(struct probe_context *context, const struct study *study,
                         const struct cache_sets *sets, struct replacement *r, struct err *err);

/* If lines scattered at random told the sets, and the same lines miss in every pass: LRU, FIFO or
 * another one. */
int replacement_by_scatter(struct probe_context *context, const struct study *study,
                           const struct cache_sets *sets, struct replacement *r, struct err *err);

#endif
