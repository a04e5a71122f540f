/* The attributes of an SM's cache: line and fetch, size and reach, latency. */
#include "probes/cache.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "cpd/cpd.h"
#include "probes/curve.h"
#include "probes/latency.h"
#include "probes/line.h"
#include "probes/repeats.h"
#include "probes/resident.h"
#include "probes/sweep.h"

enum {
    METRIC_MAX = 64,
    REASON_MAX = 160,
    SIZE_REPEATS = 3,
    SHARPEN_MAX = 2,
    WIDEN_MAX = 3,
    SIDE_LINES = 24, /* a sweep reaches at least so many lines beyond the region */
    FINE_LINES = 12,
    FINE_REPEATS = 5,
};

/* Sweep and residency agree when they differ by no more than this share, or than the error of the
 * residency explains, up to the other share. */
static const double AGREEMENT = 0.01, AGREEMENT_MAX = 0.015;

/* They clearly agree below the one share and clearly do not above the other. Between the two the
 * residency gets this standard error. */
static const double NEAR = 0.006, APART = 0.04, SHARP = 0.003;

/* A sweep reaches so far beyond the region found by doubling and narrowing. */
static const double SIDE_SHARE = 0.15;

static const char *metric_name(char buffer[METRIC_MAX], const char *memory, const char *attribute)
{
    snprintf(buffer, METRIC_MAX, "%s.%s", memory, attribute);
    return buffer;
}

static int report_missing(struct probe_context *context, const char *memory, const char *attribute,
                          enum measure_status status, const char *reason, struct err *err)
{
    char name[METRIC_MAX];
    metric_name(name, memory, attribute);
    return measures_add_missing(context->measures, name, status, reason) ? 0 : err_no_memory(err);
}

static int report_unsupported(struct probe_context *context, const char *memory,
                              const char *const *attributes, const struct study *study,
                              struct err *err)
{
    char reason[REASON_MAX];
    if (study->hit_cycles > 0)
        snprintf(reason, sizeof reason,
                 "no cache seen before the next level: a repeated load takes %.0f cycles",
                 study->hit_cycles);
    else
        snprintf(reason, sizeof reason, "this GPU has no such path");
    for (; *attributes; attributes++) {
        int rc = report_missing(context, memory, *attributes, MEASURE_UNSUPPORTED, reason, err);
        if (rc)
            return rc;
    }
    return 0;
}

static int report_fetch(struct probe_context *context, const char *memory,
                        const struct study *study, struct err *err)
{
    char name[METRIC_MAX];
    if (study->fetch_unseen)
        return report_missing(context, memory, "fetch", MEASURE_FAILED,
                              "the cache could not be made to miss", err);
    struct measure *fetch =
        measures_add(context->measures, metric_name(name, memory, "fetch"),
                     (double)study->fetch_bytes, "B", "cold chase, distance between misses");
    if (!fetch)
        return err_no_memory(err);
    fetch->confidence = study->fetch_contrast;
    return 0;
}

int cache_report_line(struct probe_context *context, enum study_id id, struct err *err)
{
    const char *memory = study_name(id);
    static const char *const attributes[] = {"fetch", "line", NULL};
    const struct study *study = &context->studies[id];
    int rc = study_reach(context, id, STUDY_RESIDENT, err);
    if (rc)
        return rc;
    if (!study->supported)
        return report_unsupported(context, memory, attributes, study, err);
    rc = report_fetch(context, memory, study, err);
    if (rc)
        return rc;
    if (study->unbounded)
        return report_missing(context, memory, "line", MEASURE_FAILED,
                              "the cache could not be overfilled", err);
    char name[METRIC_MAX];
    struct measure *line =
        measures_add(context->measures, metric_name(name, memory, "line"),
                     (double)study->line_bytes, "B", "span of what stays resident, by stride");
    if (!line)
        return err_no_memory(err);
    line->confidence = study->line_confidence;
    line->n = study->line_n;
    if (line->confidence < LINE_SURE &&
        measure_set_status(line, MEASURE_NOISY,
                           "two lines explain what stays resident nearly as well"))
        return err_no_memory(err);
    return 0;
}

/* The sweep as the thesis has it: one load per line, sizes around the region, change point;
 * widened and repeated while the change point is rejected. */
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
        if (!rc)
            rc = sweep_onset(study, &curve, probe_analysis_seed(context), out_onset, err);
        if (rc)
            return rc;
        *out_step_lines = step;
        if (out_onset->change.found)
            break;
    }
    return 0;
}

