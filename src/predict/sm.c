/* Blocks and warps in flight on one SM. */
#include "predict/sm.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"

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

int sm_init(struct sm *sm, uint32_t number, const struct kernel_launch *launch,
            uint32_t blocks_in_flight, uint32_t schedulers)
{
    *sm = (struct sm){.number = number,
                      .block_count = blocks_in_flight,
                      .warp_count = blocks_in_flight * launch->warps_per_block,
                      .schedulers = schedulers};
    sm->warps = mem_array(sm->warp_count, sizeof *sm->warps);
    sm->live = mem_array(sm->block_count, sizeof *sm->live);
    return sm->warps && sm->live ? 0 : -ENOMEM;
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

static void begin_all(struct sm *sm, const struct kernel_launch *launch, struct block_map *map)
{
    for (uint32_t place = 0; place < sm->block_count; place++)
        if (!sm_begin_block(sm, launch, map, place))
            return;
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
    if (sm->together)
        begin_all(sm, launch, map);
    else
        sm_begin_block(sm, launch, map, place);
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
