/* LRU or FIFO: what is still there after some lines were used again and new ones came. */
#include "probes/method/reuse_order.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"

/* A set by line: when it was used last, or loaded; 0: absent. */
struct set {
    uint64_t *since;
    uint64_t now;
    uint32_t lines, ways, held;
    bool fifo;
};

static uint32_t oldest(const struct set *set)
{
    uint32_t found = set->lines;
    for (uint32_t i = 0; i < set->lines; i++)
        if (set->since[i] && (found == set->lines || set->since[i] < set->since[found]))
            found = i;
    return found;
}

/* True when the line was there. */
static bool load(struct set *set, uint32_t line)
{
    bool there = set->since[line] > 0;
    set->now++;
    if (!there && set->held == set->ways)
        set->since[oldest(set)] = 0;
    else if (!there)
        set->held++;
    if (!there || !set->fifo)
        set->since[line] = set->now;
    return there;
}

static void load_range(struct set *set, uint32_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        load(set, first + i);
}

int reuse_order_predict(const struct reuse_pattern *pattern, bool fifo, bool *out_missed)
{
    struct set set = {.lines = pattern->ways + pattern->more, .ways = pattern->ways, .fifo = fifo};
    set.since = mem_array(set.lines, sizeof *set.since);
    if (!set.since)
        return -ENOMEM;
    load_range(&set, 0, pattern->ways);
    load_range(&set, pattern->first, pattern->again);
    load_range(&set, pattern->ways, pattern->more);
    for (uint32_t i = 0; i < pattern->timed; i++)
        out_missed[i] = !load(&set, i);
    free(set.since);
    return 0;
}
