/* Deals the blocks of a grid out to the SMs. */
#include "predict/block_map.h"

#include "base/rng.h"

/* The first block from `block` on that has accesses. */
static uint64_t skip(const struct block_map *map, uint64_t block)
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
    while ((busy = skip(map, block)) != block) {
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
        if (skip(map, block) != block)
            continue;
        *out_block = block;
        return true;
    }
    return false;
}

void block_map_begin(struct block_map *map)
{
    map->next = skip(map, 0);
}

bool block_map_take(struct block_map *map, uint32_t sm, uint64_t *at, uint64_t *out_block)
{
    switch (map->mapping) {
    case BLOCK_FIRST_FREE:
        if (map->next == map->blocks)
            return false;
        *out_block = map->next;
        map->next = skip(map, map->next + 1);
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
