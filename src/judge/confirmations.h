/* Before a GPU is accused by a figure that can be disturbed, something else must show the
 * deviation: a second measurement, the cause, or other figures. */
#ifndef GPUMEMTOPO_JUDGE_CONFIRMATIONS_H
#define GPUMEMTOPO_JUDGE_CONFIRMATIONS_H

#include "judge/stages.h"

/* Adds second values of a GPU's figures, by metric. 0, or -ENOMEM and nothing is added. */
int confirmations_add(struct judge *judge, uint32_t gpu, const struct facts *values);

/* Adds an unknown second value for every finding that needs one and has none: the second
 * measurement failed. 0 or -ENOMEM. */
int confirmations_end(struct judge *judge);

/* Compares the findings with the second values, and drops values that no finding needs. A deviation
 * that was not seen again is watched. To be called before findings are listed for places. */
void confirmations_compare(struct judge *judge);

/* For findings that were not measured again: watches those that neither the cause nor another
 * figure confirms. To be called after findings are listed for places. */
void confirmations_settle(struct judge *judge);

/* "2 of 2" and the like; NULL: nothing to say. 0 or -ENOMEM. */
int confirmations_text(const struct finding *finding, char **out_text);

/* Adds the second values of a GPU to the facts. 0 or -ENOMEM. */
int confirmations_list(const struct judge *judge, uint32_t gpu, struct facts *out_facts);

#endif
