/* What a fleet file has drawn for each GPU: the batch it is of, the layout of its GPCs, and
 * faults. All draws follow from the fleet's seed and the GPU's place in the fleet. */
#ifndef GPUMEMTOPO_DEVICE_SIM_DRAWS_H
#define GPUMEMTOPO_DEVICE_SIM_DRAWS_H

#include "base/yaml.h"
#include "device/sim/fleet_models.h"
#include "device/sim/model.h"

/* What one draw decides for. */
enum sim_per { SIM_PER_GPU, SIM_PER_NODE, SIM_PER_RACK, SIM_PER_COUNT };

/* A GPU's number in its fleet, its node's and its rack's. */
struct sim_numbers {
    uint64_t of[SIM_PER_COUNT];
};

enum { SIM_GPCS_MAX = 64 };

/* A population of a model. Factors: of the model's value. */
struct sim_batch {
    double share;
    int per;
    const struct sim_model *model;                /* NULL: every model */
    char part[SIM_TEXT_MAX], vbios[SIM_TEXT_MAX]; /* empty: as the model's */
    double l1_latency, l2_latency, main_latency;
    double l2_read, l2_write, main_read, main_write, main_copy, host_bandwidth;
};

struct sim_layout {
    double share;
    const struct sim_model *model;
    uint32_t gpc_count;
    uint32_t sizes[SIM_GPCS_MAX]; /* SMs of each GPC; their order differs from card to card */
    double l2_read;               /* factor of the bandwidth */
};

struct drawn_fault {
    double hits; /* share */
    int per;
    struct sim_fault fault;
};

struct sim_draws {
    uint32_t rack_nodes; /* consecutive nodes of a rack; 0: there are no racks */
    struct sim_batch *batches;
    size_t batch_count;
    struct sim_layout *layouts;
    size_t layout_count;
    struct drawn_fault *faults;
    size_t fault_count;
};

struct sim_draws_text {
    const struct yaml_node *racks, *batches, *layouts, *faults;
};

/* Reads these sections of a fleet file, each of which may be NULL, after its nodes: `models` are
 * all models of the fleet. Freed with sim_draws_fini, also after a failure. */
int sim_draws_read(const struct sim_draws_text *text, const struct fleet_models *models,
                   struct sim_draws *draws, struct err *err);
void sim_draws_fini(struct sim_draws *draws);

/* NULL: as the model says. */
const struct sim_batch *sim_draw_batch(const struct sim_draws *draws, uint64_t seed,
                                       const struct sim_model *model,
                                       const struct sim_numbers *numbers);
const struct sim_layout *sim_draw_layout(const struct sim_draws *draws, uint64_t seed,
                                         const struct sim_model *model,
                                         const struct sim_numbers *numbers);

/* Faults that hit this GPU; out_faults has room for draws->fault_count. Returns how many. */
size_t sim_draw_faults(const struct sim_draws *draws, uint64_t seed,
                       const struct sim_numbers *numbers, struct sim_fault *out_faults);

/* Whether a fault of this kind hits the GPU. */
bool sim_draw_has_fault(const struct sim_draws *draws, uint64_t seed,
                        const struct sim_numbers *numbers, int kind);

void sim_batch_apply(const struct sim_batch *batch, struct sim_model *model);

/* seed: of the card's identity; it decides in which order the GPCs are and near which part of L2.
 */
void sim_layout_apply(const struct sim_layout *layout, uint64_t seed, struct sim_model *model);

#endif
