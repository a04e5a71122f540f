/* Arrays of the lines of a cache, and how often they are passed, to find its sets. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "probes/method/cache_sets.h"

enum {
    WARM_PASSES = 3,
    PASSES = 16, /* of a size, if hits hardly ever look like misses */
    PASSES_LONG = 128,
};

/* Timed loads of one size, at most: bounds the time on a simulated GPU. */
static const double LOADS_MOST = 5e5;

uint32_t cache_sets_warm(const struct cache_sets *sets)
{
    return sets->early ? CACHE_SETS_WARM_EARLY : WARM_PASSES;
}

void cache_sets_fini(struct cache_sets *sets)
{
    free(sets->group);
    sets->group = NULL;
}

uint64_t cache_sets_bytes(const struct cache_sets *sets, uint64_t line_bytes)
{
    return (sets->sets * sets->ways + sets->larger) * line_bytes;
}

void cache_sets_doubt(struct cache_sets *sets, const char *text)
{
    if (!sets->doubt[0])
        snprintf(sets->doubt, sizeof sets->doubt, "%s", text);
}

struct miss_counts cache_sets_counts(const struct study *study, const struct cache_sets *sets,
                                     uint64_t lines, uint32_t passes)
{
    return (struct miss_counts){
        .array = {.path = study->path,
                  .size_bytes = lines * study->line_bytes,
                  .stride_bytes = study->line_bytes},
        .warm_passes = cache_sets_warm(sets),
        .passes = passes,
        .stray = sets->stray,
    };
}

uint32_t cache_sets_passes(const struct cache_sets *sets, uint64_t lines)
{
    uint32_t passes = sets->stray < 1e-3 ? PASSES : sets->stray < 5e-3 ? PASSES * 4 : PASSES_LONG;
    double most = LOADS_MOST / (double)lines;
    return most < passes ? (uint32_t)fmax(most, 4) : passes;
}
