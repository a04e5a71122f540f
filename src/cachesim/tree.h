/* Pseudo-LRU: a binary tree over the ways of a set, whose nodes point away from the last use. */
#ifndef GPUMEMTOPO_CACHESIM_TREE_H
#define GPUMEMTOPO_CACHESIM_TREE_H

#include "cachesim/cache.h"

/* Node 1 is the root; the children of node n are 2 n and 2 n + 1. A node of `count` ways has half
 * of them, rounded up, below it. */
static inline uint32_t tree_way(const struct cache_set *set)
{
    uint32_t low = 0, count = set->ways;
    for (uint32_t node = 1; count > 1;) {
        uint32_t lower = (count + 1) / 2;
        bool up = set->tree >> node & 1;
        low += up ? lower : 0;
        count = up ? count - lower : lower;
        node = 2 * node + up;
    }
    return low;
}

static __attribute__((noinline, unused)) void tree_use(struct cache_set *set, uint32_t way)
{
    uint32_t count = set->ways;
    for (uint32_t node = 1; count > 1;) {
        uint32_t lower = (count + 1) / 2;
        bool up = way >= lower;
        set->tree = up ? set->tree & ~(UINT64_C(1) << node) : set->tree | UINT64_C(1) << node;
        way -= up ? lower : 0;
        count = up ? count - lower : lower;
        node = 2 * node + up;
    }
}

#endif
