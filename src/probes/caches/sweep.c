/* Sweeps of array sizes: the miss share of each size, where it changes, and the curve that the
 * profile `full` keeps. */
#include "probes/caches/sweep.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "probes/method/chase.h"
#include "probes/method/timer.h"

/* Even the smallest array has this many timed loads, so that one spike is a small share. */
enum { LOADS_MIN = 512 };

/* The smallest step of a change point, as a share of the gap between hit and miss. Distances are
 * sqrt(miss share): 0.04 is one miss in 600 loads, if no hit is taken for a miss. If one in a
 * hundred is, the step must be 0.1. */
static const double STEP_MIN = 0.04, STEP_PER_STRAY = 0.6;

static const double ALPHA = 0.01;

int sweep_sizes_behind(struct probe_context *context, const struct study *study,
                       const uint64_t *sizes, size_t count, uint64_t stride_bytes,
                       const struct study *before, double *out_shares, double *out_passed,
                       struct err *err)
{
    struct device_answer *answers = NULL;
    struct device_job *jobs = mem_array(count, sizeof *jobs);
    for (size_t i = 0; i < count; i++) {
        const struct device_array array = {
            .path = study->path, .size_bytes = sizes[i], .stride_bytes = stride_bytes};
        jobs[i] = chase_twice(&array, LOADS_MIN);
    }
    int rc = chase_run(context, jobs, count, study->at_once, &answers, err);
    if (!rc) {
        for (size_t i = 0; i < count; i++) {
            out_shares[i] = chase_share_above(&answers[i].samples[0], study->threshold);
            if (before)
                out_passed[i] = chase_share_above(&answers[i].samples[0], before->threshold);
        }
        chase_free(answers, count);
    }
    free(jobs);
    return rc;
}

int sweep_sizes(struct probe_context *context, const struct study *study, const uint64_t *sizes,
                size_t count, uint64_t stride_bytes, double *out_shares, struct err *err)
{
    return sweep_sizes_behind(context, study, sizes, count, stride_bytes, NULL, out_shares, NULL,
                              err);
}

int sweep_measure(struct probe_context *context, const struct study *study,
                  const struct sweep_range *range, struct sweep_curve *out_curve, struct err *err)
{
    size_t count = 0, repeats = range->repeats ? range->repeats : 1;
    bool within = range->high_bytes < study->limit_bytes;
    uint64_t high = within ? range->high_bytes : study->limit_bytes;
    for (uint64_t size = range->low_bytes; size <= high && count + repeats <= SWEEP_SIZES_MAX;
         size += range->step_bytes)
        for (size_t i = 0; i < repeats; i++)
            out_curve->sizes[count++] = size;
    out_curve->count = count;
    return sweep_sizes(context, study, out_curve->sizes, count, range->stride_bytes,
                       out_curve->miss_shares, err);
}

/* The largest size with no measurement after the split. */
static uint64_t largest_before(const uint64_t *sizes, size_t count, size_t split)
{
    size_t at = split - 1;
    while (at > 0 && split < count && sizes[at] == sizes[split])
        at--;
    return sizes[at];
}

size_t sweep_first_over(const double *miss_shares, size_t count, double limit)
{
    size_t best = count, wrong = 0, least;
    for (size_t i = 0; i < count; i++)
        wrong += miss_shares[i] > limit;
    least = wrong; /* split at count: everything fits */
    for (size_t split = count; split-- > 0;) {
        wrong += miss_shares[split] > limit ? (size_t)-1 : 1;
        if (wrong <= least) {
            least = wrong;
            best = split;
        }
    }
    return best;
}

/* After the first miss, the miss share rises gradually under many policies, and the best split of a
 * ramp lies inside it. So the part before a split is searched again as long as it has a change
 * point itself. What remains is where misses begin. */
int sweep_onset(const struct study *study, const uint64_t *sizes, const double *miss_shares,
                size_t count, uint64_t seed, struct sweep_onset *out_onset, struct err *err)
{
    const struct cpd_options options = {.cost = CPD_COST_MEAN,
                                        .alpha = ALPHA,
                                        .step_min =
                                            STEP_MIN + STEP_PER_STRAY * sqrt(study->stray_share),
                                        .seed = seed};
    double *distances = mem_array(count, sizeof *distances);
    struct sweep_onset onset = {0};
    int rc = 0;
    /* Distance of the vector of classified loads (hit 0, miss 1) to the all-hit reference, per
     * load: the geometric mapping of thesis 3.3.2, with spikes cut to the height of a miss. */
    for (size_t i = 0; i < count; i++)
        distances[i] = sqrt(miss_shares[i]);
    for (size_t end = count; end && !rc;) {
        struct cpd_change change;
        rc = cpd_test(distances, end, &options, &change);
        if (rc) {
            err_set(err, rc, "change-point detection failed on %zu sizes", end);
            break;
        }
        bool rise = change.found && change.step > 0;
        if (rise || end == count)
            onset.change = change;
        onset.change.found = onset.change.found && onset.change.step > 0;
        end = rise ? change.split : 0;
    }
    free(distances);
    if (rc)
        return rc;
    if (onset.change.found)
        onset.fits_bytes = largest_before(sizes, count, onset.change.split);
    *out_onset = onset;
    return 0;
}

/* Sweeps sizes around the result of a probe, in the same way as the probe, over a wider range. */

enum {
    L2_POINTS = 36,
    L2_LOADS = 2048,
};

/* The range kept, as shares of the size. */
static const double CACHE_LOW = 0.5, CACHE_HIGH = 1.5, L2_LOW = 0.3, L2_HIGH = 1.35;

/* L2: the part of the array that is timed, filled first and evicted first (as in the probe). */
static const double L2_WINDOW = 0.5;

