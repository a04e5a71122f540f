/* How a cache is divided into sets.
 *
 * First stage: the longest array that never misses, and one line more. That line overflows one set,
 * and only the lines of this set miss: its ways and one. Under LRU they miss in every pass, under a
 * random policy now and then. Second stage: further lines overflow further sets, one after the
 * other, until everything misses. What the first stage says is held against the second, and against
 * strides at which all elements must fall into one set. */
#include "probes/method/cache_sets.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "probes/method/cache_fits.h"
#include "probes/method/set_group.h"
#include "probes/method/set_pattern.h"

enum {
    PASSES_LONG = 128,
    CHECKS_MAX = 8,
};

static const uint64_t STRIDES[] = {1, 3, 5};

/* Elements whole periods apart, from the group's first line on: as many as a set has ways must fit,
 * one more must not. Constant L1.5 is seen only through L1, which may hold so few itself. */
static int check_strides(struct probe_context *context, const struct study *study,
                         const struct cache_sets *sets, bool *out_agree, struct err *err)
{
    struct miss_counts items[2 * COUNT_OF(STRIDES)];
    size_t count = 0;
    *out_agree = true;
    if (study->id == STUDY_CONSTANT_L15)
        return 0;
    for (size_t i = 0; i < COUNT_OF(STRIDES); i++) {
        const struct device_array array = {
            .path = study->path,
            .offset_bytes = sets->group[0] * study->line_bytes,
            .stride_bytes = STRIDES[i] * sets->period * study->line_bytes,
        };
        if (array.offset_bytes + (sets->ways + 1) * array.stride_bytes > study->limit_bytes)
            break;
        for (uint64_t more = 0; more < 2; more++, count++) {
            items[count] = cache_sets_counts(study, sets, sets->ways + more, 4 * PASSES_LONG);
            items[count].array = array;
            items[count].array.size_bytes = (sets->ways + more) * array.stride_bytes;
            items[count].passes = cache_sets_passes(sets, sets->ways + more) * 2;
        }
    }
    if (!count)
        return 0;
    int rc = miss_counts_run(context, study, items, count, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < count; i++)
        *out_agree = *out_agree && miss_counts_any(&items[i]) == (i % 2 == 1);
    miss_counts_fini(items, count);
    return 0;
}

/* Second stage: how many lines miss in arrays of these lines; 0 for those past the limit. */
static int count_missing(struct probe_context *context, const struct study *study,
                         const struct cache_sets *sets, const uint64_t *lines, size_t count,
                         uint64_t *out_missing, struct err *err)
{
    struct miss_counts items[CHECKS_MAX];
    size_t used = 0;
    uint32_t passes = (uint32_t)(sets->loads / (sets->fits + 1));
    for (size_t i = 0; i < count; i++) {
        out_missing[i] = 0;
        if (lines[i] * study->line_bytes <= study->limit_bytes)
            items[used++] = cache_sets_counts(study, sets, lines[i], passes);
    }
    int rc = used ? miss_counts_run(context, study, items, used, err) : 0;
    if (rc)
        return rc;
    for (size_t i = 0; i < used; i++)
        out_missing[i] = miss_counts_missing(&items[i], miss_counts_limit(&items[i]));
    miss_counts_fini(items, used);
    return 0;
}

static int check_regular(struct probe_context *context, const struct study *study,
                         const struct set_pattern *pattern, struct cache_sets *sets,
                         struct err *err)
{
    uint64_t rest = sets->sets - sets->larger;
    const uint64_t lines[] = {sets->fits + 2,
                              sets->fits + 3,
                              sets->fits + rest,
                              sets->fits + rest + 1,
                              sets->fits + sets->sets * sets->run - 1,
                              sets->fits + sets->sets * sets->run};
    uint64_t missing[COUNT_OF(lines)];
    int rc = count_missing(context, study, sets, lines, COUNT_OF(lines), missing, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        if (lines[i] * study->line_bytes > study->limit_bytes)
            continue;
        uint64_t wanted = set_pattern_missing(pattern, sets->ways, sets->larger, lines[i]);
        if (fabs((double)missing[i] - (double)wanted) > 0.01 * (double)wanted)
            cache_sets_doubt(sets, "further sets overflow in another order than equal sets would");
    }
    return 0;
}

