/* Blocks and warps in flight on one SM, and which blocks of a grid it gets. */
#include "predict/sm.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/rng.h"

/* The first block from `block` on that has accesses. */
static uint64_t block_map_skip(const struct block_map *map, uint64_t block)
{
    return map->source && block < map->blocks ? map->source->skip(map->source, block) : block;
}

/* The SM's number `at` of runs of blocks that are dealt out in turn. */
static uint64_t block_at(const struct block_map *map, uint32_t sm, uint64_t run, uint64_t at)
{
    return (at / run * map->sms + sm) * run + at % run;
}

/* The SM's first number whose block is not below `block`. */
static uint64_t number_from(const struct block_map *map, uint32_t sm, uint64_t run, uint64_t block)
{
    uint64_t round = block / run / map->sms, turn = block / run % map->sms;
    if (turn < sm)
        return round * run;
    return turn == sm ? round * run + block % run : (round + 1) * run;
}

static bool take_run(const struct block_map *map, uint32_t sm, uint64_t run, uint64_t *at,
                     uint64_t *out_block)
{
    uint64_t block = block_at(map, sm, run, *at), busy;
    while ((busy = block_map_skip(map, block)) != block) {
        *at = number_from(map, sm, run, busy);
        block = block_at(map, sm, run, *at);
    }
    if (block >= map->blocks)
        return false;
    ++*at;
    *out_block = block;
    return true;
}

/* Numbers below `blocks` in a random order, computed without a table: a Feistel network shuffles
 * the next power of four and is applied again until the number is below `blocks`. */
static uint64_t shuffled(const struct block_map *map, uint64_t number)
{
    enum { ROUNDS = 4 };
    uint32_t half_bits = 0;
    while (half_bits < 32 && map->blocks > UINT64_C(1) << 2 * half_bits)
        half_bits++;
    uint64_t mask = (UINT64_C(1) << half_bits) - 1;
    do {
        uint64_t left = number >> half_bits, right = number & mask;
        for (uint32_t round = 0; round < ROUNDS; round++) {
            uint64_t mixed = left ^ (rng_derive(map->seed, "block", right * ROUNDS + round) & mask);
            left = right;
            right = mixed;
        }
        number = left << half_bits | right;
    } while (number >= map->blocks);
    return number;
}

static bool take_random(const struct block_map *map, uint32_t sm, uint64_t *at, uint64_t *out_block)
{
    for (uint64_t number; (number = block_at(map, sm, 1, *at)) < map->blocks;) {
        uint64_t block = shuffled(map, number);
        ++*at;
        if (block_map_skip(map, block) != block)
            continue;
        *out_block = block;
        return true;
    }
    return false;
}

void block_map_begin(struct block_map *map)
{
    map->next = block_map_skip(map, 0);
}

bool block_map_take(struct block_map *map, uint32_t sm, uint64_t *at, uint64_t *out_block)
{
    switch (map->mapping) {
    case BLOCK_FIRST_FREE:
        if (map->next == map->blocks)
            return false;
        *out_block = map->next;
        map->next = block_map_skip(map, map->next + 1);
        return true;
    case BLOCK_RR:
        return take_run(map, sm, 1, at, out_block);
    case BLOCK_PART1:
        return take_run(map, sm, 4, at, out_block);
    case BLOCK_PART2:
        return take_run(map, sm, 8, at, out_block);
    case BLOCK_RANDOM:
        return take_random(map, sm, at, out_block);
    }
    return false;
}

static uint64_t at_most(uint64_t value, uint64_t limit)
{
    return value < limit ? value : limit;
}

uint32_t sm_blocks_in_flight(const struct sm_limits *limits, const struct kernel_launch *launch,
                             uint32_t registers)
{
    uint64_t blocks = launch->blocks, warps = launch->warps_per_block;
    uint64_t shared = launch->kernel->shared_bytes;
    if (limits->blocks_max)
        blocks = at_most(blocks, limits->blocks_max);
    if (limits->warps_max)
        blocks = at_most(blocks, limits->warps_max / warps);
    if (limits->shared_bytes && shared)
        blocks = at_most(blocks, limits->shared_bytes / shared);
    if (limits->registers && registers)
        blocks = at_most(blocks, limits->registers / (registers * warps * WARP_LANES));
    return (uint32_t)blocks;
}

