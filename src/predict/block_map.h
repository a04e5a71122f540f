/* Which blocks of a grid run on which SM, in which order. */
#ifndef GPUMEMTOPO_PREDICT_BLOCK_MAP_H
#define GPUMEMTOPO_PREDICT_BLOCK_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "predict/access_source.h"

enum block_mapping {
    BLOCK_FIRST_FREE, /* the next block goes to the SM that has room first */
    BLOCK_RR,         /* block b to SM b modulo SMs */
    BLOCK_PART1,      /* BPART1: runs of four blocks, in turn */
    BLOCK_PART2,      /* BPART2: runs of eight */
    BLOCK_RANDOM,     /* as BLOCK_RR, after the blocks were shuffled: each SM has as many */
};

struct block_map {
    enum block_mapping mapping;
    uint64_t blocks, seed, next; /* next: of BLOCK_FIRST_FREE */
    uint32_t sms;
    struct access_source *source; /* blocks without accesses end at once; NULL: all have some */
};

/* Before the first block is taken. */
void block_map_begin(struct block_map *map);

/* The next block of an SM that has accesses; false: there is none. *at is the SM's own count, 0 at
 * first. */
bool block_map_take(struct block_map *map, uint32_t sm, uint64_t *at, uint64_t *out_block);

#endif