/* Again around what the coarse sweep found, each size several times: now single lines count. */
static int sweep_fine(struct probe_context *context, const struct study *study, uint64_t fits_bytes,
                      uint64_t step_lines, struct sweep_onset *out_onset, struct err *err)
{
    uint64_t line = study->touch_bytes, fits = fits_bytes / line;
    /* The coarse onset may come late by two of its steps. */
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
    return rc ? rc : sweep_onset(study, &curve, probe_analysis_seed(context), out_onset, err);
}

struct size_found {
    double by_sweep, spread; /* median and half range of the repetitions */
    double confidence;
    double by_residency, residency_error;
    bool agree;
    uint32_t at_once; /* jobs in flight, where one per SM disturbed each other; else 0 */
    bool l1;          /* the L1 data cache */
};

/* The coarse sweep and SIZE_REPEATS fine ones around what it found. Where most fine sweeps see no
 * step, the coarse one was mistaken about the place: all is done again, once. */
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

/* Where the two methods are a little apart, the resident share decides whether they agree: more of
 * it, until its error no longer matters. */
static int sharpen_residency(struct probe_context *context, const struct study *study,
                             struct size_found *f, struct err *err)
{
    for (int i = 0; i < SHARPEN_MAX; i++) {
        double apart = fabs(f->by_sweep - f->by_residency) / f->by_residency, bytes, error;
        if (apart < NEAR || apart > APART || f->residency_error < SHARP * f->by_residency)
            return 0;
        int rc = resident_measure_again(context, study, SHARP, &bytes, &error, err);
        if (rc)
            return rc;
        double old = pow(f->residency_error, -2), new = pow(fmax(error, 1), -2);
        f->by_residency = (old * f->by_residency + new *bytes) / (old + new);
        f->residency_error = 1 / sqrt(old + new);
    }
    return 0;
}

static int measure_size(struct probe_context *context, const struct study *study,
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
    f->at_once = study->at_once;
    f->l1 = study->id == STUDY_L1_DATA;
    rc = sharpen_residency(context, study, f, err);
    /* A chase cannot reach further than the cache holds: less room on that side. */
    double errors = f->by_sweep > f->by_residency ? 1.5 : 2.5;
    double room =
        fmin(fmax(AGREEMENT, errors * f->residency_error / f->by_residency), AGREEMENT_MAX);
    f->agree = fabs(f->by_sweep - f->by_residency) <= room * f->by_residency;
    return rc;
}

/* What is documented for L1 stands beside what is measured. */
static int add_documented(struct probe_context *context, struct measure *size, struct err *err)
{
    const struct device_limits *limits = device_limits(context->device);
    if (limits->l1_nominal_bytes &&
        facts_set_int(&size->notes, "nominal", (int64_t)limits->l1_nominal_bytes))
        return err_no_memory(err);
    if (limits->l1_carveout_bytes &&
        facts_set_int(&size->notes, "carveout", (int64_t)limits->l1_carveout_bytes))
        return err_no_memory(err);
    return 0;
}

/* Where both methods agree the sweep is the finer one: it resolves single lines. Where they do
 * not, the resident share is the capacity (it does not depend on the replacement policy), the
 * sweep is the reach, and the status says so. */
static int report_size(struct probe_context *context, const char *memory,
                       const struct size_found *found, struct err *err)
{
    char name[METRIC_MAX], reason[REASON_MAX];
    double value = found->agree ? found->by_sweep : found->by_residency;
    struct measure *size = measures_add(context->measures, metric_name(name, memory, "size"), value,
                                        "B", "chase+cpd, resident share");
    if (!size)
        return err_no_memory(err);
    size->n = SIZE_REPEATS;
    size->spread = found->agree ? found->spread : found->residency_error;
    size->confidence = found->agree ? found->confidence : 0.5;
    snprintf(reason, sizeof reason,
             "a sequential chase misses from %.0f B on, %.0f B stay resident", found->by_sweep,
             found->by_residency);
    if (!found->agree && measure_set_status(size, MEASURE_NOISY, reason))
        return err_no_memory(err);
    if (facts_set_int(&size->notes, "by_sweep", llround(found->by_sweep)) ||
        facts_set_int(&size->notes, "by_residency", llround(found->by_residency)))
        return err_no_memory(err);
    if (found->at_once && facts_set_int(&size->notes, "at_once", found->at_once))
        return err_no_memory(err);
    if (found->l1 && add_documented(context, size, err))
        return err->code;
    struct measure *reach = measures_add(context->measures, metric_name(name, memory, "reach"),
                                         found->by_sweep, "B", "chase+cpd");
    if (!reach)
        return err_no_memory(err);
    reach->n = SIZE_REPEATS;
    reach->spread = found->spread;
    reach->confidence = found->confidence;
    return 0;
}

