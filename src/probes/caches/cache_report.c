/* The probes of the caches of an SM: L1 data (global loads with .ca), texture (linear fetches),
 * read-only (global loads with .nc), constant L1 and, behind it, L1.5. Each reports fetch unit,
 * line, size, reach and latency. */
#include "probes/caches/cache_report.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "base/portable_math.h"
#include "cpd/cpd.h"
#include "probes/caches/line.h"
#include "probes/caches/study.h"
#include "probes/caches/sweep.h"
#include "probes/method/latency.h"
#include "probes/method/repeats.h"
#include "probes/probe.h"

enum {
    CACHE_REASON_MAX = 160,
    LEAST_BYTES = 256, /* whether more than this fits is measured before it is timed */
};

/* The lines that were seen, less those that only the cache before may hold, are more than this many
 * times those of a cache with longer lines; otherwise they cannot be told apart. */
static const double HIDDEN = 1.1;

/* A cache that replaces at random loses a line after as many loads as it has lines, on average; of
 * ways that are chosen as seldom as most of Fermi's, after this many times as many. */
static const double KEPT_LOADS = 1.5;

const char *cache_metric(char buffer[CACHE_METRIC_MAX], const char *memory, const char *attribute)
{
    snprintf(buffer, CACHE_METRIC_MAX, "%s.%s", memory, attribute);
    return buffer;
}

void cache_report_missing(struct probe_context *context, const char *memory, const char *attribute,
                          enum measure_status status, const char *reason)
{
    char name[CACHE_METRIC_MAX];
    cache_metric(name, memory, attribute);
    measures_add_missing(context->measures, name, status, reason);
}

void cache_report_unsupported(struct probe_context *context, const char *memory,
                              const char *const *attributes, const struct study *study)
{
    char reason[CACHE_REASON_MAX];
    if (study->hit_cycles > 0)
        snprintf(reason, sizeof reason,
                 "no cache seen before the next level: a repeated load takes %.0f cycles",
                 study->hit_cycles);
    else
        snprintf(reason, sizeof reason, "this GPU has no such path");
    for (; *attributes; attributes++)
        cache_report_missing(context, memory, *attributes, MEASURE_UNSUPPORTED, reason);
}

static int cache_confirm_line(struct probe_context *context, const struct study *study,
                              struct err *err)
{
    char name[CACHE_METRIC_MAX];
    uint64_t bytes;
    uint32_t n;
    int rc = line_confirm(context, study, &bytes, &n, err);
    if (rc)
        return rc;
    repeats_confirm(context, cache_metric(name, study_name(study->id), "line"), (double)bytes, "B",
                    n);
    return 0;
}

/* Strides beyond the line show how many lines there are, and those that only the cache before
 * holds: if it replaces at random, it keeps some that this one no longer has. So constant L1.5 may
 * seem to have more, shorter lines. What this cache has lost was loaded at least as many loads ago
 * as it has lines. */
static bool cache_hidden_by_l1(const struct probe_context *context, const struct study *study)
{
    const struct study *before = &context->studies[STUDY_CONSTANT_L1];
    if (study->id != STUDY_CONSTANT_L15)
        return false;
    double before_lines = before->line_bytes
                              ? before->resident_bytes / (double)before->line_bytes
                              : (double)before->region_high_bytes / (double)before->fetch_bytes;
    /* The next power of two of fetch units. */
    double long_bytes = fmax(1, (double)study->fetch_bytes);
    while (long_bytes <= (double)study->line_bytes)
        long_bytes *= 2;
    double longer = study->resident_bytes / long_bytes;
    double only_before = before_lines * portable_exp(-longer / (KEPT_LOADS * before_lines));
    return study->contrast_tags - only_before < HIDDEN * longer;
}

/* Adds .fetch and .line; unsupported if the path is not cached, as in the other reports. In a
 * further round only judged metrics are measured, with as little work as confirms them. */
