/* The probe of what constant L1.5 shares with instructions. Constant memory ends before such a
 * cache is full, so code fills the rest: jumping code of rising length runs before each pass
 * through the constants. If both are in one cache, constants begin to miss where both together
 * exceed it, however they divide it; and strides of constants beyond the line leave room for more
 * code. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cpd/cpd.h"
#include "device/straight.h"
#include "probes/caches/cache_report.h"
#include "probes/caches/code_levels.h"
#include "probes/caches/study.h"
#include "probes/method/repeats.h"
#include "probes/probe.h"

enum { REPEATS = 4, ROUNDS = 3, REASON_MAX = 160, STRIDE = 5, LEVELS_MAX = 6 };
enum { STEP_BLOCKS = 16, POINTS = DEVICE_WALK_BLOCKS_MAX / STEP_BLOCKS };

/* The loop around the code occupies the cache too. */
static const double LOOP_BYTES = 384;

/* The most code replaces all constants that it can: more than this share of what misses cost, or
 * less than the other. */
static const double REPLACED = 0.5, KEPT = 0.1;

/* Of the constants that the most code replaces: between these shares their number rises with the
 * code. On an H200 a twentieth is replaced one way earlier, by what else is in some sets. */
static const double RISE_LOW = 0.12, RISE_HIGH = 0.5;

/* Sums of code and constants agree within this share; so does the cache of instructions. */
static const double SAME_SHARE = 0.03;

/* Sizes are rounded to this many bytes. */
static const double RESOLUTION = 2048;

/* In fetch units: what is shorter than this is one. */
static const double LINE_MAX = 1.7;

/* Constants that are touched, and what code does to them. */
struct constants {
    uint32_t bytes, stride;
    bool seen;          /* L1.5 serves them: constant L1 does not hold them */
    double replaced;    /* by the most code: share of what misses of all would cost */
    double onset_bytes; /* of code, from which on they are replaced; NAN: not found */
    double fits_bytes;  /* of code, with which RISE_LOW of them are replaced */
    double most_bytes;  /* of code */
};

static uint32_t loads_of(const struct constants *constants)
{
    return constants->bytes / constants->stride;
}

/* Cycles of a pass through the constants, behind so much code. */
static int measure_constants(struct probe_context *context, const struct constants *constants,
                             uint32_t blocks, double *out_cycles, uint32_t *out_block_bytes,
                             struct err *err)
{
    const struct device_walk walk = {.repeats = REPEATS,
                                     .blocks = blocks,
                                     .stride = STRIDE,
                                     .constant_bytes = constants->bytes,
                                     .constant_stride = constants->stride};
    struct device_walk_answer answer;
    double cycles[ROUNDS];
    for (size_t i = 0; i < ROUNDS; i++) {
        int rc = device_run_walk(context->device, &walk, &answer, err);
        if (rc)
            return rc;
        cycles[i] = (double)answer.constant_cycles / REPEATS;
    }
    *out_cycles = cpd_quantile(cycles, ROUNDS, 0.5);
    *out_block_bytes = answer.block_bytes;
    return 0;
}

static int find_onset(struct probe_context *context, struct constants *constants, struct err *err)
{
    const struct study *l15 = &context->studies[STUDY_CONSTANT_L15],
                       *l1 = &context->studies[STUDY_CONSTANT_L1];
    uint32_t bytes, loads = loads_of(constants);
    double at[POINTS], shares[POINTS];
    constants->onset_bytes = constants->fits_bytes = NAN;
    for (uint32_t i = 0; i < POINTS; i++) {
        uint32_t blocks = (i + 1) * STEP_BLOCKS;
        int rc = measure_constants(context, constants, blocks, &shares[i], &bytes, err);
        if (rc)
            return rc;
        at[i] = (double)blocks * bytes;
    }
    double alone = shares[0], all = shares[POINTS - 1] - alone;
    constants->seen = alone / loads > (l1->hit_cycles + l15->hit_cycles) / 2;
    constants->replaced = all / loads / (l15->miss_cycles - l15->hit_cycles);
    constants->most_bytes = at[POINTS - 1];
    if (!constants->seen || constants->replaced < REPLACED)
        return 0;
    for (size_t i = 0; i < POINTS; i++)
        shares[i] = (shares[i] - alone) / all;
    const struct code_rise rise = {at, shares, POINTS, RISE_LOW, RISE_HIGH};
    size_t first = code_rise_first(&rise);
    double ignored;
    constants->onset_bytes = code_rise_begin(&rise, &ignored) + LOOP_BYTES;
    constants->fits_bytes = first ? at[first - 1] : 0;
    return 0;
}

