/* Checks an inventory for contradictions. */
#ifndef GPUMEMTOPO_REPORT_COMMANDS_VALIDATE_H
#define GPUMEMTOPO_REPORT_COMMANDS_VALIDATE_H

#include "base/err.h"
#include "inventory/inventory.h"

/* Checks what reading does not: model ids and UUIDs are unique, references have a target, counts
 * are correct, no figure is impossible, findings say truly how they were confirmed. 0 or
 * -EINVAL naming the first contradiction. */
int report_validate(const struct inventory *inventory, struct err *err);

#endif