static int cache_report_line(struct probe_context *context, enum study_id id, struct err *err)
{
    const char *memory = study_name(id);
    static const char *const attributes[] = {"fetch", "line", NULL};
    const struct study *study = &context->studies[id];
    int rc = study_reach(context, id, STUDY_RESIDENT, err);
    if (rc)
        return rc;
    if (!study->supported) {
        cache_report_unsupported(context, memory, attributes, study);
        return 0;
    }
    if (context->repeating && study->line_bytes)
        return cache_confirm_line(context, study, err);
    char name[CACHE_METRIC_MAX];
    struct measure *fetch =
        measures_add(context->measures, cache_metric(name, memory, "fetch"),
                     (double)study->fetch_bytes, "B", "cold chase, distance between misses");
    fetch->confidence = study->fetch_contrast;
    if (!study->line_bytes && !study->unbounded) {
        cache_report_missing(context, memory, "line", MEASURE_FAILED,
                             "no stride surely skips a line");
        return 0;
    }
    if (!study->line_bytes) { /* the cache cannot be overfilled: a fetch unit is within a line */
        struct measure *least = measures_add(context->measures, cache_metric(name, memory, "line"),
                                             (double)study->fetch_bytes, "B", fetch->method);
        least->bound = MEASURE_AT_LEAST;
        least->confidence = study->fetch_contrast;
        return 0;
    }
    struct measure *line =
        measures_add(context->measures, cache_metric(name, memory, "line"),
                     (double)study->line_bytes, "B", "span of what stays resident, by stride");
    line->confidence = study->line_confidence;
    line->n = study->line_n;
    const char *doubt =
        line->confidence < LINE_SURE ? "two lines explain what stays resident nearly as well"
        : cache_hidden_by_l1(context, study) ? "constant L1 holds as many lines: it may be longer"
                                             : NULL;
    if (doubt) {
        line->confidence = fmin(line->confidence, 0.5);
        measure_set_status(line, MEASURE_NOISY, doubt);
    }
    return 0;
}

/* Eight fetch units, or what fits if that is less. Constant L1.5 is timed past L1: with an array
 * several times larger than L1, and not larger than L1.5 (thesis 4.4). */
static int latency_array(struct probe_context *context, const struct study *study,
                         struct device_array *out_array, struct err *err)
{
    *out_array = (struct device_array){.path = study->path,
                                       .size_bytes = 8 * study->fetch_bytes,
                                       .stride_bytes = study->fetch_bytes};
    bool l15 = study->id == STUDY_CONSTANT_L15;
    int rc = l15 || out_array->size_bytes > LEAST_BYTES
                 ? study_reach(context, study->id, STUDY_REGION, err)
                 : 0;
    if (rc)
        return rc;
    if (!l15) {
        if (study->stage >= STUDY_REGION && study->region_low_bytes < out_array->size_bytes)
            out_array->size_bytes = study->region_low_bytes;
        return 0;
    }
    const struct study *before = &context->studies[STUDY_CONSTANT_L1];
    uint64_t size = 8 * before->region_high_bytes;
    out_array->size_bytes = size < study->region_low_bytes ? size : study->region_low_bytes;
    out_array->stride_bytes = before->fetch_bytes;
    return 0;
}

/* The additional cost of a miss. Both latencies are from single loads of the same path, so that the
 * timer overhead cancels. */
static void cache_report_penalty(struct probe_context *context, const struct study *study)
{
    char name[CACHE_METRIC_MAX];
    struct measure *m =
        measures_add(context->measures, cache_metric(name, study_name(study->id), "miss_penalty"),
                     study->miss_cycles - study->hit_cycles, "cycles",
                     study->id == STUDY_CONSTANT_L15 ? "single loads: first in a launch, less a hit"
                                                     : "single loads");
    m->spread = study->penalty_error;
    m->n = study->level_n;
    m->confidence = repeats_confidence(m->value, m->spread);
}

/* Adds .latency and .miss_penalty. */
static int cache_report_latency(struct probe_context *context, enum study_id id, struct err *err)
{
    const char *memory = study_name(id);
    static const char *const attributes[] = {"latency", "miss_penalty", NULL};
    const struct study *study = &context->studies[id];
    int rc = study_reach(context, id, STUDY_FETCH, err);
    if (rc)
        return rc;
    if (!study->supported) {
        cache_report_unsupported(context, memory, attributes, study);
        return 0;
    }
    struct device_array array;
    rc = latency_array(context, study, &array, err);
    if (rc)
        return rc;
    char name[CACHE_METRIC_MAX];
    rc = latency_report(context, cache_metric(name, memory, "latency"), &array, study, err);
    if (rc)
        return rc;
    cache_report_penalty(context, study);
    return 0;
}

