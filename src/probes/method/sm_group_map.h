/* Which SMs belong together, as sm.groups found it. */
#ifndef GPUMEMTOPO_PROBES_METHOD_SM_GROUP_MAP_H
#define GPUMEMTOPO_PROBES_METHOD_SM_GROUP_MAP_H

#include "probes/probe.h"

/* The number of each SM's group, from 0 on. False: they are not known for all of them. */
bool sm_group_map_read(const struct probe_context *context, size_t sms, uint16_t *out_groups);

#endif
