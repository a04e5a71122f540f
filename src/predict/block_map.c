/* Deals the blocks of a grid out to the SMs. */
#include "predict/block_map.h"

#include "base/rng.h"

static bool take_run(const struct block_map *map, uint32_t sm, uint64_t run, uint64_t *at,
                     uint64_t *out_block)
{
    uint64_t block = (*at / run * map->sms + sm) * run + *at % run;
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
    if (!take_run(map, sm, 1, at, out_block))
        return false;
    *out_block = shuffled(map, *out_block);
    return true;
}

bool block_map_take(struct block_map *map, uint32_t sm, uint64_t *at, uint64_t *out_block)
{
    switch (map->mapping) {
    case BLOCK_FIRST_FREE:
        if (map->next == map->blocks)
            return false;
        *out_block = map->next++;
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
