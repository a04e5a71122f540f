/* The steps of a cache with banks, ports and miss registers (MSHRs), as in the seed's table 3. */
#ifndef GPUMEMTOPO_PREDICT_PARALLEL_H
#define GPUMEMTOPO_PREDICT_PARALLEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum {
    PARALLEL_MSHRS_MAX = 1024,
    PARALLEL_BANKS_MAX = 64,
    PARALLEL_CHOSEN_MAX = 1024, /* banks x ports */
};

/* Latency of a miss in steps: k1 + k2 x busy MSHRs x sharers. k2 = 0: the fixed model. */
struct parallel_latency {
    double k1, k2;
    double sharers; /* active SMs / parallelism of L2 */
};

struct parallel_config {
    uint32_t banks, ports, mshrs;
    uint32_t merges_max; /* further accesses that one miss register takes */
    struct parallel_latency latency;
};

enum parallel_status { PARALLEL_HIT, PARALLEL_MISS, PARALLEL_MERGED, PARALLEL_FAILED };

/* One access of a group. `warp` is the priority: the lowest goes first. */
struct parallel_access {
    uint64_t line;
    uint32_t warp, bank;
    uint32_t issue, index; /* the caller's */
    bool done;
};

/* Answers for the cache behind the banks: is this access's line there? If it is, it was used now;
 * if not, it is brought in, unless `bring` is false. */
typedef bool parallel_lookup(void *cache, const struct parallel_access *access, bool bring);

/* Called for each access in each step that serves it. Optional. */
typedef void parallel_watch(void *watcher, uint64_t step, const struct parallel_access *access,
                            enum parallel_status status);

struct parallel_counts {
    uint64_t steps, hits, misses, merges, fails;
};

struct parallel_mshr {
    uint64_t line, arrives; /* at the end of this step, in which the register is free again */
    uint32_t merges;
};

/* Zero-initialised except config, lookup, cache. */
struct parallel {
    struct parallel_config config;
    parallel_lookup *lookup;
    void *cache;
    parallel_watch *watch;
    void *watcher;
    struct parallel_counts counts;
    struct parallel_mshr mshrs[2 * PARALLEL_MSHRS_MAX]; /* reserved ones, and those arriving now */
    uint32_t mshr_count, reserved;
};

/* -EINVAL: a number is zero or too large. */
int parallel_check(const struct parallel_config *config, struct err *err);

/* Serves the accesses of a group of warps, in order of warp; returns after the step in which the
 * last one hit or got its miss register. */
void parallel_serve(struct parallel *parallel, struct parallel_access *accesses, size_t count);

#endif