/* Size and reach of an SM's cache. */

enum {
    CACHE_SIZE_REASON_MAX = 160,
    SIZE_REPEATS = 3,
    SHARPEN_MAX = 2,
    WIDEN_MAX = 3,
    SIDE_LINES = 24, /* a sweep reaches at least this many lines beyond the region */
    FINE_LINES = 12,
    FINE_REPEATS = 5,
};

/* Sweep and residency agree if they differ by no more than AGREEMENT, or by what the error of the
 * residency explains, up to AGREEMENT_MAX. */
static const double AGREEMENT = 0.01, AGREEMENT_MAX = 0.015;

/* If they disagree by no more than APART, the residency is measured with standard error SHARP. */
static const double APART = 0.04, SHARP = 0.003;

/* Standard error of a resident share that only confirms. */
static const double SIZE_AGAIN = 0.007;

/* A sweep reaches this share beyond the region found by doubling and narrowing. */
static const double SIDE_SHARE = 0.15;

/* The sweep of the thesis: one load per line, sizes around the region, change point. It is widened
 * and repeated while the change point is rejected. */
static int sweep_coarse(struct probe_context *context, const struct study *study,
                        struct sweep_onset *out_onset, uint64_t *out_step_lines, struct err *err)
{
    uint64_t line = study->touch_bytes, middle = study->region_high_bytes / line;
    double side = SIDE_SHARE;
    for (int attempt = 0; attempt < WIDEN_MAX; attempt++, side *= 2) {
        uint64_t margin = (uint64_t)(side * (double)middle) + SIDE_LINES;
        uint64_t low = middle > margin ? middle - margin : 1;
        uint64_t step = (middle + margin - low) / (SWEEP_SIZES_MAX - 1) + 1;
        const struct sweep_range range = {.low_bytes = low * line,
                                          .high_bytes = (middle + margin) * line,
                                          .step_bytes = step * line,
                                          .stride_bytes = line};
        struct sweep_curve curve;
        int rc = sweep_measure(context, study, &range, &curve, err);
        if (rc)
            return rc;
        rc = sweep_onset(study, curve.sizes, curve.miss_shares, curve.count,
                         probe_analysis_seed(context), out_onset, err);
        if (rc)
            return rc;
        *out_step_lines = step;
        if (out_onset->change.found)
            break;
    }
    return 0;
}

/* Sweeps again around the result of the coarse sweep, each size several times: now single lines
 * count. */
static int sweep_fine(struct probe_context *context, const struct study *study, uint64_t fits_bytes,
                      uint64_t step_lines, struct sweep_onset *out_onset, struct err *err)
{
    uint64_t line = study->touch_bytes, fits = fits_bytes / line;
    /* The coarse onset may be two of its steps too late. */
    uint64_t margin = FINE_LINES + 3 * step_lines;
    uint64_t low = fits > margin ? fits - margin : 1, high = fits + margin;
    uint64_t step = (high - low) * FINE_REPEATS / (SWEEP_SIZES_MAX - FINE_REPEATS) + 1;
    const struct sweep_range range = {.low_bytes = low * line,
                                      .high_bytes = high * line,
                                      .step_bytes = step * line,
                                      .stride_bytes = line,
                                      .repeats = FINE_REPEATS};
    struct sweep_curve curve;
    int rc = sweep_measure(context, study, &range, &curve, err);
    if (rc)
        return rc;
    return sweep_onset(study, curve.sizes, curve.miss_shares, curve.count,
                       probe_analysis_seed(context), out_onset, err);
}

/* L1.5 sees only what L1 misses: of 40 simulated GPUs that were drawn at random and reported as
 * sure, one was off by 3 % (tests/probes/gpus.py). */
static const double SEEN_THROUGH_L1 = 0.9;

struct size_found {
    double by_sweep, spread; /* median and half range of the repetitions */
    double confidence;
    double by_residency, residency_error;
    bool agree;
    uint32_t at_once; /* jobs in flight, if one per SM disturbed each other; else 0 */
    bool l1;          /* the L1 data cache */
};

