/* Xid events: error numbers of NVIDIA's driver, what they mean, and what they say of a GPU. */
#ifndef GPUMEMTOPO_INVENTORY_XID_H
#define GPUMEMTOPO_INVENTORY_XID_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "inventory/inventory.h"

enum { XID_LIST_MAX = 16 };

/* kind: of a GPU that is accused for the event, and how severe the event is beside others. */
struct xid {
    unsigned number;
    bool accuses; /* false: the GPU is only watched */
    enum verdict verdict;
    const char *meaning;
};

/* Never NULL: the answer for a number that is not in the table says so and accuses nobody. */
const struct xid *xid_find(unsigned number);

/* "79 (the GPU has fallen off the bus), 45 (...)", or "none". */
void xid_put_list(struct strbuf *out_text, const unsigned *numbers, size_t count);

/* The numbers in such a list, at most XID_LIST_MAX. Returns how many; 0 also for NULL and for a
 * text that is no such list. */
size_t xid_parse_list(const char *text, unsigned out_numbers[XID_LIST_MAX]);

#endif
