/* Settings that are below the GPU's own default or limit. No peers are needed to see them. */
#ifndef GPUMEMTOPO_JUDGE_OWN_DEFAULTS_H
#define GPUMEMTOPO_JUDGE_OWN_DEFAULTS_H

#include "judge/stages.h"

/* The SM clock stays below the clock that the settings allow, is steady, and the driver names no
 * reason: it is locked. */
bool own_defaults_locked(const struct fleet *fleet, uint32_t gpu);

/* The same as a cause, for a GPU whose clock is locked; freed by the caller. NULL: out of memory.
 */
char *own_defaults_locked_text(const struct fleet *fleet, uint32_t gpu);

/* Adds one entry to the inventory's nodes for each of these settings that two thirds of a
 * population have. Nobody is accused: the site may want it. 0 or -ENOMEM. */
int own_defaults_report(const struct judge *judge, const struct group *model,
                        struct inventory *inventory);

#endif