/* One coarse sweep, and SIZE_REPEATS fine ones around its result. If most fine sweeps see no step,
 * the coarse one was at the wrong place: everything is repeated once. */
static int sweep_repeatedly(struct probe_context *context, const struct study *study,
                            double sizes[SIZE_REPEATS], double *out_confidence, struct err *err)
{
    for (int attempt = 0; attempt < 2; attempt++) {
        struct sweep_onset coarse;
        uint64_t step = 1;
        int rc = sweep_coarse(context, study, &coarse, &step, err), seen = 0;
        if (rc)
            return rc;
        if (!coarse.change.found)
            return err_set(err, -ENODATA,
                           "no change point between %.0f and %.0f bytes (KS %.2f, critical %.2f)",
                           (double)study->region_low_bytes, (double)study->region_high_bytes,
                           coarse.change.ks.statistic, coarse.change.ks.critical);
        *out_confidence = 1;
        for (size_t i = 0; i < SIZE_REPEATS; i++) {
            struct sweep_onset fine;
            rc = sweep_fine(context, study, coarse.fits_bytes, step, &fine, err);
            if (rc)
                return rc;
            const struct sweep_onset *best = fine.change.found ? &fine : &coarse;
            sizes[i] = (double)best->fits_bytes;
            *out_confidence = fmin(*out_confidence, best->change.confidence);
            seen += fine.change.found;
        }
        if (2 * seen > SIZE_REPEATS)
            break;
    }
    return 0;
}

/* A chase cannot reach further than the cache holds, so the tolerance on that side is smaller. */
static bool cache_size_agree(const struct size_found *f)
{
    double errors = f->by_sweep > f->by_residency ? 1.5 : 2.5;
    double room =
        fmin(fmax(AGREEMENT, errors * f->residency_error / f->by_residency), AGREEMENT_MAX);
    return fabs(f->by_sweep - f->by_residency) <= room * f->by_residency;
}

/* If the two methods disagree but are not far apart, the resident share is measured until its error
 * no longer matters. */
static int sharpen_residency(struct probe_context *context, const struct study *study,
                             struct size_found *f, struct err *err)
{
    for (int i = 0; i < SHARPEN_MAX; i++) {
        double apart = fabs(f->by_sweep - f->by_residency) / f->by_residency, bytes, error;
        if (cache_size_agree(f) || apart > APART || f->residency_error < SHARP * f->by_residency)
            return 0;
        int rc = study_capacity_again(context, study, SHARP, &bytes, &error, err);
        if (rc)
            return rc;
        double old = portable_pow(f->residency_error, -2), new = portable_pow(fmax(error, 1), -2);
        f->by_residency = (old * f->by_residency + new *bytes) / (old + new);
        f->residency_error = 1 / sqrt(old + new);
    }
    return 0;
}

static int cache_size_measure(struct probe_context *context, struct study *study,
                              struct size_found *out_found, struct err *err)
{
    double sizes[SIZE_REPEATS];
    struct size_found *f = out_found;
    int rc = sweep_repeatedly(context, study, sizes, &f->confidence, err);
    if (rc)
        return rc;
    f->by_sweep = cpd_median(sizes, SIZE_REPEATS);
    f->spread = repeats_half_range(sizes, SIZE_REPEATS);
    f->by_residency = study->resident_bytes;
    f->residency_error = study->resident_error;
    if (study->id == STUDY_CONSTANT_L15)
        f->confidence = fmin(f->confidence, SEEN_THROUGH_L1);
    f->at_once = study->at_once;
    f->l1 = study->id == STUDY_L1_DATA;
    rc = sharpen_residency(context, study, f, err);
    f->agree = cache_size_agree(f);
    study->reach_bytes = (uint64_t)f->by_sweep;
    study->size_by_sweep = f->agree;
    return rc;
}

/* If both methods agree, the sweep is reported, since it resolves single lines. If not, the
 * resident share is the capacity (it does not depend on the replacement policy), the sweep is the
 * reach, and the status says so. */
