/* The stages of the comparison of an inventory with an order. */
#ifndef GPUMEMTOPO_REPORT_ACCEPT_ACCEPT_STAGES_H
#define GPUMEMTOPO_REPORT_ACCEPT_ACCEPT_STAGES_H

#include "inventory/results.h"
#include "report/accept/accept.h"

/* A GPU that belongs to the order. */
struct accept_gpu {
    const struct inventory_gpu *gpu;
    const struct inventory_model *model;
    size_t ordered; /* place of its model in the order */
    bool measured;
};

struct accept_work {
    struct accept *accept;
    const struct inventory_lookup *lookup;
    struct accept_gpu *gpus; /* those of ordered models, filled by accept_nodes */
    size_t gpu_count;
};

/* Adds a finding and takes over its owned texts, of which NULL in `ordered` or `found` counts as
 * out of memory. gpu NULL: about no single GPU. 0 or -ENOMEM. */
int accept_add(struct accept *accept, const struct inventory_gpu *gpu,
               const struct accept_finding *finding);

/* All return 0 or -ENOMEM. Nodes and numbers of GPUs; fills work->gpus. */
int accept_nodes(struct accept_work *work);

/* Board parts, and facts that the driver reports. */
int accept_facts(struct accept_work *work);

/* Measured figures, and how far they lie apart. */
int accept_figures(struct accept_work *work);

#endif
