/* Reuse distances from a Fenwick tree over the times of last uses. */
#include "predict/reuse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { TIMES_MIN = 1024 };

/* A line is `live` at the time of its last use. When the times run out, live lines are numbered
 * anew in their order; the number of times is at least twice that of lines, so that this is rare.
 */
struct reuse {
    uint32_t *tree;      /* Fenwick: number of live times up to here; 1 .. times_max */
    uint64_t *line_of;   /* by time: the line used then */
    uint32_t *buckets;   /* hash of lines: time of the last use, 0: free */
    uint64_t *distances; /* how often each distance occurred */
    uint32_t times_max, now, live, bucket_mask;
    uint64_t accesses;
};

static uint32_t bucket_of(const struct reuse *reuse, uint64_t line)
{
    uint32_t at = (uint32_t)((line * 0x9e3779b97f4a7c15u) >> 32) & reuse->bucket_mask;
    while (reuse->buckets[at] && reuse->line_of[reuse->buckets[at]] != line)
        at = (at + 1) & reuse->bucket_mask;
    return at;
}

static void add(struct reuse *reuse, uint32_t time, uint32_t by)
{
    for (; time <= reuse->times_max; time += time & -time)
        reuse->tree[time] += by;
}

static uint32_t live_up_to(const struct reuse *reuse, uint32_t time)
{
    uint32_t sum = 0;
    for (; time; time &= time - 1)
        sum += reuse->tree[time];
    return sum;
}

static int allocate(struct reuse *reuse, uint32_t times)
{
    reuse->times_max = times;
    reuse->bucket_mask = times - 1;
    reuse->tree = mem_array((size_t)times + 1, sizeof *reuse->tree);
    reuse->line_of = mem_array((size_t)times + 1, sizeof *reuse->line_of);
    reuse->buckets = mem_array(times, sizeof *reuse->buckets);
    reuse->distances = mem_array(times, sizeof *reuse->distances);
    return reuse->tree && reuse->line_of && reuse->buckets && reuse->distances ? 0 : -ENOMEM;
}

static void release(struct reuse *reuse)
{
    free(reuse->tree);
    free(reuse->line_of);
    free(reuse->buckets);
    free(reuse->distances);
}

/* Numbers the live times from 1 on, in twice the space where they fill more than half of it. */
static int renumber(struct reuse *reuse)
{
    struct reuse next = {.accesses = reuse->accesses};
    uint32_t times = reuse->times_max;
    if (reuse->live > times / 4) {
        if (times > UINT32_MAX / 4)
            return -ENOMEM;
        times *= 2;
    }
    int rc = allocate(&next, times);
    if (rc) {
        release(&next);
        return rc;
    }
    memcpy(next.distances, reuse->distances, reuse->times_max * sizeof *next.distances);
    for (uint32_t time = 1; time <= reuse->times_max; time++) {
        uint64_t line = reuse->line_of[time];
        if (reuse->buckets[bucket_of(reuse, line)] != time)
            continue;
        uint32_t at = bucket_of(&next, line);
        next.line_of[++next.now] = line;
        next.buckets[at] = next.now;
        add(&next, next.now, 1);
        next.live++;
    }
    release(reuse);
    *reuse = next;
    return 0;
}

struct reuse *reuse_create(void)
{
    struct reuse *reuse = mem_array(1, sizeof *reuse);
    if (reuse && allocate(reuse, TIMES_MIN)) {
        reuse_destroy(reuse);
        return NULL;
    }
    return reuse;
}

void reuse_destroy(struct reuse *reuse)
{
    if (!reuse)
        return;
    release(reuse);
    free(reuse);
}

int reuse_access(struct reuse *reuse, uint64_t line, int64_t *out_distance)
{
    int rc = reuse->now == reuse->times_max ? renumber(reuse) : 0;
    if (rc)
        return rc;
    uint32_t at = bucket_of(reuse, line), before = reuse->buckets[at];
    int64_t distance = REUSE_NEVER;
    if (before) {
        distance = reuse->live - live_up_to(reuse, before);
        reuse->distances[distance]++;
        add(reuse, before, UINT32_MAX); /* less one */
    } else {
        reuse->live++;
    }
    reuse->accesses++;
    reuse->line_of[++reuse->now] = line;
    reuse->buckets[at] = reuse->now;
    add(reuse, reuse->now, 1);
    *out_distance = distance;
    return 0;
}

uint64_t reuse_hits(const struct reuse *reuse, uint64_t lines)
{
    uint64_t hits = 0;
    for (uint64_t d = 0; d < lines && d < reuse->live; d++)
        hits += reuse->distances[d];
    return hits;
}

uint64_t reuse_accesses(const struct reuse *reuse)
{
    return reuse->accesses;
}

uint64_t reuse_lines(const struct reuse *reuse)
{
    return reuse->live;
}
