/* Second values of figures, and what confirms a deviation. */
#ifndef GPUMEMTOPO_JUDGE_EVIDENCE_CONFIRMATIONS_H
#define GPUMEMTOPO_JUDGE_EVIDENCE_CONFIRMATIONS_H

#include "judge/state.h"

/* Adds second values of a GPU's figures, by metric. */
void confirmations_add(struct judge *judge, uint32_t gpu, const struct facts *values);

/* "2 of 2" and the like; NULL: nothing to say. Freed by the caller. */
char *confirmations_text(const struct finding *finding);

/* Adds the second values of a GPU to the facts. */
void confirmations_list(const struct judge *judge, uint32_t gpu, struct facts *out_facts);

#endif
