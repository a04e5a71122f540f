/* The lines that share the set which overflows first: those that miss in an array of one line too
 * many. */
#include "probes/method/set_group.h"

#include <math.h>

#include "base/mem.h"
#include "probes/method/miss_counts.h"

enum {
    ROUNDS = 6, /* each with four times as many passes */
    ROUNDS_BRIEF = 2,
    LESS_MAX = 4,
    PASSES_LEAST = 16,
};

/* Timed loads, at most, where the device executes each by itself, and where it does not. */
static const double LOADS_MOST = 8e6, LOADS_MOST_REAL = 2e7;

/* So many standard deviations lie between the misses of a line of the group and the limit. */
static const double CLEAR = 4;

/* True when the lines of the group stand out: none of them may have been overlooked. */
static bool group_is_clear(const struct miss_counts *counts, uint32_t limit, uint64_t members)
{
    double sum = 0, passes = counts->passes;
    for (uint64_t i = 0; i < counts->elements; i++)
        sum += counts->misses[i] >= limit ? counts->misses[i] : 0;
    double mean = members ? sum / (double)members : 0;
    return members >= 2 && mean - CLEAR * sqrt(mean * (1 - mean / passes)) > limit;
}

static int keep_group(const struct miss_counts *counts, uint32_t limit, uint64_t members,
                      struct cache_sets *sets, struct err *err)
{
    uint64_t at = 0;
    sets->group = mem_array(members, sizeof *sets->group);
    if (!sets->group)
        return err_no_memory(err);
    for (uint64_t i = 0; i < counts->elements; i++)
        if (counts->misses[i] >= limit)
            sets->group[at++] = i;
    sets->ways = members - 1;
    sets->loads = (uint32_t)(counts->elements * counts->passes);
    return 0;
}

/* How often the lines of the group miss if nothing but the array was ever loaded, from its first
 * line on: under LRU and FIFO always. */
static int measure_share(struct probe_context *context, const struct study *study,
                         struct cache_sets *sets, struct err *err)
{
    struct miss_counts counts =
        cache_sets_counts(study, sets, sets->fits + 1, cache_sets_passes(sets, sets->fits + 1));
    double sum = 0;
    counts.plain = true;
    int rc = miss_counts_run(context, study, &counts, 1, err);
    if (rc)
        return rc;
    for (uint64_t i = 0; i <= sets->ways; i++)
        sum += counts.misses[sets->group[i]];
    double share = sum / ((double)(sets->ways + 1) * counts.passes);
    sets->miss_share = (share - sets->stray) / (1 - sets->stray - study->slip_share);
    miss_counts_fini(&counts, 1);
    return 0;
}

/* The lines that miss in an array of one line too many. */
static int find_group(struct probe_context *context, const struct study *study, bool brief,
                      struct cache_sets *sets, struct err *err)
{
    uint64_t lines = sets->fits + 1;
    int rounds = brief ? ROUNDS_BRIEF : ROUNDS;
    double most = (study->loads_are_dear ? LOADS_MOST : LOADS_MOST_REAL) / (double)lines;
    double passes = 4.0 * cache_sets_passes(sets, lines);
    for (int round = 0; round < rounds; round++, passes *= 4) {
        bool last = passes >= most || round + 1 == rounds;
        struct miss_counts counts =
            cache_sets_counts(study, sets, lines, (uint32_t)fmax(fmin(passes, most), PASSES_LEAST));
        int rc = miss_counts_run(context, study, &counts, 1, err);
        if (rc)
            return rc;
        uint32_t limit = miss_counts_limit(&counts);
        uint64_t members = miss_counts_missing(&counts, limit);
        bool clear = group_is_clear(&counts, limit, members);
        if (clear)
            rc = keep_group(&counts, limit, members, sets, err);
        miss_counts_fini(&counts, 1);
        if (rc || clear)
            return rc;
        if (last)
            break;
    }
    cache_sets_doubt(sets, "which lines share a set is not clear");
    return 0;
}

/* Looks once more, with as many passes as the group needed, whether what should fit does: under a
 * random policy few passes may overlook the first misses, and the group has the lines of two sets.
 */
static int find_smallest_group(struct probe_context *context, const struct study *study, bool brief,
                               struct cache_sets *sets, struct err *err)
{
    for (int less = 0; less < LESS_MAX; less++) {
        int rc = find_group(context, study, brief, sets, err);
        if (rc || !sets->group)
            return rc;
        uint32_t passes = (uint32_t)(sets->loads / (sets->fits + 1));
        struct miss_counts counts = cache_sets_counts(study, sets, sets->fits, passes);
        rc = miss_counts_run(context, study, &counts, 1, err);
        if (rc)
            return rc;
        bool fits = !miss_counts_any(&counts);
        miss_counts_fini(&counts, 1);
        if (fits || sets->fits == 1)
            return 0;
        sets->fits--;
        cache_sets_fini(sets);
    }
    cache_sets_doubt(sets, "where misses begin is not clear");
    return 0;
}

int set_group_find(struct probe_context *context, const struct study *study, bool brief,
                   struct cache_sets *sets, struct err *err)
{
    int rc = find_smallest_group(context, study, brief, sets, err);
    return rc || !sets->group ? rc : measure_share(context, study, sets, err);
}