static void cache_size_add(struct probe_context *context, const char *memory,
                           const struct size_found *found)
{
    char name[CACHE_METRIC_MAX], reason[CACHE_SIZE_REASON_MAX];
    double value = found->agree ? found->by_sweep : found->by_residency;
    struct measure *size = measures_add(context->measures, cache_metric(name, memory, "size"),
                                        value, "B", "chase+cpd, resident share");
    size->n = SIZE_REPEATS;
    size->spread = found->agree ? found->spread : found->residency_error;
    size->confidence = found->agree ? found->confidence : 0.5;
    snprintf(reason, sizeof reason,
             "a sequential chase misses from %.0f B on, %.0f B stay resident", found->by_sweep,
             found->by_residency);
    if (!found->agree)
        measure_set_status(size, MEASURE_NOISY, reason);
    facts_set_int(&size->notes, "by_sweep", llround(found->by_sweep));
    facts_set_int(&size->notes, "by_residency", llround(found->by_residency));
    if (found->at_once)
        facts_set_int(&size->notes, "at_once", found->at_once);
    if (found->l1) { /* the documented size beside the measured one */
        const struct device_limits *limits = device_limits(context->device);
        if (limits->l1_nominal_bytes)
            facts_set_int(&size->notes, "nominal", (int64_t)limits->l1_nominal_bytes);
        if (limits->l1_carveout_bytes)
            facts_set_int(&size->notes, "carveout", (int64_t)limits->l1_carveout_bytes);
    }
    struct measure *reach = measures_add(context->measures, cache_metric(name, memory, "reach"),
                                         found->by_sweep, "B", "chase+cpd");
    reach->n = SIZE_REPEATS;
    reach->spread = found->spread;
    reach->confidence = found->confidence;
}

static void cache_size_add_unbounded(struct probe_context *context, const char *memory,
                                     const struct study *study)
{
    static const char *const attributes[] = {"size", "reach"};
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
        char name[CACHE_METRIC_MAX];
        if (study->hidden) {
            cache_report_missing(context, memory, attributes[i], MEASURE_FAILED,
                                 "constant L1 holds what is touched");
            continue;
        }
        struct measure *m =
            measures_add(context->measures, cache_metric(name, memory, attributes[i]),
                         (double)study->region_high_bytes, "B", "chase");
        m->bound = MEASURE_AT_LEAST;
        m->confidence = 1;
    }
}

/* Without the sweep: enough to see that a cache is smaller than that of its peers. One repetition,
 * since there is one in each round. */
static int report_quick_size(struct probe_context *context, struct study *study, struct err *err)
{
    char name[CACHE_METRIC_MAX];
    double bytes, error;
    int rc = study_capacity_quick(context, study, &bytes, &error, err);
    if (rc)
        return rc;
    struct measure *size =
        measures_add(context->measures, cache_metric(name, study_name(study->id), "size"),
                     round(bytes), "B", "resident share");
    size->spread = error;
    size->confidence = repeats_confidence(bytes, error);
    return 0;
}

/* Uses the method that gave the size: one fine sweep around the reach, or the resident share. */
static int report_again(struct probe_context *context, const struct study *study, struct err *err)
{
    const char *memory = study_name(study->id);
    char name[CACHE_METRIC_MAX];
    struct sweep_onset fine = {0};
    double bytes, error;
    int rc = study->size_by_sweep
                 ? sweep_fine(context, study, study->reach_bytes, 1, &fine, err)
                 : study_capacity_again(context, study, SIZE_AGAIN, &bytes, &error, err);
    if (rc)
        return rc;
    if (study->size_by_sweep && !fine.change.found) {
        cache_report_missing(context, memory, "size", MEASURE_FAILED,
                             "no change point near the size found before");
        return 0;
    }
    repeats_confirm(context, cache_metric(name, memory, "size"),
                    study->size_by_sweep ? (double)fine.fits_bytes : bytes, "B", 1);
    return 0;
}

