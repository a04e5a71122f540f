/* Racks and switches of nodes, from a file of the site: lines "NODE RACK [SWITCH]". */
#ifndef GPUMEMTOPO_REPORT_RACKS_H
#define GPUMEMTOPO_REPORT_RACKS_H

#include <stddef.h>

#include "base/err.h"

struct rack_place {
    char *node, *rack;
    char *leaf; /* the switch; NULL: not given */
};

struct racks {
    struct rack_place *items; /* by node */
    size_t count, capacity;
};

/* Empty lines, and what follows a #, are skipped. -EINVAL with file and line; another negative
 * errno if the file cannot be read. out_racks is untouched on failure, else released with
 * racks_fini. */
int racks_read_file(const char *path, struct racks *out_racks, struct err *err);
void racks_fini(struct racks *racks);

/* NULL if the node is not in the file. racks and node may be NULL. */
const struct rack_place *racks_find(const struct racks *racks, const char *node);

#endif
