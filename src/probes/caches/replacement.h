/* Which line of a set goes when a new one comes. */
#ifndef GPUMEMTOPO_PROBES_CACHES_REPLACEMENT_H
#define GPUMEMTOPO_PROBES_CACHES_REPLACEMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "probes/caches/cache_sets.h"

enum replacement_policy {
    REPLACEMENT_UNKNOWN,
    REPLACEMENT_NONE, /* a set has one line */
    REPLACEMENT_LRU,
    REPLACEMENT_FIFO,
    REPLACEMENT_RANDOM, /* every way is as likely, whatever went before */
    REPLACEMENT_BIASED, /* the same with unequal shares */
    REPLACEMENT_NOT_LRU,
};

const char *replacement_name(enum replacement_policy policy); /* "lru", ... */

enum { REPLACEMENT_WAYS_MAX = 32, REPLACEMENT_REASON_MAX = 120 };

struct replacement {
    enum replacement_policy policy;
    char reason[REPLACEMENT_REASON_MAX]; /* why it is unknown, or what speaks against LRU */
    double shares[REPLACEMENT_WAYS_MAX]; /* biased: of the evictions, by way as they were filled */
    uint32_t n;                          /* evictions, or loads, behind it */
    bool unexplained; /* lines scattered at random stay as under none of the policies by which
                       * they told the sets and ways: these are doubtful then */
};

int replacement_measure(struct probe_context *context, const struct study *study,
                        const struct cache_sets *sets, struct replacement *out_replacement,
                        struct err *err);

#endif
