/* Reuse distances: how many different lines were used since the last use of the same line. */
#ifndef GPUMEMTOPO_PREDICT_REUSE_H
#define GPUMEMTOPO_PREDICT_REUSE_H

#include <stddef.h>
#include <stdint.h>

/* Memory grows with the number of different lines, not with the number of accesses. One access
 * takes O(log n) for n different lines. */
struct reuse;

enum { REUSE_NEVER = -1 }; /* the line was not used before */

struct reuse *reuse_create(void);        /* NULL: out of memory */
void reuse_destroy(struct reuse *reuse); /* accepts NULL */

/* The distance of this access (REUSE_NEVER: the first one) and 0, or -ENOMEM. */
int reuse_access(struct reuse *reuse, uint64_t line, int64_t *out_distance);

/* What a fully associative LRU cache of `lines` lines would have hit; one pass gives all sizes. */
uint64_t reuse_hits(const struct reuse *reuse, uint64_t lines);

uint64_t reuse_accesses(const struct reuse *reuse);
uint64_t reuse_lines(const struct reuse *reuse); /* different ones */

#endif
