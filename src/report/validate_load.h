/* Checks what an inventory has of the sustained load of a GPU. */
#ifndef GPUMEMTOPO_REPORT_VALIDATE_LOAD_H
#define GPUMEMTOPO_REPORT_VALIDATE_LOAD_H

#include "base/err.h"
#include "inventory/inventory.h"

/* `load` of a GPU. 0 or -EINVAL. */
int report_validate_load(const struct inventory_gpu *gpu, struct err *err);

#endif
