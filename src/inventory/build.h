/* Parts of an inventory that a survey and a merge fill in the same way. */
#ifndef GPUMEMTOPO_INVENTORY_BUILD_H
#define GPUMEMTOPO_INVENTORY_BUILD_H

#include "inventory/inventory.h"

/* Sets version and backend as given, the current time, and the command. Only the name of the
 * program is kept, so that the same survey from another folder gives the same file. */
void inventory_set_head(struct inventory *inventory, const char *version, const char *backend,
                        char *const *command, size_t command_count);

/* Adds the finding that no GPU was visible on these nodes. */
void inventory_add_bare(struct inventory *inventory, const char *const *nodes, size_t count);

/* inventory_add_unknown adds a rank whose GPUs are not known: node, rank, status and reason are
 * copied. inventory_settle_unknown, called once at the end, sorts the entries after the first
 * `known` ones by node and rank. */
void inventory_add_unknown(struct inventory *inventory, const struct inventory_unmeasured *entry);
void inventory_settle_unknown(struct inventory *inventory, size_t known);

#endif
