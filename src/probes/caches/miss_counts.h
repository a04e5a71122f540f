/* Which elements of an array miss in a cache, over many passes: every load is timed and kept. */
#ifndef GPUMEMTOPO_PROBES_CACHES_MISS_COUNTS_H
#define GPUMEMTOPO_PROBES_CACHES_MISS_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probes/probe.h"

/* The loads of one job whose latencies are all kept. */
enum { MISS_COUNTS_KEEP = DEVICE_KEEP_ONE };

/* One array, chased again and again. The caller sets the first five. Jobs begin in different ways,
 * since a policy that is not random may let the same lines miss for ever after one beginning, and
 * others after another. */
struct miss_counts {
    struct device_array array;
    uint32_t warm_passes;
    bool plain;      /* nothing is loaded before these passes */
    uint32_t passes; /* timed; may become more, as whole jobs */
    double stray;    /* share of hits that look like misses */
    uint64_t elements;
    uint32_t *misses; /* by element */
};

/* A job of the study's cache: agent, path, and the shared memory that its jobs wish for. */
struct device_job miss_counts_job(const struct study *study);

/* Appends a chase of which every load is kept: not 0 if it missed. */
void miss_counts_time(struct device_job *job, const struct study *study,
                      const struct device_array *array, uint64_t loads);

/* Runs all of them in one batch. On success the caller releases them by miss_counts_fini. */
int miss_counts_run(struct probe_context *context, const struct study *study,
                    struct miss_counts *items, size_t count, struct err *err);

void miss_counts_fini(struct miss_counts *items, size_t count);

/* So many misses of one element are more than strays explain, even among all elements. */
uint32_t miss_counts_limit(const struct miss_counts *counts);

/* Elements with at least `limit` misses. */
uint64_t miss_counts_missing(const struct miss_counts *counts, uint32_t limit);

/* True when something misses: a single element too often, or all of them together. */
bool miss_counts_any(const struct miss_counts *counts);

#endif
