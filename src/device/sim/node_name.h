/* Names of a range of nodes from a pattern such as "gpu%03d". */
#ifndef GPUMEMTOPO_DEVICE_SIM_NODE_NAME_H
#define GPUMEMTOPO_DEVICE_SIM_NODE_NAME_H

#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

/* -EINVAL unless the pattern is a name with at most one %d or %0Nd (N 1 to 9; %% is a per cent
 * sign), and exactly one if count is above 1. */
int sim_node_name_check(const char *pattern, uint32_t count, struct err *err);

/* The name with the number inserted. The pattern must have been checked. */
char *sim_node_name(struct arena *arena, const char *pattern, uint64_t number);

#endif
