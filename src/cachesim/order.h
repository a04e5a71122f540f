/* The order of use of a set of up to sixteen ways in 64 bits: the newest way has the lowest four.
 */
#ifndef GPUMEMTOPO_CACHESIM_ORDER_H
#define GPUMEMTOPO_CACHESIM_ORDER_H

#include "cachesim/cache.h"

enum { ORDER_WAYS_MAX = 16 };

/* Ways that were never used are last, the lowest first. */
static const uint64_t order_first = 0xfedcba9876543210u;

/* A way becomes the newest. */
static inline uint64_t order_use(uint64_t order, uint32_t way)
{
    static const uint64_t each = 0x1111111111111111u;
    if ((order & 15) == way || !order)
        return order;
    uint64_t others = order ^ way * each;
    uint64_t here = (others - each) & ~others & each << 3; /* the lowest bit is exact */
    uint64_t newer = (here & -here) / 8 - 1;               /* below it */
    return (order & ~(newer << 4 | 15)) | (order & newer) << 4 | way;
}

static inline uint32_t order_oldest(uint64_t order, uint32_t ways)
{
    return (uint32_t)(order >> (4 * (ways - 1)) & 15);
}

#endif
