/* Findings of a place: a model, a node, or a slot across nodes. */
#ifndef GPUMEMTOPO_JUDGE_PLACE_FINDINGS_H
#define GPUMEMTOPO_JUDGE_PLACE_FINDINGS_H

#include "judge/stages.h"

/* A finding for which two thirds of the GPUs of a model, a node, a slot or an index are accused
 * becomes one entry of the inventory's nodes. 0 or -ENOMEM. */
int place_findings_collapse(struct judge *judge, struct inventory *inventory);

/* Adds an entry that accuses no GPU. Takes over `finding`, also on failure; NULL means out of
 * memory. uuid may be NULL. 0 or -ENOMEM. */
int place_findings_add(struct inventory *inventory, const char *node, char *finding,
                       const char *uuid);

#endif
