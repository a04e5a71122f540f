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

static bool take_random(const struct block_map *map, uint32_t sm, uint64_t *at, uint64_t *out_block)
{
    while (*at < map->blocks) {
        uint64_t block = (*at)++;
        if (rng_derive(map->seed, "block", block) % map->sms == sm) {
            *out_block = block;
            return true;
        }
    }
    return false;
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
