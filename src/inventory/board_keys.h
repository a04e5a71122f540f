/* Which facts of a board stand directly among a GPU's keys; further ones go into `board`. */
#ifndef GPUMEMTOPO_INVENTORY_BOARD_KEYS_H
#define GPUMEMTOPO_INVENTORY_BOARD_KEYS_H

enum { BOARD_KEY_COUNT = 4 };
extern const char *const inventory_board_keys[BOARD_KEY_COUNT];

#endif
