/* LRU, FIFO or pseudo-LRU: what is still there after some lines were used again and others came, in
 * one set and scattered over all sets. */
#ifndef GPUMEMTOPO_PROBES_CACHES_REUSE_H
#define GPUMEMTOPO_PROBES_CACHES_REUSE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"

/* Lines of a set are numbered. Lines 0 .. ways - 1 are loaded, then again first .. first + again -
 * 1, then the new ones ways .. ways + more - 1. Then lines 0 .. timed - 1 are timed. */
struct reuse_pattern {
    uint32_t ways;
    uint32_t first, again, more, timed;
};

/* Which timed lines miss in a set of LRU, or of FIFO. */
void reuse_pattern_predict(const struct reuse_pattern *pattern, bool fifo, bool *out_missed);

/* `first` lines are loaded, the first `again` of them once more, then `more` others. Then the
 * `first` ones are timed, in the same order. */
struct reuse_scattered {
    uint64_t first, again, more;
};

/* The lines of a region, drawn at random; lines as many apart as there are sets share one. */
struct reuse_sets {
    uint64_t region, sets, ways;
};

/* Of the timed loads, the share that missed in the first half and in the second. */
enum { REUSE_HALVES = 2 };

struct reuse_shares {
    double mean[REUSE_HALVES];
    double error[REUSE_HALVES]; /* standard error */
};

/* Adds up the shares of several jobs. */
struct reuse_sums {
    double sum[REUSE_HALVES], squares[REUSE_HALVES];
    uint32_t jobs;
};

void reuse_sums_add(struct reuse_sums *sums, const double share[REUSE_HALVES]);

struct reuse_shares reuse_sums_shares(const struct reuse_sums *sums);

/* Policies under which every line of a set that has too many misses in every pass: LRU, FIFO, and
 * with some numbers of ways pseudo-LRU by a binary tree whose nodes point away from the last use.
 */
enum reuse_policy { REUSE_LRU, REUSE_FIFO, REUSE_TREE, REUSE_POLICIES };

enum { REUSE_WAYS_MAX = 32 };

/* Executes the loads in a cache of this policy and at most REUSE_WAYS_MAX ways, with so many draws.
 */
void reuse_scattered_imitate(const struct reuse_scattered *loads, const struct reuse_sets *sets,
                             enum reuse_policy policy, uint32_t draws, uint64_t seed,
                             struct reuse_shares *out_shares);

#endif
