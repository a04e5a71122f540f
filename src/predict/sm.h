/* One SM: which blocks it gets, the blocks and warps in flight, and which warp issues next. */
#ifndef GPUMEMTOPO_PREDICT_SM_H
#define GPUMEMTOPO_PREDICT_SM_H

#include <stdbool.h>
#include <stdint.h>

#include "predict/kernel.h"
#include "predict/warp.h"

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

enum sm_scheduler {
    SM_RR,  /* loose round robin: the next warp that is ready */
    SM_GTO, /* greedy, then oldest: the same warp until it waits, then the oldest that is ready */
};

/* What an SM has room for. 0: no limit (registers: also if the kernel's number is not known). */
struct sm_limits {
    uint32_t warps_max, blocks_max;
    uint64_t shared_bytes, registers;
};

/* Blocks in flight on one SM: the smallest of what blocks, warps, shared memory and registers
 * allow. 0: not even one block fits. registers: of a thread, 0: not known. */
uint32_t sm_blocks_in_flight(const struct sm_limits *limits, const struct kernel_launch *launch,
                             uint32_t registers);

enum { SM_SCHEDULERS_MAX = 8 };

struct sm_warp {
    struct kernel_cursor cursor;
    uint64_t ready; /* tick from which it may issue again */
    uint64_t age;   /* when its block began; lower is older */
    bool live;
};

struct sm {
    struct sm_warp *warps; /* warps of a block side by side */
    uint32_t *live;        /* warps of each block in flight that have not ended */
    uint32_t warp_count, block_count, live_total, number;
    uint32_t schedulers;
    bool together; /* blocks in flight begin together: when all before them have ended */
    uint32_t last[SM_SCHEDULERS_MAX]; /* warp that each scheduler chose last */
    uint64_t taken;                   /* for block_map_take */
    uint64_t begun;
    uint32_t vacant; /* places that wait for sm_take_block */
};

void sm_init(struct sm *sm, uint32_t number, const struct kernel_launch *launch,
             uint32_t blocks_in_flight, uint32_t schedulers);
void sm_fini(struct sm *sm);

/* Begins a block in a place that is free; false: no block is left for this SM. */
bool sm_begin_block(struct sm *sm, const struct kernel_launch *launch, struct block_map *map,
                    uint32_t place);

/* The warp that a scheduler issues now; NULL: none is ready. Scheduler s has the warps s, s +
 * schedulers, ... */
struct sm_warp *sm_choose(struct sm *sm, uint32_t scheduler, enum sm_scheduler policy,
                          uint64_t tick);

/* The same for SM_RR, if the next warp in turn is ready; otherwise NULL, and nothing has changed.
 */
static inline struct sm_warp *sm_choose_next(struct sm *sm, uint32_t scheduler, uint64_t tick)
{
    uint32_t next = sm->last[scheduler] + sm->schedulers;
    next = next < sm->warp_count ? next : scheduler;
    if (next >= sm->warp_count || !sm->warps[next].live || sm->warps[next].ready > tick)
        return NULL;
    sm->last[scheduler] = next;
    return &sm->warps[next];
}

/* A warp has ended. True: it was the last one of its block, and sm_refill is to be called,
 * or sm_take_block later. */
bool sm_end_warp(struct sm *sm, struct sm_warp *warp, const struct kernel_launch *launch,
                 uint32_t *out_place);

/* Begins the next block in this place, or in all if blocks begin together. */
void sm_refill(struct sm *sm, const struct kernel_launch *launch, struct block_map *map,
               uint32_t place);

/* Begins the next block in a vacant place. */
void sm_take_block(struct sm *sm, const struct kernel_launch *launch, struct block_map *map);

#endif
