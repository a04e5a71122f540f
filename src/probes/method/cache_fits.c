/* The longest array that never misses in a cache, to the line. */
#include "probes/method/cache_fits.h"

#include <math.h>

#include "probes/method/miss_counts.h"

enum {
    SIZES = 16, /* looked at together */
    WIDEN_MAX = 5,
    FILLS = 8,
    STRAY_LOADS = 200000,
};

/* An array that misses after few passes, but not after many, has lines evicted although their sets
 * had room. */
static int look_early(struct probe_context *context, const struct study *study,
                      struct cache_sets *sets, struct err *err)
{
    struct miss_counts counts = cache_sets_counts(study, sets, sets->fits + 1, 0);
    counts.passes = cache_sets_passes(sets, sets->fits + 1);
    counts.warm_passes = CACHE_SETS_WARM_EARLY;
    int rc = miss_counts_run(context, study, &counts, 1, err);
    if (rc)
        return rc;
    sets->early = !miss_counts_any(&counts);
    miss_counts_fini(&counts, 1);
    return 0;
}

/* The same if what fits misses after it was loaded once. */
static int look_filled(struct probe_context *context, const struct study *study,
                       struct cache_sets *sets, struct err *err)
{
    struct miss_counts items[FILLS];
    double missed = 0, all = 0;
    for (size_t i = 0; i < FILLS; i++) {
        items[i] = cache_sets_counts(study, sets, sets->fits, 1);
        items[i].warm_passes = 1;
        items[i].plain = true;
    }
    int rc = miss_counts_run(context, study, items, FILLS, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < FILLS; i++) {
        missed += (double)miss_counts_missing(&items[i], 1);
        all += (double)items[i].elements;
    }
    miss_counts_fini(items, FILLS);
    double strays = sets->stray * all;
    sets->early = sets->early || missed > strays + 5 * (1 + sqrt(strays));
    return 0;
}

/* Hits of an array that surely fits, as many as a search of a size has. */
static int measure_stray(struct probe_context *context, const struct study *study, uint64_t lines,
                         struct cache_sets *sets, struct err *err)
{
    uint64_t few = lines / 8 ? lines / 8 : 1;
    struct miss_counts counts =
        cache_sets_counts(study, sets, few, (uint32_t)(STRAY_LOADS / few + 1));
    double missed = 0;
    int rc = miss_counts_run(context, study, &counts, 1, err);
    if (rc)
        return rc;
    for (uint64_t i = 0; i < counts.elements; i++)
        missed += counts.misses[i];
    sets->stray = missed / ((double)counts.elements * counts.passes);
    miss_counts_fini(&counts, 1);
    return 0;
}

/* Looks at SIZES sizes from low to high: the longest that fits before the first that does not. */
static int look_between(struct probe_context *context, const struct study *study,
                        const struct cache_sets *sets, uint64_t *low, uint64_t *high,
                        bool *out_low_fits, bool *out_high_over, struct err *err)
{
    struct miss_counts items[SIZES];
    uint64_t sizes[SIZES];
    size_t count = 0;
    uint64_t steps = *high - *low < SIZES - 1 ? *high - *low : SIZES - 1;
    for (uint64_t i = 0; i <= steps; i++, count++) {
        sizes[count] = *low + (steps ? i * (*high - *low) / steps : 0);
        items[count] =
            cache_sets_counts(study, sets, sizes[count], cache_sets_passes(sets, sizes[count]));
    }
    int rc = miss_counts_run(context, study, items, count, err);
    if (rc)
        return rc;
    size_t over = 0;
    while (over < count && !miss_counts_any(&items[over]))
        over++;
    miss_counts_fini(items, count);
    *out_low_fits = over > 0;
    *out_high_over = over < count;
    if (over > 0)
        *low = sizes[over - 1];
    if (over < count)
        *high = sizes[over];
    return 0;
}

static int find_fits(struct probe_context *context, const struct study *study, uint64_t guess,
                     struct cache_sets *sets, struct err *err)
{
    uint64_t limit = study->limit_bytes / study->line_bytes;
    uint64_t low = guess > 4 ? guess - 4 : 1, high = guess + 4 < limit ? guess + 4 : limit;
    for (int widened = 0;;) {
        bool fits, over;
        int rc = look_between(context, study, sets, &low, &high, &fits, &over, err);
        if (rc)
            return rc;
        if (fits && over && high - low == 1)
            break;
        if (fits && over)
            continue;
        if (widened++ == WIDEN_MAX || (!fits && low == 1) || (!over && high == limit)) {
            cache_sets_doubt(sets, "where misses begin is not clear");
            return 0;
        }
        if (!fits) {
            high = low;
            low = low - (low > 16 ? low / 8 : 1);
        }
        if (!over) {
            low = high;
            high = high + high / 16 + 2;
            high = high < limit ? high : limit;
        }
    }
    sets->fits = low;
    return 0;
}

static uint64_t lines_in(const struct study *study, double bytes)
{
    return (uint64_t)fmax(round(bytes / (double)study->line_bytes), 1);
}

int cache_fits_find(struct probe_context *context, const struct study *study,
                    struct cache_sets *sets, struct err *err)
{
    double bytes = study->reach_bytes ? (double)study->reach_bytes : study->resident_bytes;
    int rc = measure_stray(context, study, lines_in(study, bytes), sets, err);
    if (!rc)
        rc = find_fits(context, study, lines_in(study, bytes), sets, err);
    if (rc || !sets->fits)
        return rc;
    rc = look_early(context, study, sets, err);
    if (!rc && sets->early)
        rc = find_fits(context, study, lines_in(study, study->resident_bytes), sets, err);
    return rc ? rc : look_filled(context, study, sets, err);
}
