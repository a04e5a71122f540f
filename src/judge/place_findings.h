/* Findings that belong to a place. */
#ifndef GPUMEMTOPO_JUDGE_PLACE_FINDINGS_H
#define GPUMEMTOPO_JUDGE_PLACE_FINDINGS_H

#include "judge/stages.h"

/* Accusations that most GPUs of a model, a node, a slot or an index share become one entry of the
 * inventory's nodes each. 0 or -ENOMEM. */
int place_findings_collapse(struct judge *judge, struct inventory *inventory);

/* One more entry that accuses nobody. Takes over `finding` (NULL: out of memory); uuid may be NULL.
 * 0 or -ENOMEM. */
int place_findings_add(struct inventory *inventory, const char *node, char *finding,
                       const char *uuid);

#endif
