/* One array size per SM: the miss share over a range of sizes, and where it changes. */
#include "probes/method/sweep.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "probes/method/chase.h"

/* Even the smallest array has this many timed loads, so that one spike is a small share. */
enum { LOADS_MIN = 512 };

/* The smallest step of a change point, as a share of the gap between hit and miss. Distances are
 * sqrt(miss share): 0.04 is one miss in 600 loads, if no hit is taken for a miss. If one in a
 * hundred is, the step must be 0.1. */
static const double STEP_MIN = 0.04, STEP_PER_STRAY = 0.6;
static const double ALPHA = 0.01;

int sweep_sizes(struct probe_context *context, const struct study *study, const uint64_t *sizes,
                size_t count, uint64_t stride_bytes, double *out_shares, struct err *err)
{
    struct device_answer *answers = NULL;
    struct device_job *jobs = mem_array(count, sizeof *jobs);
    if (!jobs)
        return err_no_memory(err);
    for (size_t i = 0; i < count; i++) {
        const struct device_array array = {
            .path = study->path, .size_bytes = sizes[i], .stride_bytes = stride_bytes};
        jobs[i] = chase_twice(&array, LOADS_MIN);
    }
    int rc = chase_run(context, jobs, count, study->at_once, &answers, err);
    if (!rc) {
        for (size_t i = 0; i < count; i++)
            out_shares[i] = chase_share_above(&answers[i].samples[0], study->threshold);
        device_answers_fini(answers, count);
        free(answers);
    }
    free(jobs);
    return rc;
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
static uint64_t largest_before(const struct sweep_curve *curve, size_t split)
{
    size_t at = split - 1;
    while (at > 0 && split < curve->count && curve->sizes[at] == curve->sizes[split])
        at--;
    return curve->sizes[at];
}

/* After the first miss, the miss share rises gradually under many policies, and the best split of a
 * ramp lies inside it. So the part before a split is searched again as long as it has a change
 * point itself. What remains is where misses begin. */
int sweep_onset(const struct study *study, const struct sweep_curve *curve, uint64_t seed,
                struct sweep_onset *out_onset, struct err *err)
{
    const struct cpd_options options = {.cost = CPD_COST_MEAN,
                                        .alpha = ALPHA,
                                        .step_min =
                                            STEP_MIN + STEP_PER_STRAY * sqrt(study->stray_share),
                                        .seed = seed};
    double distances[SWEEP_SIZES_MAX];
    struct sweep_onset onset = {0};
    /* Distance of the vector of classified loads (hit 0, miss 1) to the all-hit reference, per
     * load: the geometric mapping of thesis 3.3.2, with spikes cut to the height of a miss. */
    for (size_t i = 0; i < curve->count; i++)
        distances[i] = sqrt(curve->miss_shares[i]);
    for (size_t end = curve->count; end;) {
        struct cpd_change change;
        int rc = cpd_test(distances, end, &options, &change);
        if (rc)
            return err_set(err, rc, "change-point detection failed on %zu sizes", end);
        bool rise = change.found && change.step > 0;
        if (rise || end == curve->count)
            onset.change = change;
        onset.change.found = onset.change.found && onset.change.step > 0;
        end = rise ? change.split : 0;
    }
    if (onset.change.found)
        onset.fits_bytes = largest_before(curve, onset.change.split);
    *out_onset = onset;
    return 0;
}