static int report_unbounded(struct probe_context *context, const char *memory,
                            const struct study *study, struct err *err)
{
    static const char *const attributes[] = {"size", "reach"};
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
        char name[METRIC_MAX];
        struct measure *m =
            measures_add(context->measures, metric_name(name, memory, attributes[i]),
                         (double)study->region_high_bytes, "B", "chase");
        if (!m)
            return err_no_memory(err);
        m->bound = MEASURE_AT_LEAST;
        m->n = 1;
        m->confidence = 1;
    }
    return 0;
}

/* Without the sweep: enough to see that a cache is smaller than its peers'. */
static int report_quick_size(struct probe_context *context, const struct study *study,
                             struct err *err)
{
    char name[METRIC_MAX];
    double bytes[SIZE_REPEATS], error;
    for (size_t i = 0; i < SIZE_REPEATS; i++) {
        int rc = resident_measure_quick(context, study, &bytes[i], &error, err);
        if (rc)
            return rc;
    }
    struct measure *size =
        measures_add(context->measures, metric_name(name, study_name(study->id), "size"),
                     round(cpd_median(bytes, SIZE_REPEATS)), "B", "resident share");
    if (!size)
        return err_no_memory(err);
    size->n = SIZE_REPEATS;
    size->spread = fmax(error, repeats_half_range(bytes, SIZE_REPEATS));
    size->confidence = 0.9; /* one method, not confirmed by the other */
    return 0;
}

int cache_report_size(struct probe_context *context, enum study_id id, struct err *err)
{
    static const char *const attributes[] = {"size", "reach", NULL};
    const char *memory = study_name(id);
    struct study *study = &context->studies[id];
    bool quick = context->options->profile == PROFILE_QUICK;
    int rc = study_reach(context, id, quick ? STUDY_REGION : STUDY_RESIDENT, err);
    if (rc)
        return rc;
    if (!study->supported)
        return report_unsupported(context, memory, attributes, study, err);
    if (quick && !study->unbounded)
        return report_quick_size(context, study, err);
    if (study->unbounded) {
        rc = report_unbounded(context, memory, study, err);
        return rc ? rc : curve_note_cache(context, study, err);
    }
    struct size_found found = {0};
    rc = measure_size(context, study, &found, err);
    if (rc == -ENODATA && study->at_once != 1) {
        study_begin_alone(study);
        rc = study_reach(context, id, STUDY_RESIDENT, err);
        if (!rc && study->unbounded)
            return report_unbounded(context, memory, study, err);
        if (!rc)
            rc = measure_size(context, study, &found, err);
    }
    if (!rc)
        rc = report_size(context, memory, &found, err);
    return rc ? rc : curve_note_cache(context, study, err);
}

/* Constant L1.5 is timed past L1: an array several times larger than that, and no larger than L1.5
 * itself (thesis 4.4). */
static int latency_array(struct probe_context *context, const struct study *study,
                         struct device_array *out_array, struct err *err)
{
    *out_array = (struct device_array){.path = study->path,
                                       .size_bytes = 8 * study->fetch_bytes,
                                       .stride_bytes = study->fetch_bytes};
    if (study->id != STUDY_CONSTANT_L15)
        return 0;
    const struct study *before = &context->studies[STUDY_CONSTANT_L1];
    int rc = study_reach(context, STUDY_CONSTANT_L15, STUDY_REGION, err);
    if (rc)
        return rc;
    uint64_t size = 8 * before->region_high_bytes;
    out_array->size_bytes = size < study->region_low_bytes ? size : study->region_low_bytes;
    out_array->stride_bytes = before->fetch_bytes;
    return 0;
}

/* What a miss costs more than a hit. Both from single loads, so that the timer's share cancels. */
static int report_penalty(struct probe_context *context, const struct study *study, struct err *err)
{
    char name[METRIC_MAX];
    struct measure *m =
        measures_add(context->measures, metric_name(name, study_name(study->id), "miss_penalty"),
                     study->miss_cycles - study->hit_cycles, "cycles", "single loads");
    if (!m)
        return err_no_memory(err);
    m->spread = study->sigma_cycles;
    m->n = 1;
    m->confidence = 0.9;
    return 0;
}

int cache_report_latency(struct probe_context *context, enum study_id id, struct err *err)
{
    const char *memory = study_name(id);
    static const char *const attributes[] = {"latency", "miss_penalty", NULL};
    const struct study *study = &context->studies[id];
    int rc = study_reach(context, id, STUDY_FETCH, err);
    if (rc)
        return rc;
    if (!study->supported)
        return report_unsupported(context, memory, attributes, study, err);
    struct device_array array;
    rc = latency_array(context, study, &array, err);
    if (rc)
        return rc;
    char name[METRIC_MAX];
    rc = latency_report(context, metric_name(name, memory, "latency"), &array, study, err);
    if (rc)
        return rc;
    return report_penalty(context, study, err);
}
