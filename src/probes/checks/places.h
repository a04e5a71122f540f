/* What the sub-cores of a GPU gave in a check or in a screen, taken together. */
#ifndef GPUMEMTOPO_PROBES_CHECKS_PLACES_H
#define GPUMEMTOPO_PROBES_CHECKS_PLACES_H

#include "device/device.h"

/* Of one unit or path. */
struct places {
    uint64_t count, wrong; /* hashes */
    uint32_t with_hashes;  /* sub-cores that gave any */
    size_t worst;          /* the sub-core with the most wrong hashes */
};
struct places places_sum(const struct device_check_place *places, size_t count);

/* Of all units or paths so far. */
struct slowest_place {
    double ratio; /* its time over that of the median sub-core; 0: not known */
    size_t place;
};

/* Every sub-core does the same work: one that takes longer is slower. True if this unit or path has
 * the slowest so far. */
bool places_slowest(const struct device_check_place *places, size_t count,
                    struct slowest_place *slowest);

#endif
