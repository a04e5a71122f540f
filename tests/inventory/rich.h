/* Invented data with everything in it that a file must survive: nulls, NaN, hostile strings. */
#ifndef GPUMEMTOPO_TESTS_INVENTORY_RICH_H
#define GPUMEMTOPO_TESTS_INVENTORY_RICH_H

#include "inventory/gpu_result.h"
#include "inventory/inventory.h"

/* Texts that a careless writer would break or a reader take for something else. */
extern const char *const rich_texts[];
extern const unsigned rich_text_count;

/* Released with gpu_result_fini and inventory_fini. Out of memory aborts the test program. */
void rich_result(struct gpu_result *out_result);
void rich_inventory(struct inventory *out_inventory);

#endif
