/* A GPU's links to the other GPUs of its node: lists of words, one word for each peer, as notes of
 * a measure and as `links` of a GPU in the inventory. */
#ifndef GPUMEMTOPO_INVENTORY_LINK_ROW_H
#define GPUMEMTOPO_INVENTORY_LINK_ROW_H

#include <stdbool.h>
#include <stddef.h>

/* The measure that has the lists as notes. */
#define LINK_ROW_METRIC "links.peers"

/* gpus, state, the figures, and last `why`, which is a sentence. */
enum { LINK_ROW_KEYS = 11, LINK_ROW_LISTS = 10 };
extern const char *const link_row_keys[LINK_ROW_KEYS];

/* Moves *at to the next word and sets its length. False: there is none. */
bool link_row_word(const char **at, size_t *out_length);

/* A word as a number that is not negative; NaN for "-" and anything else. */
double link_row_number(const char *word, size_t length);

#endif
