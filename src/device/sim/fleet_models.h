/* The models of a simulated fleet; each file is read once. */
#ifndef GPUMEMTOPO_DEVICE_SIM_FLEET_MODELS_H
#define GPUMEMTOPO_DEVICE_SIM_FLEET_MODELS_H

#include <stddef.h>

#include "base/yaml.h"
#include "device/sim/sim.h"

struct fleet_models {
    const char *fleet_path;
    struct loaded {
        char *path;
        struct sim_model *model;
    } * items;
    size_t count, capacity;
};

/* The model of a file as a fleet file names it; `at` is the node with that name. It belongs to
 * `models`. */
int fleet_models_load(struct fleet_models *models, const struct yaml_node *at,
                      const struct sim_model **out_model, struct err *err);

/* The same for a model that the fleet already has; -EINVAL for any other. */
int fleet_models_find(const struct fleet_models *models, const struct yaml_node *at,
                      const struct sim_model **out_model, struct err *err);

void fleet_models_fini(struct fleet_models *models);

#endif