void sm_init(struct sm *sm, uint32_t number, const struct kernel_launch *launch,
             uint32_t blocks_in_flight, uint32_t schedulers)
{
    *sm = (struct sm){.number = number,
                      .block_count = blocks_in_flight,
                      .warp_count = blocks_in_flight * launch->warps_per_block,
                      .schedulers = schedulers};
    sm->warps = mem_array(sm->warp_count, sizeof *sm->warps);
    sm->live = mem_array(sm->block_count, sizeof *sm->live);
}

void sm_fini(struct sm *sm)
{
    free(sm->warps);
    free(sm->live);
}

bool sm_begin_block(struct sm *sm, const struct kernel_launch *launch, struct block_map *map,
                    uint32_t place)
{
    uint64_t block;
    if (!block_map_take(map, sm->number, &sm->taken, &block))
        return false;
    for (uint32_t w = 0; w < launch->warps_per_block; w++) {
        struct sm_warp *warp = &sm->warps[place * launch->warps_per_block + w];
        *warp = (struct sm_warp){.live = true, .age = sm->begun};
        kernel_begin(launch, block, w, &warp->cursor);
    }
    sm->begun++;
    sm->live[place] = launch->warps_per_block;
    sm->live_total += launch->warps_per_block;
    return true;
}

static bool is_ready(const struct sm_warp *warp, uint64_t tick)
{
    return warp->live && warp->ready <= tick;
}

static struct sm_warp *choose_oldest(struct sm *sm, uint32_t scheduler, uint64_t tick)
{
    struct sm_warp *oldest = NULL;
    for (uint32_t w = scheduler; w < sm->warp_count; w += sm->schedulers)
        if (is_ready(&sm->warps[w], tick) && (!oldest || sm->warps[w].age < oldest->age))
            oldest = &sm->warps[w];
    return oldest;
}

struct sm_warp *sm_choose(struct sm *sm, uint32_t scheduler, enum sm_scheduler policy,
                          uint64_t tick)
{
    uint32_t count = sm->warp_count, last = sm->last[scheduler];
    if (scheduler >= count)
        return NULL;
    if (policy == SM_GTO) {
        struct sm_warp *same = last < count ? &sm->warps[last] : NULL;
        struct sm_warp *warp =
            same && is_ready(same, tick) ? same : choose_oldest(sm, scheduler, tick);
        if (warp)
            sm->last[scheduler] = (uint32_t)(warp - sm->warps);
        return warp;
    }
    for (uint32_t tried = 0; tried < count; tried += sm->schedulers) {
        last = last + sm->schedulers < count ? last + sm->schedulers : scheduler;
        if (is_ready(&sm->warps[last], tick)) {
            sm->last[scheduler] = last;
            return &sm->warps[last];
        }
    }
    return NULL;
}

bool sm_end_warp(struct sm *sm, struct sm_warp *warp, const struct kernel_launch *launch,
                 uint32_t *out_place)
{
    uint32_t place = (uint32_t)(warp - sm->warps) / launch->warps_per_block;
    warp->live = false;
    sm->live_total--;
    if (--sm->live[place] || (sm->together && sm->live_total))
        return false;
    *out_place = place;
    return true;
}

void sm_refill(struct sm *sm, const struct kernel_launch *launch, struct block_map *map,
               uint32_t place)
{
    if (!sm->together) {
        sm_begin_block(sm, launch, map, place);
        return;
    }
    for (uint32_t i = 0; i < sm->block_count; i++)
        if (!sm_begin_block(sm, launch, map, i))
            return;
}

void sm_take_block(struct sm *sm, const struct kernel_launch *launch, struct block_map *map)
{
    uint32_t place = 0;
    while (sm->live[place])
        place++;
    sm_refill(sm, launch, map, place);
    bool full = sm->together || map->next == map->blocks;
    sm->vacant = full ? 0 : sm->vacant - 1;
}
