/* A GPU's links to the other GPUs of its node: lists with one item for each peer, as notes of a
 * measure and as `links` of a GPU in the inventory. */
#ifndef GPUMEMTOPO_INVENTORY_LINK_ROW_H
#define GPUMEMTOPO_INVENTORY_LINK_ROW_H

#include "base/err.h"
#include "schema/facts.h"

/* The measure that has the lists as notes. */
#define LINK_ROW_METRIC "links.peers"

/* gpus and state, which are lists of texts; the figures, lists of numbers; last `why`, a sentence.
 */
enum { LINK_ROW_KEYS = 11, LINK_ROW_TEXTS = 2, LINK_ROW_LISTS = 10 };
extern const char *const link_row_keys[LINK_ROW_KEYS];

/* Item `place` of a list of figures, which is not negative; NaN: unknown, or no such list. */
double link_row_number(const struct facts *row, const char *key, size_t place);

/* -EINVAL with a message unless all lists have an item for each peer, and no other facts. Empty, or
 * `why` alone, is valid too. */
int link_row_check(const struct facts *row, struct err *err);

#endif
