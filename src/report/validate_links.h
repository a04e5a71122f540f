/* Checks the links of a GPU in an inventory. */
#ifndef GPUMEMTOPO_REPORT_VALIDATE_LINKS_H
#define GPUMEMTOPO_REPORT_VALIDATE_LINKS_H

#include "base/err.h"
#include "inventory/inventory.h"

/* `links` of a GPU. 0 or -EINVAL. */
int report_validate_links(const struct inventory_gpu *gpu, struct err *err);

#endif
