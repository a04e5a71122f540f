/* Sets and ways of the tags of a cache, from lines scattered at random. */
#ifndef GPUMEMTOPO_PROBES_CACHES_TAG_SCATTER_H
#define GPUMEMTOPO_PROBES_CACHES_TAG_SCATTER_H

#include "probes/probe.h"

enum { TAG_SCATTER_COUNTS = 6 };

/* So many lines were drawn at random, and this share of them misses in every pass. */
struct tag_scatter_point {
    uint64_t lines;
    double share, error; /* standard error */
};

struct tag_scatter {
    bool told;
    uint64_t ways;
    uint64_t sets;                  /* that fits best, or the power of two that fits as well */
    uint64_t sets_least, sets_most; /* that fit as well */
    bool exact;                     /* it is that power of two */
    bool regular;                   /* lines `sets` apart share a set; otherwise hashed */
    uint32_t n;                     /* timed loads */
};

/* The lines from which others are drawn: the largest power of two before the end of the memory. */
uint64_t tag_scatter_region(const struct study *study);

/* All lines of the region in a new random order: a step with fewer loads draws lines. */
struct device_array tag_scatter_lines(struct probe_context *context, const struct study *study);

/* A line outside the region. A step of the same array as the step before would continue; after this
 * one it begins again. */
struct device_array tag_scatter_other(const struct study *study);

/* Draws lines from a region many times as large as the cache, loads them again and again, and
 * counts how many miss. The study must have its line and size. */
int tag_scatter_measure(struct probe_context *context, const struct study *study,
                        struct tag_scatter *out_scatter, struct err *err);

/* The share of `lines` lines, drawn from a region of `region`, that are in a set with more of them
 * than it has ways, if each set has as many lines of the region. */
double tag_scatter_share(uint64_t region, uint64_t lines, uint64_t sets, uint64_t ways);

/* The sets and ways that explain the points; told: if no others do. lines: that the cache holds. */
void tag_scatter_fit(uint64_t region, uint64_t lines,
                     const struct tag_scatter_point points[TAG_SCATTER_COUNTS],
                     struct tag_scatter *out_scatter);

#endif
