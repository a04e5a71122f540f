/* How a cache is divided into sets.
 *
 * First stage: the longest array that never misses, and one line more. That line overflows one set,
 * and only the lines of this set miss: its ways and one. Under LRU they miss in every pass, under a
 * random policy now and then. Second stage: further lines overflow further sets, one after the
 * other, until everything misses. What the first stage says is compared with the second, and with
 * strides at which all elements must fall into one set. */
#include "probes/caches/cache_sets.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "probes/caches/miss_counts.h"

/* Which lines share a set, as a rule. */

static bool same_set(const struct set_pattern *pattern, uint64_t a, uint64_t b)
{
    return a / pattern->run % pattern->sets == b / pattern->run % pattern->sets;
}

static bool explains(const struct set_pattern *pattern, const uint64_t *group, uint64_t count,
                     uint64_t lines)
{
    uint64_t at = 0;
    for (uint64_t i = 0; i < lines; i++) {
        bool member = at < count && group[at] == i;
        if (member != same_set(pattern, i, lines - 1))
            return false;
        at += member;
    }
    return at == count;
}

bool set_pattern_find(const uint64_t *group, uint64_t count, uint64_t lines,
                      struct set_pattern *out_pattern)
{
    uint64_t run = 1;
    while (run < count && group[run] == group[0] + run)
        run++;
    struct set_pattern pattern = {.run = 1, .sets = 1};
    if (run < count) {
        uint64_t period = group[run] - group[0];
        if (period % run)
            return false;
        pattern = (struct set_pattern){.run = run, .sets = period / run};
    }
    if (!explains(&pattern, group, count, lines))
        return false;
    *out_pattern = pattern;
    return true;
}

uint64_t set_pattern_run(const uint64_t *group, uint64_t count)
{
    uint64_t run = 1, whole = 0;
    while (run < count && group[run] == group[0] + run)
        run++;
    for (uint64_t i = 0; i + run < count; i += run, whole++) {
        if (group[i] % run || group[i + run - 1] != group[i] + run - 1)
            return 1;
    }
    return whole ? run : 1;
}

/* Lines of set s among the first `lines`. */
static uint64_t set_pattern_lines_in(const struct set_pattern *pattern, uint64_t s, uint64_t lines)
{
    uint64_t period = pattern->run * pattern->sets, rest = lines % period;
    uint64_t begin = s * pattern->run;
    uint64_t more = rest <= begin ? 0 : rest - begin;
    return lines / period * pattern->run + (more < pattern->run ? more : pattern->run);
}

uint64_t set_pattern_missing(const struct set_pattern *pattern, uint64_t ways, uint64_t larger,
                             uint64_t lines)
{
    uint64_t missing = 0;
    for (uint64_t s = 0; s < pattern->sets; s++) {
        uint64_t own = set_pattern_lines_in(pattern, s, lines);
        missing += own > ways + (s < larger) ? own : 0;
    }
    return missing;
}

/* Arrays of the lines of a cache, and how often they are passed, to find its sets. */

enum {
    WARM_PASSES = 3,
    PASSES = 16, /* of a size, if hits hardly ever look like misses */
    PASSES_LONG = 128,
};

/* Timed loads of one size, at most: bounds the time on a simulated GPU. */
static const double ARRAY_LOADS_MOST = 5e5;

static uint32_t cache_sets_warm(const struct cache_sets *sets)
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

/* Keeps the first doubt. */
static void cache_sets_doubt(struct cache_sets *sets, const char *text)
{
    if (!sets->doubt[0])
        snprintf(sets->doubt, sizeof sets->doubt, "%s", text);
}

/* The first `lines` lines, to be passed so often. */
static struct miss_counts cache_sets_counts(const struct study *study,
                                            const struct cache_sets *sets, uint64_t lines,
                                            uint32_t passes)
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

/* How often to pass so many lines: more often if strays are frequent, so that misses of a random
 * policy are still seen. */
static uint32_t cache_sets_passes(const struct cache_sets *sets, uint64_t lines)
{
    uint32_t passes = sets->stray < 1e-3 ? PASSES : sets->stray < 5e-3 ? PASSES * 4 : PASSES_LONG;
    double most = ARRAY_LOADS_MOST / (double)lines;
    return most < passes ? (uint32_t)fmax(most, 4) : passes;
}

/* The longest array that never misses in a cache, to the line. */

enum {
    SIZES = 16, /* looked at together */
    WIDEN_MAX = 5,
    FILLS = 8,
    STRAY_LOADS = 200000,
};

