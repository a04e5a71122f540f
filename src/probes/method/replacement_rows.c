/* The lines of one set, or of every set. */
#include "probes/method/replacement_kinds.h"

bool replacement_one_set(const struct study *study, const struct cache_sets *sets)
{
    return sets->index != CACHE_SETS_HASHED && study->id != STUDY_CONSTANT_L15;
}

struct device_array replacement_rows(const struct study *study, const struct cache_sets *sets,
                                     uint64_t from, uint64_t to)
{
    uint64_t line = study->line_bytes;
    uint64_t step = replacement_one_set(study, sets) ? sets->period : sets->fits / sets->ways;
    uint64_t first = replacement_one_set(study, sets) ? sets->group[0] : 0;
    return (struct device_array){.path = study->path,
                                 .offset_bytes = (first + from * step) * line,
                                 .size_bytes = (to - from) * step * line,
                                 .stride_bytes =
                                     replacement_one_set(study, sets) ? step * line : line};
}
