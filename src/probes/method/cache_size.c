/* Size and reach of an SM's cache. */
#include "probes/method/cache_size.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "cpd/cpd.h"
#include "probes/method/cache_report.h"
#include "probes/method/capacity.h"
#include "probes/method/curve_note.h"
#include "probes/method/repeats.h"
#include "probes/method/sweep.h"

enum {
    REASON_MAX = 160,
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
        rc = sweep_onset(study, &curve, probe_analysis_seed(context), out_onset, err);
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
    return rc ? rc : sweep_onset(study, &curve, probe_analysis_seed(context), out_onset, err);
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
static bool agree(const struct size_found *f)
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
        if (agree(f) || apart > APART || f->residency_error < SHARP * f->by_residency)
            return 0;
        int rc = capacity_measure_again(context, study, SHARP, &bytes, &error, err);
        if (rc)
            return rc;
        double old = pow(f->residency_error, -2), new = pow(fmax(error, 1), -2);
        f->by_residency = (old * f->by_residency + new *bytes) / (old + new);
        f->residency_error = 1 / sqrt(old + new);
    }
    return 0;
}

static int measure_size(struct probe_context *context, struct study *study,
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
    f->agree = agree(f);
    study->reach_bytes = (uint64_t)f->by_sweep;
    study->size_by_sweep = f->agree;
    return rc;
}

/* Adds the documented size of L1 to the measured one. */
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

/* If both methods agree, the sweep is reported, since it resolves single lines. If not, the
 * resident share is the capacity (it does not depend on the replacement policy), the sweep is the
 * reach, and the status says so. */
static int report_size(struct probe_context *context, const char *memory,
                       const struct size_found *found, struct err *err)
{
    char name[CACHE_METRIC_MAX], reason[REASON_MAX];
    double value = found->agree ? found->by_sweep : found->by_residency;
    struct measure *size = measures_add(context->measures, cache_metric(name, memory, "size"),
                                        value, "B", "chase+cpd, resident share");
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
    struct measure *reach = measures_add(context->measures, cache_metric(name, memory, "reach"),
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
        char name[CACHE_METRIC_MAX];
        struct measure *m =
            measures_add(context->measures, cache_metric(name, memory, attributes[i]),
                         (double)study->region_high_bytes, "B", "chase");
        if (!m)
            return err_no_memory(err);
        m->bound = MEASURE_AT_LEAST;
        m->n = 1;
        m->confidence = 1;
    }
    return 0;
}

/* Without the sweep: enough to see that a cache is smaller than that of its peers. One repetition,
 * since there is one in each round. */
static int report_quick_size(struct probe_context *context, struct study *study, struct err *err)
{
    char name[CACHE_METRIC_MAX];
    double bytes, error;
    int rc = capacity_measure_quick(context, study, &bytes, &error, err);
    if (rc)
        return rc;
    struct measure *size =
        measures_add(context->measures, cache_metric(name, study_name(study->id), "size"),
                     round(bytes), "B", "resident share");
    if (!size)
        return err_no_memory(err);
    size->n = 1;
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
                 : capacity_measure_again(context, study, SIZE_AGAIN, &bytes, &error, err);
    if (rc)
        return rc;
    if (study->size_by_sweep && !fine.change.found)
        return cache_report_missing(context, memory, "size", MEASURE_FAILED,
                                    "no change point near the size found before", err);
    return repeats_confirm(context, cache_metric(name, memory, "size"),
                           study->size_by_sweep ? (double)fine.fits_bytes : bytes, "B", 1, err);
}

int cache_size_report(struct probe_context *context, enum study_id id, struct err *err)
{
    static const char *const attributes[] = {"size", "reach", NULL};
    const char *memory = study_name(id);
    struct study *study = &context->studies[id];
    bool quick = context->options->profile == PROFILE_QUICK;
    int rc = study_reach(context, id, quick ? STUDY_REGION : STUDY_RESIDENT, err);
    if (rc)
        return rc;
    if (!study->supported)
        return cache_report_unsupported(context, memory, attributes, study, err);
    if (study->unbounded) {
        rc = report_unbounded(context, memory, study, err);
        return rc ? rc : curve_note_cache(context, study, err);
    }
    if (quick)
        return report_quick_size(context, study, err);
    if (context->repeating && study->reach_bytes)
        return report_again(context, study, err);
    struct size_found found = {0};
    rc = measure_size(context, study, &found, err);
    if (rc == -ENODATA && study->at_once != 1) {
        study_begin_alone(study);
        rc = study_reach(context, id, STUDY_RESIDENT, err);
        if (rc)
            return rc;
        if (study->unbounded)
            return report_unbounded(context, memory, study, err);
        rc = measure_size(context, study, &found, err);
    }
    if (rc)
        return rc;
    rc = report_size(context, memory, &found, err);
    if (rc)
        return rc;
    return curve_note_cache(context, study, err);
}
