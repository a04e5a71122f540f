/* L1 of every SM and L2: takes the lines of one warp's access. */
#ifndef GPUMEMTOPO_PREDICT_HIERARCHY_H
#define GPUMEMTOPO_PREDICT_HIERARCHY_H

#include "predict/model.h"
#include "predict/reuse.h"
#include "predict/warp.h"

struct hierarchy {
    const struct model_config *config;
    struct warp_unit unit; /* of L1 */
    struct cache **l1;     /* sms x l1_per_sm */
    struct reuse **reuse;  /* the same; NULL: not asked for */
    struct cache *l2, *l2_bypassed;
    struct rng rng;
    struct model_counts counts;
    bool no_memory;
};

int hierarchy_init(struct hierarchy *hierarchy, const struct model_config *config, struct err *err);
void hierarchy_fini(struct hierarchy *hierarchy);

/* How far a load had to go. */
enum hierarchy_level { HIERARCHY_L1, HIERARCHY_L2, HIERARCHY_MAIN };

enum hierarchy_level hierarchy_load(struct hierarchy *hierarchy, uint32_t l1,
                                    struct warp_line line);
void hierarchy_store(struct hierarchy *hierarchy, uint32_t l1, struct warp_line line);

/* Adds what only the end of the kernel shows: traffic of main memory, the curve of reuse. */
void hierarchy_finish(struct hierarchy *hierarchy);

#endif
