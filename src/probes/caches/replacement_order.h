/* The order of misses in one set that has one line too many says which way each miss took. */
#ifndef GPUMEMTOPO_PROBES_CACHES_REPLACEMENT_ORDER_H
#define GPUMEMTOPO_PROBES_CACHES_REPLACEMENT_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "probes/caches/replacement.h"

/* Lines 0 .. ways of a set of `ways`: at each time exactly one of them is absent. The line that
 * misses next is the one that the miss before evicted, so every eviction is seen. */
struct eviction_order {
    uint32_t ways;
    uint32_t *way_of;  /* by line: ways + 1 */
    uint32_t *line_in; /* by way, of what is imitated */
    uint64_t *counts;  /* evictions by way */
    uint64_t *steps;   /* by distance from the way of the eviction before, modulo the ways */
    uint64_t total, stepped;

    bool begun, broken;
    uint32_t loaded; /* the line of the last miss: its way is told by the next one */
    uint32_t last_way;
    bool last_known;
};

void eviction_order_init(struct eviction_order *order, uint32_t ways);

void eviction_order_fini(struct eviction_order *order);

/* Begins a job: lines 0 .. ways - 1 were loaded in this order into an empty set. */
void eviction_order_begin(struct eviction_order *order);

/* The next load of a line. Contradictions, which misjudged loads cause, end the job. */
void eviction_order_add(struct eviction_order *order, uint32_t line, bool missed);

/* How a policy would look that takes each way with its share, whatever went before. */
struct eviction_null {
    const double *shares; /* by way; NULL: equal ones */
    double stray, slip;   /* shares of hits and of misses that are misjudged */
    uint64_t loads, jobs; /* of the set, in each job */
    uint64_t seed;
};

/* Executes that policy and follows it as the real one. `order` is initialised, empty. */
void eviction_order_imitate(struct eviction_order *order, const struct eviction_null *null);

/* By how many standard deviations the counts, or the steps, of one differ from those of the other,
 * which has as many or more. */
double eviction_order_unequal(const struct eviction_order *order,
                              const struct eviction_order *other);

double eviction_order_dependent(const struct eviction_order *order,
                                const struct eviction_order *other);

/* One set alone can be loaded if its lines are known to lie a period apart. Constant L1.5 is seen
 * only past L1, which would hold so few lines itself: there all sets are loaded. */
bool replacement_one_set(const struct study *study, const struct cache_sets *sets);

/* Lines number `from` to `to` of one set, or of every set. */
struct device_array replacement_rows(const struct study *study, const struct cache_sets *sets,
                                     uint64_t from, uint64_t to);

/* If not every line of an overflowing set misses in every pass: random, biased or another one. */
int replacement_by_order(struct probe_context *context, const struct study *study,
                         const struct cache_sets *sets, struct replacement *r, struct err *err);

#endif
