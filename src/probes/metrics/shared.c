/* The probe of the latency of shared memory. */
#include <stdlib.h>

#include "probes/method/chase.h"
#include "probes/method/latency.h"
#include "probes/method/pool.h"
#include "probes/method/repeats.h"

enum { ARRAY_BYTES = 1024, STRIDE_BYTES = 8, JOBS = 4, LOADS = 2048 };
static const char METRIC[] = "shared.latency";

/* The scatter of single loads decides how long the chases are. */
static int measure_scatter(struct probe_context *context, const struct device_array *array,
                           struct study *out_study, struct err *err)
{
    struct device_job jobs[JOBS];
    struct device_answer *answers;
    struct pool loads = {0};
    for (size_t i = 0; i < JOBS; i++)
        jobs[i] = chase_twice(array, LOADS);
    int rc = chase_run(context, jobs, JOBS, 0, &answers, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < JOBS; i++)
        pool_add(&loads, &answers[i].samples[0]);
    const struct pool_centre centre = pool_centre(&loads);
    *out_study = (struct study){.path = DEVICE_SHARED,
                                .hit_cycles = centre.cycles,
                                .sigma_cycles = centre.sigma,
                                .spike_share = centre.spike_share};
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
    if (rc)
        return repeats_end(context, METRIC, rc, &own, err);
    rc = latency_report(context, METRIC, &array, &scatter, &own);
    if (rc)
        return repeats_end(context, METRIC, rc, &own, err);
    return 0;
}

const struct probe probe_shared_latency = {
    .description = {"shared.latency", "latency of shared memory", PROFILE_STANDARD},
    .metrics = {"shared.latency"},
    .run = run,
};