/* Adds .size and .reach; see cache_report.h for the other attributes. */
static int cache_size_report(struct probe_context *context, enum study_id id, struct err *err)
{
    static const char *const attributes[] = {"size", "reach", NULL};
    const char *memory = study_name(id);
    char name[CACHE_METRIC_MAX];
    struct study *study = &context->studies[id];
    bool quick = context->options->profile == PROFILE_QUICK;
    int rc = study_reach(context, id, quick ? STUDY_REGION : STUDY_RESIDENT, err);
    if (rc)
        return rc;
    if (!study->supported) {
        cache_report_unsupported(context, memory, attributes, study);
        return 0;
    }
    if (study->unbounded) {
        cache_size_add_unbounded(context, memory, study);
        return sweep_note_cache(context, study, cache_metric(name, memory, "size"), err);
    }
    if (quick)
        return report_quick_size(context, study, err);
    if (context->repeating && study->reach_bytes)
        return report_again(context, study, err);
    struct size_found found = {0};
    rc = cache_size_measure(context, study, &found, err);
    if (rc == -ENODATA && study->at_once != 1) {
        study_begin_alone(study);
        rc = study_reach(context, id, STUDY_RESIDENT, err);
        if (rc)
            return rc;
        if (study->unbounded) {
            cache_size_add_unbounded(context, memory, study);
            return 0;
        }
        rc = cache_size_measure(context, study, &found, err);
    }
    if (rc)
        return rc;
    cache_size_add(context, memory, &found);
    return sweep_note_cache(context, study, cache_metric(name, memory, "size"), err);
}

/* Reports whether global loads are cached in L1 at all: some Kepler and Maxwell GPUs do not cache
 * them (thesis 4.2.1). */
static int run_global(struct probe_context *context, struct err *err)
{
    int rc = study_reach(context, STUDY_L1_DATA, STUDY_LEVEL, err);
    if (rc)
        return rc;
    const struct study *study = &context->studies[STUDY_L1_DATA];
    const char *word = study->supported ? "cached" : "not_cached";
    struct measure *m =
        measures_add_words(context->measures, "l1_data.global_loads", &word, 1, ".ca against .cg");
    m->n = study->level_n;
    if (study->supported)
        m->confidence = 1 - study->stray_share - study->slip_share;
    return 0;
}

const struct probe probe_l1_data_global = {
    .description = {"l1_data.global", "whether global loads are cached in L1", PROFILE_QUICK},
    .metrics = {"l1_data.global_loads"},
    .run = run_global,
};

/* The probes of one cache. `small`: the smallest profile that runs those of size and latency.
 * Judged ones are measured again and must agree within these shares. */
#define CACHE(id, name, words, small, judged)                                                      \
    [id] = {                                                                                       \
        [CACHE_LINE] = {.description = {name ".line", "fetch unit and line of the " words,         \
                                        PROFILE_STANDARD},                                         \
                        .metrics = {name ".fetch", name ".line"},                                  \
                        .again = judged,                                                           \
                        .run_study = cache_report_line,                                            \
                        .study = id},                                                              \
        [CACHE_SIZE] = {.description = {name ".size", "size and reach of the " words, small},      \
                        .metrics = {name ".size", name ".reach"},                                  \
                        .again = judged,                                                           \
                        .within = judged ? 0.03 : 0,                                               \
                        .run_study = cache_size_report,                                            \
                        .study = id},                                                              \
        [CACHE_LATENCY] = {.description = {name ".latency", "latency of a hit in the " words,      \
                                           small},                                                 \
                           .metrics = {name ".latency", name ".miss_penalty"},                     \
                           .again = judged,                                                        \
                           .within = judged ? 0.02 : 0,                                            \
                           .run_study = cache_report_latency,                                      \
                           .study = id},                                                           \
    }

const struct probe probe_caches[STUDY_COUNT][CACHE_PROBES] = {
    CACHE(STUDY_L1_DATA, "l1_data", "L1 data cache", PROFILE_QUICK, true),
    CACHE(STUDY_TEXTURE, "texture", "texture cache", PROFILE_STANDARD, false),
    CACHE(STUDY_READ_ONLY, "read_only", "read-only cache", PROFILE_STANDARD, false),
    CACHE(STUDY_CONSTANT_L1, "constant_l1", "constant L1 cache", PROFILE_STANDARD, false),
    CACHE(STUDY_CONSTANT_L15, "constant_l15", "constant L1.5 cache", PROFILE_STANDARD, false),
};
