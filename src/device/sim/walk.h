/* The order in which a chase visits the elements of an array, without storing it. */
#ifndef GPUMEMTOPO_DEVICE_SIM_WALK_H
#define GPUMEMTOPO_DEVICE_SIM_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "device/device.h"

enum { WALK_ROUNDS = 4 };

struct walk {
    uint64_t first, stride, count;
    uint64_t position; /* in the cycle */
    bool random;
    uint32_t low_bits, high_bits;
    uint64_t keys[WALK_ROUNDS];
};

/* Begins at element `start` of the array. */
void walk_init(struct walk *walk, const struct device_array *array, uint64_t start);

/* Element at a position of the random cycle. */
uint64_t walk_element(const struct walk *walk, uint64_t position);

/* Address of the element the walk stands at; goes on to the next. */
static inline uint64_t walk_next(struct walk *walk)
{
    uint64_t position = walk->position;
    walk->position = position + 1 == walk->count ? 0 : position + 1;
    uint64_t element = walk->random ? walk_element(walk, position) : position;
    return walk->first + element * walk->stride;
}

#endif
