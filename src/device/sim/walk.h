/* The order in which a chase visits the elements of an array, without storing it. */
#ifndef GPUMEMTOPO_DEVICE_SIM_WALK_H
#define GPUMEMTOPO_DEVICE_SIM_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "device/device.h"

enum { WALK_ROUNDS = 4 };

struct walk {
    uint64_t first, stride, count;
    uint64_t position; /* in the random cycle */
    bool random;
    uint32_t low_bits, high_bits;
    uint64_t keys[WALK_ROUNDS];
};

/* Begins at element `start` of the array. */
void walk_init(struct walk *walk, const struct device_array *array, uint64_t start);

/* Addresses of the next `count` elements. Many at once, since the computation of a random one takes
 * long but does not depend on the others. */
void walk_next(struct walk *walk, uint64_t *out_addresses, uint32_t count);

#endif