/* True when everything in a hashed cache of runs of this length misses as soon as each of `equal`
 * sets got one line too many, and not before; and the lines before overflow one set each. */
static int check_runs(struct probe_context *context, const struct study *study,
                      const struct cache_sets *sets, uint64_t run, bool *out_equal,
                      bool *out_steady, struct err *err)
{
    uint64_t equal = sets->fits / sets->ways, each = sets->ways + run;
    uint64_t before = sets->fits + (equal - 1) * run;
    const uint64_t lines[] = {sets->fits + 2 * run, sets->fits + 3 * run, sets->fits + 4 * run,
                              before, before + 1};
    uint64_t missing[COUNT_OF(lines)];
    int rc = count_missing(context, study, sets, lines, COUNT_OF(lines), missing, err);
    if (rc)
        return rc;
    *out_steady = true;
    for (size_t i = 0; i < 3 && i + 2 <= equal; i++)
        if (missing[i] % each || missing[i] > (i + 2) * each || missing[i] < each)
            *out_steady = false;
    *out_equal = sets->fits % sets->ways == 0 && missing[4] == lines[4] &&
                 missing[3] == lines[3] - sets->ways;
    return 0;
}

static int check_hashed(struct probe_context *context, const struct study *study,
                        struct cache_sets *sets, struct err *err)
{
    bool equal, steady;
    sets->run = set_pattern_run(sets->group, sets->ways + 1);
    int rc = check_runs(context, study, sets, sets->run, &equal, &steady, err);
    if (!rc && sets->run > 1 && !(equal && steady)) { /* two lines may be neighbours by chance */
        sets->run = 1;
        rc = check_runs(context, study, sets, 1, &equal, &steady, err);
    }
    if (rc)
        return rc;
    if (!steady)
        cache_sets_doubt(sets, "further sets have another number of ways");
    if (equal)
        sets->sets = sets->fits / sets->ways;
    else
        cache_sets_doubt(sets, "hashed, and the sets do not seem to be equal");
    return 0;
}

/* What the group says of the other sets. */
static int judge_group(struct probe_context *context, const struct study *study,
                       struct cache_sets *sets, struct err *err)
{
    struct set_pattern pattern;
    bool regular = set_pattern_find(sets->group, sets->ways + 1, sets->fits + 1, &pattern);
    if (regular) {
        sets->period = pattern.sets * pattern.run;
        int rc = check_strides(context, study, sets, &regular, err);
        if (rc)
            return rc;
    }
    if (!regular) {
        sets->index = CACHE_SETS_HASHED;
        return check_hashed(context, study, sets, err);
    }
    sets->index = pattern.sets == 1 ? CACHE_SETS_ONE : CACHE_SETS_REGULAR;
    sets->sets = pattern.sets;
    sets->run = pattern.run;
    if (pattern.run == 1 && sets->fits >= sets->sets * sets->ways)
        sets->larger = sets->fits - sets->sets * sets->ways;
    if (sets->larger >= sets->sets) {
        cache_sets_doubt(sets, "the sets do not add up to what fits");
        return 0;
    }
    return check_regular(context, study, &pattern, sets, err);
}

int cache_sets_measure(struct probe_context *context, const struct study *study, bool brief,
                       struct cache_sets *out_sets, struct err *err)
{
    struct cache_sets sets = {0};
    int rc = cache_fits_find(context, study, &sets, err);
    if (!rc && sets.fits)
        rc = set_group_find(context, study, brief, &sets, err);
    if (!rc && sets.group) {
        sets.told = true;
        rc = judge_group(context, study, &sets, err);
    }
    if (rc) {
        cache_sets_fini(&sets);
        return rc;
    }
    *out_sets = sets;
    return 0;
}
