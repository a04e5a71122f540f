/* Reads an inventory from YAML nodes. */
#ifndef GPUMEMTOPO_INVENTORY_YAML_READ_H
#define GPUMEMTOPO_INVENTORY_YAML_READ_H

#include "base/yaml.h"
#include "inventory/inventory.h"

/* Both: 0, -ENOMEM or -EINVAL. What was read before a failure stays in the struct, to be released.
 */
int inventory_read_gpu(const struct yaml_node *node, struct inventory_gpu *gpu, struct err *err);
int inventory_read_document(const struct yaml_doc *doc, struct inventory *inventory,
                            struct err *err);

#endif
