/* Whether an inventory agrees with itself. */
#ifndef GPUMEMTOPO_REPORT_VALIDATE_H
#define GPUMEMTOPO_REPORT_VALIDATE_H

#include "base/err.h"
#include "inventory/inventory.h"

/* What the reader cannot see: model ids and UUIDs are unique, every reference has its target,
 * counts are the numbers of what they count, no figure is one that cannot be. 0, -ENOMEM, or
 * -EINVAL naming the first disagreement. */
int report_validate(const struct inventory *inventory, struct err *err);

#endif