/* The level of the caches of instructions that is so large, and how large straight code found it;
 * 0: none. */
static uint32_t level_of(const struct probe_context *context, double size, double *out_size)
{
    for (uint32_t i = 1; i <= LEVELS_MAX; i++) {
        char metric[CACHE_METRIC_MAX];
        double found;
        snprintf(metric, sizeof metric, "instruction_cache.level%u.size", i);
        if (measures_value(context->measures, metric, &found) &&
            fabs(found - size) <= SAME_SHARE * size) {
            *out_size = found;
            return i;
        }
    }
    return 0;
}

/* Whether so much overfills every cache of instructions that is known, and there is one. */
static bool code_fills(const struct probe_context *context, double bytes)
{
    char metric[CACHE_METRIC_MAX];
    double size, levels;
    uint32_t i = 0;
    if (!measures_value(context->measures, "instruction_cache.levels", &levels))
        return false;
    while (i < LEVELS_MAX) {
        snprintf(metric, sizeof metric, "instruction_cache.level%u.size", i + 1);
        if (!measures_value(context->measures, metric, &size))
            break;
        if (size * (1 + KEPT) > bytes)
            return false;
        i++;
    }
    return i > 0;
}

static const char SHARED_WITH[] = "constant_l15.shared_with";
static const char METHOD[] = "jumping code and constants in one cache";

static void report_shared(struct probe_context *context, const char *word, const char *doubt)
{
    struct measure *m =
        measures_add_words(context->measures, SHARED_WITH, &word, word ? 1 : 0, METHOD);
    m->n = ROUNDS;
    m->confidence = doubt ? 0.5 : 0.99;
    if (doubt)
        measure_set_status(m, MEASURE_NOISY, doubt);
}

/* In place of a bound; what else is noted of the figure stays. */
static struct measure *replace_bound(struct probe_context *context, const char *metric,
                                     double value)
{
    struct facts notes = {0};
    for (size_t i = 0; i < context->measures->count; i++) {
        struct measure *m = &context->measures->items[i];
        if (strcmp(m->metric, metric) != 0)
            continue;
        notes = m->notes;
        m->notes = (struct facts){0};
    }
    struct measure *m = measures_add(context->measures, metric, value, "B", METHOD);
    m->notes = notes;
    m->n = ROUNDS;
    m->confidence = 0.99;
    return m;
}

/* Constants some fetch units apart are in different lines, unless lines are as long as that. They
 * leave no more room for code than the cache has beside their lines, so a line is at most
 * (size - code) / loads: often more than it is, since sets fill up unevenly. A line of less than
 * two fetch units is one. If the number of sets and one of the strides have a common factor,
 * another stride shows it. */
static int find_line(struct probe_context *context, double size, struct err *err)
{
    static const uint32_t strides[] = {3, 5, 7};
    const struct study *study = &context->studies[STUDY_CONSTANT_L15];
    uint32_t fetch = (uint32_t)study->fetch_bytes;
    for (size_t i = 0; i < COUNT_OF(strides); i++) {
        struct constants constants = {.bytes = (uint32_t)study->limit_bytes,
                                      .stride = strides[i] * fetch};
        int rc = find_onset(context, &constants, err);
        if (rc)
            return rc;
        double most = (size - constants.fits_bytes) / loads_of(&constants);
        if (isnan(most) || most >= LINE_MAX * fetch)
            continue;
        struct measure *m = replace_bound(context, "constant_l15.line", fetch);
        facts_set_real(&m->notes, "at_most", most);
        return 0;
    }
    return 0;
}

