/* The probes of main memory. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "cpd/cpd.h"
#include "probes/chase.h"

enum {
    STRIDE_BYTES = 256, /* beyond the line and the fetch of any L2 */
    L2_FACTOR = 4,      /* footprint over the L2 that the driver reports */
    REPEATS = 3,
    LOADS = 2048,
    JOBS = 4, /* one after the other: nothing shares the memory with a timed load */
};
static const uint64_t FOOTPRINT_MIN_BYTES = 8 * 1024 * 1024;

static uint64_t footprint(const struct device_limits *limits)
{
    uint64_t bytes = L2_FACTOR * limits->l2_reported_bytes;
    if (bytes < FOOTPRINT_MIN_BYTES)
        bytes = FOOTPRINT_MIN_BYTES;
    if (limits->global_bytes && bytes > limits->global_bytes)
        bytes = limits->global_bytes;
    return bytes / STRIDE_BYTES * STRIDE_BYTES;
}

/* Cold L2, random order, no line twice. Half of the lines may lie behind the far part of L2, where
 * the median would fall between two peaks and jump: hence the mean of the middle half. */
static int typical_latency(struct probe_context *context, double *out_cycles, double *out_per_ns,
                           struct err *err)
{
    struct device_job jobs[JOBS];
    struct device_answer *answers;
    for (size_t i = 0; i < JOBS; i++) {
        const struct device_array array = {.path = DEVICE_GLOBAL_CG,
                                           .size_bytes = footprint(device_limits(context->device)),
                                           .stride_bytes = STRIDE_BYTES,
                                           .order = DEVICE_RANDOM,
                                           .seed = probe_seed(context)};
        uint64_t elements = array.size_bytes / array.stride_bytes;
        jobs[i] = chase_job();
        jobs[i].cold_l2 = true;
        chase_add(&jobs[i], DEVICE_CHASE, &array, elements < LOADS ? elements : LOADS);
    }
    int rc = chase_run(context, jobs, JOBS, 1, &answers, err);
    if (rc)
        return rc;
    double middles[JOBS], clocks[JOBS];
    for (size_t i = 0; i < JOBS; i++) {
        const struct device_sample *s = &answers[i].samples[0];
        middles[i] = chase_middle_mean(s);
        clocks[i] = s->elapsed_ns ? (double)s->total_cycles / (double)s->elapsed_ns : 0;
    }
    *out_cycles = cpd_median(middles, JOBS);
    *out_per_ns = cpd_median(clocks, JOBS);
    device_answers_fini(answers, JOBS);
    free(answers);
    return 0;
}

static int run_latency(struct probe_context *context, struct err *err)
{
    double cycles[REPEATS], clocks[REPEATS];
    double overhead = device_limits(context->device)->timer_overhead_cycles;
    for (size_t i = 0; i < REPEATS; i++) {
        int rc = typical_latency(context, &cycles[i], &clocks[i], err);
        if (rc)
            return rc;
        cycles[i] -= overhead;
    }
    double value = cpd_median(cycles, REPEATS), clock = cpd_median(clocks, REPEATS);
    struct measure *m = measures_add(context->measures, "main.latency", value, "cycles",
                                     "middle half of a random chase");
    if (!m)
        return err_no_memory(err);
    m->spread = (cpd_quantile(cycles, REPEATS, 1) - cpd_quantile(cycles, REPEATS, 0)) / 2;
    m->n = REPEATS * JOBS * LOADS;
    m->confidence = 0.99;
    if (clock > 0 && facts_set_real(&m->notes, "ns", value / clock))
        return err_no_memory(err);
    return 0;
}

const struct probe probe_main_latency = {
    .description = {"main.latency", "latency of main memory", PROFILE_QUICK},
    .metrics = {"main.latency"},
    .run = run_latency,
};
