/* GPU results read from an inventory, with enough of them to judge the fleet again. */
#ifndef GPUMEMTOPO_INVENTORY_RESULTS_H
#define GPUMEMTOPO_INVENTORY_RESULTS_H

#include "inventory/gpu_result.h"
#include "inventory/inventory.h"

/* Combines a GPU's entry with the majority of its model: identity, facts, and a measure for each
 * judged value (with unit and method of the model). Look-ups by UUID and model id are built
 * once. */
struct inventory_lookup;
struct inventory_lookup *inventory_lookup_create(const struct inventory *inventory);
void inventory_lookup_destroy(struct inventory_lookup *lookup); /* accepts NULL */

/* The model of a GPU; NULL if nothing is known about the GPU. */
const struct inventory_model *inventory_model_of(const struct inventory_lookup *lookup,
                                                 const struct inventory_gpu *gpu);

/* The GPU with this UUID, and its entry in `outliers`, `watch` and `unmeasured`; NULL if there is
 * none, or if uuid is NULL. */
const struct inventory_gpu *inventory_find_gpu(const struct inventory_lookup *lookup,
                                               const char *uuid);
const struct inventory_outlier *inventory_find_outlier(const struct inventory_lookup *lookup,
                                                       const char *uuid);
const struct inventory_outlier *inventory_find_watch(const struct inventory_lookup *lookup,
                                                     const char *uuid);
const struct inventory_unmeasured *inventory_find_unmeasured(const struct inventory_lookup *lookup,
                                                             const char *uuid);

/* Whether a user means this GPU: `name` is its UUID or the beginning of it, with or without "GPU-",
 * in upper or lower case. uuid may be NULL. */
bool inventory_uuid_matches(const char *uuid, const char *name);

/* The value of a metric of a GPU; NULL if it has none. */
const struct inventory_value *inventory_value_of(const struct inventory_gpu *gpu,
                                                 const char *metric);

/* One of the four sets of facts of a GPU: those of the model, replaced by its own where it has
 * them. A GPU that was not measured has only its own. */
enum inventory_facts {
    INVENTORY_HARDWARE,
    INVENTORY_BOARD,
    INVENTORY_CONFIG,
    INVENTORY_HEALTH,
    INVENTORY_FACTS_COUNT
};
void inventory_facts_of(const struct inventory_lookup *lookup, const struct inventory_gpu *gpu,
                        enum inventory_facts set, struct facts *out_facts); /* out: empty */

/* One fact of such a set; NULL if it is absent. */
const struct fact *inventory_fact_of(const struct inventory_lookup *lookup,
                                     const struct inventory_gpu *gpu, enum inventory_facts set,
                                     const char *key);

/* out_result must be empty. */
void inventory_result(const struct inventory_lookup *lookup, const struct inventory_gpu *gpu,
                      struct gpu_result *out_result);

#endif
