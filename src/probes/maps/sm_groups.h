/* Groups of SMs: dividing them by the odds of every pair, and the groups that sm.groups found. */
#ifndef GPUMEMTOPO_PROBES_MAPS_SM_GROUPS_H
#define GPUMEMTOPO_PROBES_MAPS_SM_GROUPS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "probes/probe.h"

struct partition {
    size_t sms;
    double *odds; /* [sm][sm], logarithms; symmetric */

    /* After the division: */
    uint32_t *group; /* of each SM; numbered by their first SM */
    uint32_t group_count;
    double confidence;   /* that every SM is in the right group */
    double contradicted; /* share of the pairs whose own odds contradict it */
};

/* Starts without evidence. Released by partition_fini, also after an error. */
void partition_init(struct partition *p, size_t sms);

void partition_fini(struct partition *p);

/* Adds evidence about one pair. */
void partition_add(struct partition *p, size_t a, size_t b, double odds);

void partition_divide(struct partition *p);

/* Number of SMs in a group. */
uint32_t partition_size(const struct partition *p, uint32_t group);

/* The number of each SM's group, from 0 on. False: they are not known for all of them. */
bool sm_group_map_read(const struct probe_context *context, size_t sms, uint16_t *out_groups);

#endif
