/* The lines that share the set which overflows first. */
#ifndef GPUMEMTOPO_PROBES_METHOD_SET_GROUP_H
#define GPUMEMTOPO_PROBES_METHOD_SET_GROUP_H

#include "probes/method/cache_sets.h"

/* Sets group, ways, loads and miss_share, and lowers fits if it was too high; if it is not clear
 * which lines they are, only a doubt. brief: gives up soon, since another method knows better
 * unless the group is plain to see. */
int set_group_find(struct probe_context *context, const struct study *study, bool brief,
                   struct cache_sets *sets, struct err *err);

#endif
