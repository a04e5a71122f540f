/* L1 of every SM and L2: takes lines one by one, or many level by level. */
#ifndef GPUMEMTOPO_PREDICT_HIERARCHY_H
#define GPUMEMTOPO_PREDICT_HIERARCHY_H

#include "predict/l2.h"
#include "predict/model.h"
#include "predict/reuse.h"
#include "predict/warp.h"

/* Notes of requests; their number is that of a line of L1, their cache an L1, their operation that
 * of hierarchy_operation. */
enum { HIERARCHY_STORES = 1, HIERARCHY_LAST = 2 /* of the lines of one access */ };

enum { HIERARCHY_TOGETHER = L2_TOGETHER }; /* requests that hierarchy_l2 takes at most */

struct hierarchy {
    const struct model_config *config;
    struct warp_unit unit; /* of L1 */
    struct cache **l1;     /* sms x l1_per_sm */
    struct curves *curves; /* NULL: not asked for */
    struct l2 *l2, *l2_bypassed;
    struct merge *merges[2]; /* before them; NULL: nothing is merged */
    struct rng rng;
    bool l1_draws, l2_draws; /* they take numbers from `rng`: the order of lines matters */
    struct cache_request parts[HIERARCHY_TOGETHER * CACHE_SECTORS_MAX]; /* on their way to an L2 */
    uint64_t joined; /* loads of these parts whose lines have all joined earlier requests */
    struct model_counts counts;
};

void hierarchy_init(struct hierarchy *hierarchy, const struct model_config *config);
void hierarchy_fini(struct hierarchy *hierarchy);

/* How far a load had to go. */
enum hierarchy_level { HIERARCHY_L1, HIERARCHY_L2, HIERARCHY_MAIN };

/* One line, through L1 and both L2s. */
enum hierarchy_level hierarchy_one(struct hierarchy *hierarchy, struct cache_request *request);

/* The same in two halves: L1 and the L2 without L1, then line by line of what goes on to L2, in any
 * order. The first returns how many these are; the last whether it comes from main memory. */
size_t hierarchy_begin_one(struct hierarchy *hierarchy, struct cache_request *request,
                           struct cache_request out_parts[CACHE_SECTORS_MAX]);
bool hierarchy_l2_holds(const struct hierarchy *hierarchy, const struct cache_request *part);
bool hierarchy_l2_part(struct hierarchy *hierarchy, struct cache_request *part);

/* The same for the lines of many whole accesses, first through L1, then through both L2s; the waits
 * of loads are counted, too. The counts are the same as line by line, unless L2 draws, or L1 does
 * and is not served in that order. hierarchy_l2 changes the requests. */
enum cache_operation hierarchy_operation(const struct hierarchy *hierarchy, bool store);
void hierarchy_l1(struct hierarchy *hierarchy, struct cache_request *requests, size_t count);
void hierarchy_l2(struct hierarchy *hierarchy, struct cache_request *requests, size_t count);

/* How many ticks it takes until every warp of an SM has issued once; before the first tick. */
void hierarchy_set_round(struct hierarchy *hierarchy, uint32_t ticks);

/* Requests of later ticks do not meet those of earlier ones. */
void hierarchy_end_tick(struct hierarchy *hierarchy);

/* Adds what only the end of the kernel shows: traffic of main memory, the curve of reuse. */
void hierarchy_finish(struct hierarchy *hierarchy);

#endif
