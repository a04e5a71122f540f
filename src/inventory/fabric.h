/* What may be wrong with a GPU that is registered with the NVLink fabric: NVML's health mask. */
#ifndef GPUMEMTOPO_INVENTORY_FABRIC_H
#define GPUMEMTOPO_INVENTORY_FABRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "inventory/inventory.h"

/* The fact of `health` that tells cluster and clique of a GPU ("UUID/NUMBER"): those of one clique
 * reach each other by NVLink. It identifies the cluster. */
#define FABRIC_CLIQUE "fabric_clique"

/* One value of one field of the mask. */
struct fabric_fault {
    const char *word; /* in `health.fabric_state` */
    unsigned shift;   /* of the field */
    uint32_t field;   /* its bits, shifted down */
    uint32_t value;
    bool accuses; /* otherwise it is watched */
    enum verdict verdict;
    const char *finding;
};
extern const struct fabric_fault fabric_faults[];
extern const size_t fabric_fault_count;

/* The faults of a mask as words, comma-separated; nothing if there is none. Values that are not
 * known are printed as the field's number. */
void fabric_put_text(uint32_t mask, struct strbuf *out_text);

/* The first fault of the list that accuses, or else the first one; NULL: none that is known. */
const struct fabric_fault *fabric_worst(const char *list);

#endif
