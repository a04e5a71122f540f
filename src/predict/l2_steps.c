/* Serves the requests of a tick through the partitions of L2, as section 4.4.2 of [K] has it
 * (docs/PREDICT.md).
 *
 * Lines lie in the partitions in turn, and in the banks of a partition in turn. Each partition has
 * miss registers of its own. The partitions work at the same time: a tick takes as many steps as
 * the busiest of them. */
#include "predict/l2_steps.h"

#include <stdlib.h>

#include "base/mem.h"

/* A line of L2 that an access waits for. */
struct waiting {
    struct cache_request part;
    uint32_t warp; /* the lowest goes first */
    enum hierarchy_level *level;
};

struct l2_steps {
    struct hierarchy *hierarchy;
    uint32_t partitions;
    struct parallel *parallel; /* of each partition */
    struct waiting *waiting;
    struct parallel_access *accesses; /* of one partition */
    size_t count, waiting_room, access_room;
    uint64_t steps;
};

/* access->issue is the index of what waits. A store fetches nothing, so it counts as a hit. */
static bool look_up(void *context, const struct parallel_access *access, bool bring)
{
    struct l2_steps *steps = context;
    struct waiting *waiting = &steps->waiting[access->issue];
    bool here = waiting->part.note & HIERARCHY_STORES ||
                hierarchy_l2_holds(steps->hierarchy, &waiting->part);
    if (!here && !bring)
        return false;
    if (hierarchy_l2_part(steps->hierarchy, &waiting->part))
        *waiting->level = HIERARCHY_MAIN;
    return here;
}

struct l2_steps *l2_steps_create(struct hierarchy *h)
{
    struct l2_steps *steps = mem_array(1, sizeof *steps);
    if (!steps)
        return NULL;
    steps->hierarchy = h;
    steps->partitions = h->config->l2_partitions;
    steps->parallel = mem_array(steps->partitions, sizeof *steps->parallel);
    if (!steps->parallel) {
        free(steps);
        return NULL;
    }
    for (uint32_t i = 0; i < steps->partitions; i++) {
        steps->parallel[i].config = h->config->l2_parallel;
        steps->parallel[i].lookup = look_up;
        steps->parallel[i].cache = steps;
    }
    return steps;
}

void l2_steps_destroy(struct l2_steps *steps)
{
    if (!steps)
        return;
    free(steps->parallel);
    free(steps->waiting);
    free(steps->accesses);
    free(steps);
}

void l2_steps_add(struct l2_steps *steps, struct cache_request *request, uint32_t warp,
                  enum hierarchy_level *level)
{
    struct cache_request parts[CACHE_SECTORS_MAX];
    size_t count = hierarchy_begin_one(steps->hierarchy, request, parts);
    if (request->missing && *level == HIERARCHY_L1)
        *level = HIERARCHY_L2;
    struct waiting *grown = steps->waiting;
    if (steps->count + count > steps->waiting_room)
        grown = mem_grow(steps->waiting, &steps->waiting_room, steps->count + count, sizeof *grown);
    if (!grown) {
        steps->hierarchy->no_memory = true;
        return;
    }
    steps->waiting = grown;
    for (size_t i = 0; i < count; i++)
        steps->waiting[steps->count++] = (struct waiting){parts[i], warp, level};
}

/* What waits for one partition. */
static size_t collect(struct l2_steps *steps, uint32_t partition)
{
    size_t count = 0;
    for (size_t i = 0; i < steps->count; i++) {
        const struct cache_request *part = &steps->waiting[i].part;
        if (part->number % steps->partitions != partition)
            continue;
        uint64_t inside = part->number / steps->partitions;
        steps->accesses[count++] = (struct parallel_access){
            .line = part->number,
            .warp = steps->waiting[i].warp,
            .issue = (uint32_t)i,
            .bank = (uint32_t)(inside % steps->hierarchy->config->l2_parallel.banks)};
    }
    return count;
}

void l2_steps_serve(struct l2_steps *steps)
{
    uint64_t longest = 0;
    if (steps->count > steps->access_room) {
        struct parallel_access *grown =
            mem_grow(steps->accesses, &steps->access_room, steps->count, sizeof *grown);
        steps->hierarchy->no_memory |= !grown;
        if (!grown)
            return;
        steps->accesses = grown;
    }
    for (uint32_t i = 0; i < steps->partitions && steps->count; i++) {
        uint64_t before = steps->parallel[i].counts.steps;
        parallel_serve(&steps->parallel[i], steps->accesses, collect(steps, i));
        uint64_t taken = steps->parallel[i].counts.steps - before;
        longest = taken > longest ? taken : longest;
    }
    steps->steps += longest;
    steps->count = 0;
}

void l2_steps_finish(const struct l2_steps *steps)
{
    struct model_counts *counts = &steps->hierarchy->counts;
    counts->l2_steps = steps->steps;
    for (uint32_t i = 0; i < steps->partitions; i++) {
        counts->l2_merges += steps->parallel[i].counts.merges;
        counts->l2_fails += steps->parallel[i].counts.fails;
    }
}