static double curve_mean_cycles(const struct device_sample *sample)
{
    double sum = 0, count = 0;
    for (uint32_t i = 0; i < sample->bin_count; i++) {
        sum += sample->bins[i].count * device_bin_cycles(sample->bins[i].bin);
        count += sample->bins[i].count;
    }
    return count > 0 ? sum / count : NAN;
}

/* Sizes from low to high in whole units, evenly spread, at most `most` of them. */
static void spread_sizes(struct curve *curve, double low, double high, uint64_t unit, size_t most)
{
    double first = ceil(low / (double)unit), last = floor(high / (double)unit);
    double step = fmax(1, ceil((last - first) / (double)(most - 1)));
    for (double at = first; at <= last && curve->count < most; at += step)
        curve->points[curve->count++].bytes = at * (double)unit;
}

static int curve_run_jobs(struct probe_context *context, const struct device_job *jobs,
                          uint32_t at_once, double threshold, struct curve *curve, struct err *err)
{
    double overhead = timer_overhead(context, jobs->steps[0].array.path);
    struct device_answer *answers;
    int rc = chase_run(context, jobs, curve->count, at_once, &answers, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < curve->count; i++) {
        curve->points[i].cycles = curve_mean_cycles(&answers[i].samples[0]) - overhead;
        curve->points[i].missed = chase_share_above(&answers[i].samples[0], threshold);
    }
    chase_free(answers, curve->count);
    return 0;
}

/* Sweeps around a size that the study (for L2: the probe l2.size) found before. */
static int curve_of_cache(struct probe_context *context, const struct study *study,
                          struct curve *out_curve, struct err *err)
{
    double overhead = timer_overhead(context, study->path);
    uint64_t stride = study->touch_bytes ? study->touch_bytes : study->fetch_bytes;
    double low = CACHE_LOW * study->resident_bytes, high = CACHE_HIGH * study->resident_bytes;
    struct curve curve = {.hit = study->hit_cycles - overhead,
                          .miss = study->miss_cycles - overhead};
    if (study->unbounded) {
        low = (double)study->floor_bytes;
        high = (double)study->limit_bytes;
    }
    low = fmax(low, (double)study->floor_bytes);
    high = fmin(high, (double)study->limit_bytes);
    spread_sizes(&curve, low, high, stride, CURVE_POINTS_MAX);
    struct device_job *jobs = mem_array(curve.count, sizeof *jobs);
    for (size_t i = 0; i < curve.count; i++) {
        const struct device_array array = {.path = study->path,
                                           .size_bytes = (uint64_t)curve.points[i].bytes,
                                           .stride_bytes = stride};
        jobs[i] = chase_twice(&array, LOADS_MIN);
        jobs[i].shared_bytes = study->shared_bytes;
    }
    int rc = curve_run_jobs(context, jobs, study->at_once, study->threshold, &curve, err);
    free(jobs);
    if (rc)
        return rc;
    *out_curve = curve;
    return 0;
}

/* All warps fill L2, then one thread times a random sample of what was filled first. */
static struct device_job l2_job(struct probe_context *context, uint64_t size, uint64_t line)
{
    struct device_array all = {.path = DEVICE_GLOBAL_CG, .size_bytes = size, .stride_bytes = line};
    struct device_array timed = all;
    uint64_t elements = (uint64_t)(L2_WINDOW * (double)(size / line));
    timed.size_bytes = (elements ? elements : 1) * line;
    timed.order = DEVICE_RANDOM;
    timed.seed = probe_seed(context);
    struct device_job job = chase_job();
    job.agents[0].sm = 0;
    job.cold_l2 = true;
    chase_add(&job, DEVICE_FILL, &all, 0);
    chase_add(&job, DEVICE_CHASE, &timed, elements < L2_LOADS ? elements : L2_LOADS);
    return job;
}

static int curve_of_l2(struct probe_context *context, struct curve *out_curve, struct err *err)
{
    const struct l2_study *l2 = &context->l2;
    double overhead = timer_overhead(context, DEVICE_GLOBAL_CG);
    struct curve curve = {.hit = l2->near.cycles - overhead, .miss = l2->main.cycles - overhead};
    struct device_job jobs[L2_POINTS];
    if (l2->parts > 1)
        curve.far = l2->far.cycles - overhead;
    spread_sizes(&curve, L2_LOW * l2->resident_bytes, L2_HIGH * l2->resident_bytes, l2->line_bytes,
                 L2_POINTS);
    for (size_t i = 0; i < curve.count; i++)
        jobs[i] = l2_job(context, (uint64_t)curve.points[i].bytes, l2->line_bytes);
    int rc = curve_run_jobs(context, jobs, 1, l2->far_threshold, &curve, err);
    if (rc)
        return rc;
    *out_curve = curve;
    return 0;
}

static void curve_add_note(struct probe_context *context, const char *metric,
                           const struct curve *curve)
{
    for (size_t i = 0; i < context->measures->count; i++) {
        struct measure *m = &context->measures->items[i];
        if (!str_equal(m->metric, metric))
            continue;
        curve_put(curve, &m->notes);
        return;
    }
}

int sweep_note_cache(struct probe_context *context, const struct study *study, const char *metric,
                     struct err *err)
{
    struct curve curve;
    if (context->options->profile != PROFILE_FULL || context->repeating)
        return 0;
    int rc = curve_of_cache(context, study, &curve, err);
    if (rc)
        return rc;
    curve_add_note(context, metric, &curve);
    return 0;
}

int sweep_note_l2(struct probe_context *context, struct err *err)
{
    struct curve curve;
    if (context->options->profile != PROFILE_FULL || context->repeating)
        return 0;
    int rc = curve_of_l2(context, &curve, err);
    if (rc)
        return rc;
    curve_add_note(context, "l2.size", &curve);
    return 0;
}
