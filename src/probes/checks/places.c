/* What the sub-cores of a GPU gave in a check or in a screen, taken together. */
#include "probes/checks/places.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/sort.h"

struct places places_sum(const struct device_check_place *places, size_t count)
{
    struct places sum = {0};
    for (size_t i = 0; i < count; i++) {
        sum.with_hashes += places[i].count > 0;
        sum.count += places[i].count;
        sum.wrong += places[i].wrong;
        sum.worst = places[i].wrong > places[sum.worst].wrong ? i : sum.worst;
    }
    return sum;
}

bool places_slowest(const struct device_check_place *places, size_t count,
                    struct slowest_place *slowest)
{
    uint64_t *cycles = mem_array(count ? count : 1, sizeof *cycles);
    double before = slowest->ratio;
    size_t known = 0;
    for (size_t i = 0; i < count; i++)
        if (places[i].cycles)
            cycles[known++] = places[i].cycles;
    sort_stable(cycles, known, sizeof *cycles, sort_by_u64);
    double median = known ? (double)cycles[known / 2] : 0;
    for (size_t i = 0; i < count && median > 0; i++)
        if ((double)places[i].cycles / median > slowest->ratio)
            *slowest = (struct slowest_place){(double)places[i].cycles / median, i};
    free(cycles);
    return slowest->ratio > before;
}
