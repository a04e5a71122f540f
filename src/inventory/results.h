/* GPU results out of an inventory: enough of them to judge the fleet again. */
#ifndef GPUMEMTOPO_INVENTORY_RESULTS_H
#define GPUMEMTOPO_INVENTORY_RESULTS_H

#include "inventory/gpu_result.h"
#include "inventory/inventory.h"

/* What a GPU's entry and its model's majority say together: identity, facts, and a measure for each
 * judged value (unit and method are the model's). Look-ups by UUID and model id are built once. */
struct inventory_lookup;
int inventory_lookup_create(const struct inventory *inventory,
                            struct inventory_lookup **out_lookup);
void inventory_lookup_destroy(struct inventory_lookup *lookup); /* accepts NULL */

/* The model of a GPU; NULL when nothing is known of it. */
const struct inventory_model *inventory_model_of(const struct inventory_lookup *lookup,
                                                 const struct inventory_gpu *gpu);

/* The GPU of that UUID; NULL when it is not there. */
const struct inventory_gpu *inventory_find_gpu(const struct inventory_lookup *lookup,
                                               const char *uuid);

/* One of the four sets of facts as the GPU has it: the model's, overruled by its own. One that was
 * not measured has its own only. */
enum inventory_facts {
    INVENTORY_HARDWARE,
    INVENTORY_BOARD,
    INVENTORY_CONFIG,
    INVENTORY_HEALTH,
    INVENTORY_FACTS_COUNT
};
int inventory_facts_of(const struct inventory_lookup *lookup, const struct inventory_gpu *gpu,
                       enum inventory_facts set, struct facts *out_facts); /* out: empty */

/* One fact of these; NULL when it is not there. */
const struct fact *inventory_fact_of(const struct inventory_lookup *lookup,
                                     const struct inventory_gpu *gpu, enum inventory_facts set,
                                     const char *key);

/* 0 or -ENOMEM; out_result is empty before. */
int inventory_result(const struct inventory_lookup *lookup, const struct inventory_gpu *gpu,
                     struct gpu_result *out_result);

#endif
