/* Hit ratios over the size of L1 and of L2, from reuse distances in the same pass. */
#ifndef GPUMEMTOPO_PREDICT_CURVES_H
#define GPUMEMTOPO_PREDICT_CURVES_H

#include "predict/model.h"

struct curves;

struct curves *curves_create(const struct model_config *config); /* NULL: out of memory */
void curves_destroy(struct curves *curves);                      /* accepts NULL */

/* A load or store of L1 number l1, and what L2 is asked for behind L1; lines of each. Loads are
 * counted; stores only bring what they wrote, if L1 takes them. 0 or -ENOMEM. */
int curves_l1(struct curves *curves, uint32_t l1, uint64_t line, uint32_t sectors, bool store);
int curves_l2(struct curves *curves, uint64_t line, uint32_t sectors, bool store);

void curves_finish(const struct curves *curves, struct model_counts *out_counts);

#endif
