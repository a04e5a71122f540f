/* Which rank measures which GPU: a pure function of what the ranks announced. */
#ifndef GPUMEMTOPO_SURVEY_ROOT_ASSIGN_H
#define GPUMEMTOPO_SURVEY_ROOT_ASSIGN_H

#include <stddef.h>
#include <stdint.h>

/* The GPUs that one rank sees. */
struct assign_rank {
    const char *const *uuids;
    size_t count;
};

/* The GPUs that one rank must measure: positions in its own list, ascending. */
struct assign_share {
    uint32_t *positions; /* freed with free() */
    size_t count;
};

/* Gives each UUID to exactly one of the ranks that see it: GPUs with few viewers first, then in
 * rank order, each to its least loaded viewer (the lowest rank among equals). out_shares: one per
 * rank. O(n log n) in the sum of all lists. */
void assign_gpus(const struct assign_rank *ranks, size_t rank_count,
                 struct assign_share *out_shares);

#endif
