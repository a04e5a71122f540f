/* Sweeps of array sizes: the miss share of each size, where it changes, and the curve that the
 * profile `full` keeps. */
#ifndef GPUMEMTOPO_PROBES_CACHES_SWEEP_H
#define GPUMEMTOPO_PROBES_CACHES_SWEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cpd/cpd.h"
#include "inventory/curves.h"
#include "probes/probe.h"

/* Sizes low, low + step, ... up to high; at most SWEEP_SIZES_MAX measurements in total. */
enum { SWEEP_SIZES_MAX = 264 };

struct sweep_range {
    uint64_t low_bytes, high_bytes, step_bytes;
    uint64_t stride_bytes; /* one load per line or fetch unit (thesis 4.7.1) */
    uint32_t repeats;      /* measurements of each size; 0 means 1 */
};

struct sweep_curve {
    uint64_t sizes[SWEEP_SIZES_MAX]; /* ascending, each `repeats` times */
    double miss_shares[SWEEP_SIZES_MAX];
    size_t count;
};

/* Chases every size of the range, each on its own SM, and counts misses by the study's
 * threshold. */
int sweep_measure(struct probe_context *context, const struct study *study,
                  const struct sweep_range *range, struct sweep_curve *out_curve, struct err *err);

/* Share of loads above the threshold for each of `count` sizes. */
int sweep_sizes(struct probe_context *context, const struct study *study, const uint64_t *sizes,
                size_t count, uint64_t stride_bytes, double *out_shares, struct err *err);

/* The same, and the share of the loads that the cache `before` this one did not serve. NULL: there
 * is none. */
int sweep_sizes_behind(struct probe_context *context, const struct study *study,
                       const uint64_t *sizes, size_t count, uint64_t stride_bytes,
                       const struct study *before, double *out_shares, double *out_passed,
                       struct err *err);

/* Where misses begin: the first change point of ascending sizes. About three measurements after it
 * are needed to tell it from an outlier, so on a coarse curve it may be two sizes too late. */
struct sweep_onset {
    struct cpd_change change; /* found: whether there is one at all */
    uint64_t fits_bytes;      /* the largest size before it */
};

int sweep_onset(const struct study *study, const uint64_t *sizes, const double *miss_shares,
                size_t count, uint64_t seed, struct sweep_onset *out_onset, struct err *err);

/* The first index from which on sizes do not fit, because more than `limit` of their loads miss:
 * the split that contradicts the fewest sizes, so that a single size with conflict misses does not
 * count. */
size_t sweep_first_over(const double *miss_shares, size_t count, double limit);

/* Sweeps and adds the note `curve` to an existing metric, in the profile `full` only. */
int sweep_note_cache(struct probe_context *context, const struct study *study, const char *metric,
                     struct err *err);

int sweep_note_l2(struct probe_context *context, struct err *err);

#endif