/* Whether an array of one line more than what fits misses after so many passes. */
static int misses_after(struct probe_context *context, const struct study *study,
                        const struct cache_sets *sets, uint32_t warm_passes, bool *out_misses,
                        struct err *err)
{
    struct miss_counts counts = cache_sets_counts(study, sets, sets->fits + 1, 0);
    counts.passes = cache_sets_passes(sets, sets->fits + 1);
    counts.warm_passes = warm_passes;
    int rc = miss_counts_run(context, study, &counts, 1, err);
    if (rc)
        return rc;
    *out_misses = miss_counts_any(&counts);
    miss_counts_fini(&counts, 1);
    return 0;
}

/* An array that misses after few passes, but not after many, has lines evicted although their sets
 * had room. If it no longer misses after few passes, it was chance: more fits. */
static int look_early(struct probe_context *context, const struct study *study,
                      struct cache_sets *sets, bool *out_chance, struct err *err)
{
    bool late = false, again = true;
    int rc = misses_after(context, study, sets, CACHE_SETS_WARM_EARLY, &late, err);
    if (!rc && !late)
        rc = misses_after(context, study, sets, WARM_PASSES, &again, err);
    if (rc)
        return rc;
    sets->early = !late && again;
    *out_chance = !late && !again;
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
static int fits_look_between(struct probe_context *context, const struct study *study,
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
        int rc = fits_look_between(context, study, sets, &low, &high, &fits, &over, err);
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

static uint64_t fits_lines_in(const struct study *study, double bytes)
{
    return (uint64_t)fmax(round(bytes / (double)study->line_bytes), 1);
}

/* Sets stray, fits (0 and a doubt if it is not clear) and early. */
static int cache_fits_find(struct probe_context *context, const struct study *study,
                           struct cache_sets *sets, struct err *err)
{
    double bytes = study->reach_bytes ? (double)study->reach_bytes : study->resident_bytes;
    int rc = measure_stray(context, study, fits_lines_in(study, bytes), sets, err);
    if (!rc)
        rc = find_fits(context, study, fits_lines_in(study, bytes), sets, err);
    if (rc || !sets->fits)
        return rc;
    bool chance = false;
    rc = look_early(context, study, sets, &chance, err);
    if (!rc && (sets->early || chance))
        rc = find_fits(context, study, fits_lines_in(study, study->resident_bytes), sets, err);
    return rc ? rc : look_filled(context, study, sets, err);
}

/* The lines that share the set which overflows first: those that miss in an array of one line too
 * many. */

enum {
    ROUNDS = 6, /* each with four times as many passes */
    ROUNDS_BRIEF = 2,
    LESS_MAX = 4,
    PASSES_LEAST = 16,
};

/* Timed loads, at most, where the device executes each by itself, and where it does not. */
static const double GROUP_LOADS_MOST = 8e6, LOADS_MOST_REAL = 2e7;

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

static void keep_group(const struct miss_counts *counts, uint32_t limit, uint64_t members,
                       struct cache_sets *sets)
{
    uint64_t at = 0;
    sets->group = mem_array(members, sizeof *sets->group);
    for (uint64_t i = 0; i < counts->elements; i++)
        if (counts->misses[i] >= limit)
            sets->group[at++] = i;
    sets->ways = members - 1;
    sets->loads = (uint32_t)(counts->elements * counts->passes);
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
    double most = (study->loads_are_expensive ? GROUP_LOADS_MOST : LOADS_MOST_REAL) / (double)lines;
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
            keep_group(&counts, limit, members, sets);
        miss_counts_fini(&counts, 1);
        if (clear)
            return 0;
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

/* Sets group, ways, loads and miss_share, and lowers fits if it was too high; if it is not clear
 * which lines they are, only a doubt. brief: gives up soon, since another method knows better
 * unless the group is plain to see. */
static int set_group_find(struct probe_context *context, const struct study *study, bool brief,
                          struct cache_sets *sets, struct err *err)
{
    int rc = find_smallest_group(context, study, brief, sets, err);
    return rc || !sets->group ? rc : measure_share(context, study, sets, err);
}

enum {
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
static int cache_sets_judge_group(struct probe_context *context, const struct study *study,
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
        rc = cache_sets_judge_group(context, study, &sets, err);
    }
    if (rc) {
        cache_sets_fini(&sets);
        return rc;
    }
    *out_sets = sets;
    return 0;
}
