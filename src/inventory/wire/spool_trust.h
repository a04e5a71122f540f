/* Whether others could have changed what is in a spool. */
#ifndef GPUMEMTOPO_INVENTORY_WIRE_SPOOL_TRUST_H
#define GPUMEMTOPO_INVENTORY_WIRE_SPOOL_TRUST_H

#include "base/err.h"

/* -EPERM: the file is a link, belongs neither to this user nor to the owner of its folder, or may
 * be written by others; the text says which, and what to do. A negative errno: it cannot be looked
 * at.
 */
int spool_trust_file(const char *path, struct err *err);

/* The same for the folder, before results go there: it belongs to another user, or others may
 * replace its files. Root and the user of the program are no others. */
int spool_trust_folder(const char *path, struct err *err);

#endif
