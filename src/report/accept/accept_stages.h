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

/* Adds a finding and takes over its owned texts. gpu NULL: about no single GPU. */
void accept_add(struct accept *accept, const struct inventory_gpu *gpu,
                const struct accept_finding *finding);

/* NULL: not known. */
const char *accept_board_part(const struct accept_work *work, const struct accept_gpu *gpu);

/* Nodes and numbers of GPUs; fills work->gpus. */
void accept_nodes(struct accept_work *work);

/* Measured figures, and how far they lie apart. */
void accept_figures(struct accept_work *work);

#endif
