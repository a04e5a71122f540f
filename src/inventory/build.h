/* Parts of an inventory that are filled in the same way whoever makes it: a survey, or a merge. */
#ifndef GPUMEMTOPO_INVENTORY_BUILD_H
#define GPUMEMTOPO_INVENTORY_BUILD_H

#include "inventory/inventory.h"

/* All return 0 or -ENOMEM. */

/* Version and backend as given, the time of now, and the command: of the program only its name, so
 * that the same survey from another place gives the same file. */
int inventory_set_head(struct inventory *inventory, const char *version, const char *backend,
                       char *const *command, size_t command_count);

/* Says of these nodes that no GPU was visible there. */
int inventory_add_bare(struct inventory *inventory, const char *const *nodes, size_t count);

/* Adds a rank of whose GPUs nothing is known: node, rank, status and reason are copied. In the end,
 * inventory_settle_unknown puts those behind the first `known` entries in order, by node and rank.
 */
int inventory_add_unknown(struct inventory *inventory, const struct inventory_unmeasured *entry);
void inventory_settle_unknown(struct inventory *inventory, size_t known);

#endif
