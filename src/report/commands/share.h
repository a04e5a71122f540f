/* Sketches of the healthy GPUs of inventories, to be shared: no identity is in them. */
#ifndef GPUMEMTOPO_REPORT_COMMANDS_SHARE_H
#define GPUMEMTOPO_REPORT_COMMANDS_SHARE_H

#include "base/err.h"
#include "inventory/inventory.h"
#include "judge/judge.h"
#include "judge/world.h"

/* Adds the GPUs of these inventories to the world, each GPU once: of each of its figures the newest
 * counts. GPUs that are outliers or busy in one of the inventories, or that an entry of `nodes`
 * names, are left out. */
void report_share(const struct inventory *inventories, size_t count,
                  const struct judge_config *config, struct world *world);

#endif
