/* Facts of a board that are written as keys of the GPU; all others go into `board`. */
#ifndef GPUMEMTOPO_INVENTORY_BOARD_KEYS_H
#define GPUMEMTOPO_INVENTORY_BOARD_KEYS_H

enum { BOARD_KEY_COUNT = 4 };
extern const char *const inventory_board_keys[BOARD_KEY_COUNT];

#endif
