/* L1 of every SM and L2: takes lines one by one, or many level by level. */
#ifndef GPUMEMTOPO_PREDICT_HIERARCHY_H
#define GPUMEMTOPO_PREDICT_HIERARCHY_H

#include "predict/curves.h"
#include "predict/model.h"
#include "predict/warp.h"

struct hierarchy {
    const struct model_config *config;
    struct warp_unit unit; /* of L1 */
    struct cache **l1;     /* sms x l1_per_sm */
    struct curves *curves; /* NULL: not asked for */
    struct cache *l2, *l2_bypassed;
    struct rng rng;
    bool l1_draws, l2_draws; /* they take numbers from `rng`: the order of lines matters */
    uint32_t farthest;       /* level that the access whose lines go through L2 needed so far */
    struct model_counts counts;
    bool no_memory;
};

/* A line of an access on its way through the caches. */
struct request {
    uint64_t number;  /* address / line size of L1 */
    uint16_t sectors; /* asked for */
    uint16_t missing; /* of them, those that go on to L2 */
    uint16_t l1;
    bool store;
    bool last; /* of its access */
};

int hierarchy_init(struct hierarchy *hierarchy, const struct model_config *config, struct err *err);
void hierarchy_fini(struct hierarchy *hierarchy);

/* How far a load had to go. */
enum hierarchy_level { HIERARCHY_L1, HIERARCHY_L2, HIERARCHY_MAIN };

enum hierarchy_level hierarchy_load(struct hierarchy *hierarchy, uint32_t l1,
                                    struct warp_line line);
void hierarchy_store(struct hierarchy *hierarchy, uint32_t l1, struct warp_line line);

/* The same for many lines, one level after the other: first L1, then the two L2s in any order. The
 * counts are the same as line by line, if no level draws random numbers but one. */
void hierarchy_l1(struct hierarchy *hierarchy, struct request *requests, size_t count);
void hierarchy_l2(struct hierarchy *hierarchy, const struct request *requests, size_t count);
void hierarchy_bypassed(struct hierarchy *hierarchy, const struct request *requests, size_t count);

/* Adds what only the end of the kernel shows: traffic of main memory, the curve of reuse. */
void hierarchy_finish(struct hierarchy *hierarchy);

#endif
