/* Reuse distances, and the hit ratios over the size of L1 and of L2 that follow from them. */
#ifndef GPUMEMTOPO_PREDICT_REUSE_H
#define GPUMEMTOPO_PREDICT_REUSE_H

#include <stddef.h>
#include <stdint.h>

#include "predict/model.h"

/* Memory grows with the number of different lines, not with the number of accesses. One access
 * takes O(log n) for n different lines.
 *
 * Lines may have sectors. A cache that keeps whole lines but fetches sectors hits a sector if its
 * line was never evicted since the sector came: the largest distance of the line since then
 * counts. So one pass gives the hits of all sizes, in sectors. */
struct reuse;

enum { REUSE_NEVER = -1 }; /* the line was not used before */

/* lines_max: lines farther away than this are forgotten, as if they had never been used; hits of
 * sizes up to lines_max are exact. 0: no limit. sectors: of a line, at least 1. */
struct reuse *reuse_create(uint64_t lines_max, uint32_t sectors);
void reuse_destroy(struct reuse *reuse); /* accepts NULL */

/* The distance of this access; REUSE_NEVER: the first one. */
int64_t reuse_access(struct reuse *reuse, uint64_t line);

/* The same for sectors of a line (bit i: sector i): `asked` are counted, `brought` are there
 * afterwards, `asked` among them. */
int64_t reuse_access_sectors(struct reuse *reuse, uint64_t line, uint32_t asked, uint32_t brought);

/* What a fully associative LRU cache of `lines` lines would have hit; one pass gives all sizes. */
uint64_t reuse_hits(const struct reuse *reuse, uint64_t lines);

uint64_t reuse_accesses(const struct reuse *reuse); /* of sectors */
uint64_t reuse_lines(const struct reuse *reuse);    /* different ones that are not forgotten */

struct curves;

struct curves *curves_create(const struct model_config *config);
void curves_destroy(struct curves *curves); /* accepts NULL */

/* A load or store of L1 number l1, and what L2 is asked for behind L1; lines of each. Loads are
 * counted; stores only bring what they wrote, if L1 takes them. */
void curves_l1(struct curves *curves, uint32_t l1, uint64_t line, uint32_t sectors, bool store);
void curves_l2(struct curves *curves, uint64_t line, uint32_t sectors, bool store);

void curves_finish(const struct curves *curves, struct model_counts *out_counts);

#endif