/* Both sums of code and constants must be the same: then both share what they fill. The size is
 * that of straight code, which fills the sets evenly. */
static int report_found(struct probe_context *context, const struct constants *whole,
                        const struct constants *half, struct err *err)
{
    char word[CACHE_METRIC_MAX], doubt[REASON_MAX];
    double size = whole->bytes + whole->onset_bytes, other = half->bytes + half->onset_bytes;
    double level_size = 0;
    uint32_t level = level_of(context, size, &level_size);
    if (isnan(other) || fabs(other - size) > SAME_SHARE * size) {
        snprintf(doubt, sizeof doubt,
                 "%u B of constants miss behind %.0f B of code, %u B behind %.0f B", whole->bytes,
                 whole->onset_bytes, half->bytes, half->onset_bytes);
        report_shared(context, NULL, doubt);
        return 0;
    }
    if (!level) {
        snprintf(doubt, sizeof doubt, "no level of the caches of instructions has %.0f B", size);
        report_shared(context, NULL, doubt);
        return 0;
    }
    snprintf(word, sizeof word, "instruction_cache.level%u", level);
    report_shared(context, word, NULL);
    if (!context->studies[STUDY_CONSTANT_L15].unbounded)
        return 0;
    struct measure *m =
        replace_bound(context, "constant_l15.size", round(level_size / RESOLUTION) * RESOLUTION);
    m->spread = fmax(fabs(other - size), fabs(level_size - size)) / 2;
    facts_set_int(&m->notes, "resolution", (int64_t)RESOLUTION);
    return find_line(context, size, err);
}

static int code_and_constants_run(struct probe_context *context, struct err *err)
{
    const struct study *study = &context->studies[STUDY_CONSTANT_L15];
    struct err own = {0};
    int rc = study_reach(context, STUDY_CONSTANT_L15, STUDY_RESIDENT, err);
    if (rc)
        return rc;
    if (!study->supported) {
        repeats_unsupported(context, SHARED_WITH, "this GPU has no such cache");
        return 0;
    }
    uint64_t all = study->unbounded ? study->limit_bytes : study->region_low_bytes * 3 / 4;
    uint32_t fetch = (uint32_t)study->fetch_bytes;
    struct constants whole = {.bytes = (uint32_t)(all - all % fetch), .stride = fetch},
                     half = {.bytes = (uint32_t)(all / 2 - all / 2 % fetch), .stride = fetch};
    rc = find_onset(context, &whole, &own);
    if (!rc && whole.seen)
        rc = find_onset(context, &half, &own);
    if (rc == -ENOSYS) {
        repeats_unsupported(context, SHARED_WITH, own.text);
        return 0;
    }
    if (rc)
        return repeats_end(context, SHARED_WITH, rc, &own, err);
    if (!whole.seen || !half.seen) {
        measures_add_missing(context->measures, SHARED_WITH, MEASURE_FAILED,
                             "constant L1 holds what is touched");
        return 0;
    }
    if (whole.replaced < REPLACED) {
        bool kept = whole.replaced < KEPT && code_fills(context, whole.bytes + whole.most_bytes);
        report_shared(context, NULL, kept ? NULL : "code replaces only some of the constants");
        return 0;
    }
    return report_found(context, &whole, &half, err);
}

const struct probe probe_code_and_constants = {
    .description = {SHARED_WITH, "whether constant L1.5 holds instructions too, and its size then",
                    PROFILE_FULL},
    .depends = {"constant_l15.line", "constant_l15.size", "instruction_cache"},
    .metrics = {SHARED_WITH},
    .run = code_and_constants_run,
};
