/* A GPU model of an inventory as the configuration of the cache model. */
#ifndef GPUMEMTOPO_PREDICT_MACHINE_H
#define GPUMEMTOPO_PREDICT_MACHINE_H

#include "base/err.h"
#include "base/str.h"
#include "inventory/inventory.h"
#include "predict/model.h"
#include "predict/what_if.h"

/* NaN: the inventory has none. Bandwidths in GB/s, latencies in ns. */
struct machine_figures {
    double l1_read, l2_read, l2_write, main_read, main_write;
    double l1_latency, l2_latency, main_latency;
};

enum { MACHINE_NOTE_MAX = 512 };

struct machine {
    struct model_config config;
    struct machine_figures figures;
    bool hopper;            /* what was measured of Hopper applies */
    double shared_carveout; /* bytes of shared memory while L1 was measured; NaN: L1 is separate */
    char assumed[MACHINE_NOTE_MAX];   /* what the inventory does not have; "" if nothing */
    char uncertain[MACHINE_NOTE_MAX]; /* what it calls noisy itself; "" if nothing */
};

/* True if a change can be made to this key; otherwise the nearest one, or NULL. */
bool machine_has_key(const char *key, const char **out_near);

/* file: for messages. what_if: NULL for the GPU as it is. -EINVAL names file (or change), model and
 * key of what is missing or makes no sense. */
int machine_init(struct machine *machine, const struct inventory_model *model, const char *file,
                 const struct what_if *what_if, struct err *err);

/* How much shared memory the driver sets aside for a kernel on a GPU of compute capability 9.0, by
 * the warps and the shared memory of a block; L1 has the rest. */
uint64_t machine_hopper_carveout(const struct sm_limits *limits, uint32_t warps,
                                 uint64_t shared_bytes);

/* The L1 that is left beside the shared memory of a kernel's blocks. */
uint64_t machine_l1_bytes(const struct machine *machine, const struct kernel_launch *launch);

#endif
