/* How a cache is divided into sets: the two-stage method of Mei and Chu (sections 4.2 to 4.4). */
#ifndef GPUMEMTOPO_PROBES_CACHES_CACHE_SETS_H
#define GPUMEMTOPO_PROBES_CACHES_CACHE_SETS_H

#include <stdbool.h>
#include <stdint.h>

#include "probes/caches/miss_counts.h"
#include "probes/probe.h"

enum cache_sets_index {
    CACHE_SETS_ONE,     /* one set: fully associative */
    CACHE_SETS_REGULAR, /* lines a period apart are in the same set */
    CACHE_SETS_HASHED,
};

enum { CACHE_SETS_DOUBT_MAX = 120 };

/* Lines are counted from the beginning of the memory of the path. */
struct cache_sets {
    bool told; /* otherwise `doubt` says why nothing is known */
    enum cache_sets_index index;
    uint64_t ways;     /* of the set that overflows first: a smallest one */
    uint64_t sets;     /* 0: not known */
    uint64_t larger;   /* sets that have one way more */
    uint64_t run;      /* lines that go to the same set one after the other */
    uint64_t period;   /* regular: lines */
    uint64_t fits;     /* lines of the longest array that never misses */
    uint64_t *group;   /* the ways + 1 lines of the first fits + 1 that share the set overflowing */
    double miss_share; /* of the loads of these lines, corrected */
    double stray;      /* share of hits that look like misses, measured for this */
    bool early;        /* evicts lines although their set has room */
    uint32_t loads;    /* timed, for the group */
    bool scattered;    /* by lines scattered at random: tags, which may be more than data */
    char doubt[CACHE_SETS_DOUBT_MAX]; /* empty: none */
};

/* The study must have its line and size. 0 also if nothing can be told. brief: gives up soon, since
 * another method knows better unless the group is plain to see. */
int cache_sets_measure(struct probe_context *context, const struct study *study, bool brief,
                       struct cache_sets *out_sets, struct err *err);

void cache_sets_fini(struct cache_sets *sets);

/* Passes that warm the cache: more if it evicts before it is full, since its last ways are filled
 * late. */
enum { CACHE_SETS_WARM_EARLY = 24 };

/* Bytes of all sets together; 0: not known. */
uint64_t cache_sets_bytes(const struct cache_sets *sets, uint64_t line_bytes);

/* Set of line i: (i / run) mod sets. */
struct set_pattern {
    uint64_t run;
    uint64_t sets;
};

/* The pattern that has exactly `group` (rising, count of them, at least two) among `lines` lines in
 * the set of the last one. False if there is none. */
bool set_pattern_find(const uint64_t *group, uint64_t count, uint64_t lines,
                      struct set_pattern *out_pattern);

/* The longest aligned run of lines that go to the same set, if each run of the group but the last,
 * which may be cut short, is as long or a multiple of it. */
uint64_t set_pattern_run(const uint64_t *group, uint64_t count);

/* Lines that miss among the first `lines`, if the first `larger` sets have ways + 1 and the others
 * `ways`: all lines of the sets that overflow. */
uint64_t set_pattern_missing(const struct set_pattern *pattern, uint64_t ways, uint64_t larger,
                             uint64_t lines);

#endif
