/* The probe of the latency of shared memory. */
#include <math.h>
#include <stdlib.h>

#include "cpd/cpd.h"
#include "probes/chase.h"
#include "probes/latency.h"
#include "probes/repeats.h"

enum { ARRAY_BYTES = 1024, STRIDE_BYTES = 8, JOBS = 4, LOADS = 2048 };
static const char METRIC[] = "shared.latency";

/* Distance of the quartiles of a normal distribution, in standard deviations. */
static const double QUARTILES_SIGMA = 1.349;

/* How single loads scatter decides how long the chases are. */
static int measure_scatter(struct probe_context *context, const struct device_array *array,
                           struct study *out_study, struct err *err)
{
    struct device_job jobs[JOBS];
    struct device_answer *answers;
    double medians[JOBS], sigmas[JOBS], spikes[JOBS];
    for (size_t i = 0; i < JOBS; i++)
        jobs[i] = chase_twice(array, LOADS);
    int rc = chase_run(context, jobs, JOBS, 0, &answers, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < JOBS; i++) {
        const struct device_sample *s = &answers[i].samples[0];
        medians[i] = chase_quantile(s, 0.5);
        sigmas[i] = (chase_quantile(s, 0.75) - chase_quantile(s, 0.25)) / QUARTILES_SIGMA;
        spikes[i] = chase_spike_share(s, medians[i], sigmas[i]);
    }
    *out_study = (struct study){.path = DEVICE_SHARED,
                                .hit_cycles = cpd_median(medians, JOBS),
                                .sigma_cycles = cpd_median(sigmas, JOBS),
                                .spike_share = (spikes[0] + spikes[1] + spikes[2] + spikes[3]) / 4};
    device_answers_fini(answers, JOBS);
    free(answers);
    return 0;
}

static int run(struct probe_context *context, struct err *err)
{
    const struct device_array array = {
        .path = DEVICE_SHARED, .size_bytes = ARRAY_BYTES, .stride_bytes = STRIDE_BYTES};
    struct study scatter;
    struct err own = {0};
    if (device_limits(context->device)->shared_array_bytes < ARRAY_BYTES)
        return repeats_unsupported(context, METRIC, "a block has no shared memory", err);
    int rc = measure_scatter(context, &array, &scatter, &own);
    if (!rc)
        rc = latency_report(context, METRIC, &array, &scatter, &own);
    return rc ? repeats_end(context, METRIC, rc, &own, err) : 0;
}

const struct probe probe_shared_latency = {
    .description = {"shared.latency", "latency of shared memory", PROFILE_STANDARD},
    .metrics = {"shared.latency"},
    .run = run,
};
