/* Whether the geometry of a GPU model makes sense. */
#ifndef GPUMEMTOPO_PREDICT_MACHINE_CHECK_H
#define GPUMEMTOPO_PREDICT_MACHINE_CHECK_H

#include "predict/machine.h"

/* 0, or -EINVAL: which figure contradicts which other one, and what to give instead. What was
 * measured need not be exact (a size may end within a line); what --what-if gives must be.
 * sets: of L1, 0: unknown. what_if: NULL for the GPU as it is. */
int machine_check(const struct machine *machine, uint64_t sets, const struct what_if *what_if,
                  struct err *err);

/* Gives shared memory `carveout` bytes of the storage that it shares with L1; L1 gets the rest. */
int machine_check_carveout(struct machine *machine, uint64_t carveout,
                           const struct what_if *what_if, struct err *err);

#endif
