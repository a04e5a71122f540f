/* Latency from long dependent chases, free of timer and loop overhead.
 *
 * Chases of two lengths are timed as a whole; the difference of their times over the difference
 * of their lengths is the latency of a load: what is constant (clock reads, loop set-up) cancels.
 */
#include "probes/latency.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cpd/cpd.h"
#include "probes/chase.h"

enum {
    REPEATS = 3, /* batches, spread over the run */
    PAIRS = 2,   /* short and long chases per job */
    JOBS_MIN = 64,
    JOBS_MAX = 4096,
    LONG_MAX = 2048,
    LONG_MIN = 32,
    SHORTER = 4,   /* long over short */
    AGAIN_MAX = 2, /* further attempts at a latency that does not repeat */
};

/* Wanted standard error of one batch, as a share of the latency. */
static const double PRECISION = 0.004;

/* Batches that differ by a larger half range do not repeat. */
static const double UNSTABLE = 0.02;

/* A long chase should meet no spike more often than not. */
static const double SPIKES_PER_CHASE = 0.3;

struct plan {
    uint64_t short_loads, long_loads;
    size_t jobs;
};

static struct plan make_plan(const struct study *study)
{
    double length = study->spike_share > 0 ? SPIKES_PER_CHASE / study->spike_share : LONG_MAX;
    struct plan plan = {.long_loads = (uint64_t)fmin(fmax(length, LONG_MIN), LONG_MAX)};
    plan.short_loads = plan.long_loads / SHORTER;
    /* The median of m chases of n loads each errs by 1.25 sigma sqrt(n / m), over the loads that
     * the difference of long and short leaves. */
    double loads = (double)(plan.long_loads - plan.short_loads);
    double error = 1.25 * study->sigma_cycles * sqrt((double)plan.long_loads) / loads;
    double chases = pow(error / (PRECISION * study->hit_cycles), 2);
    plan.jobs = (size_t)fmin(fmax(chases / PAIRS, JOBS_MIN), JOBS_MAX);
    return plan;
}

struct times {
    double *short_cycles, *long_cycles, *long_ns; /* PAIRS per job */
};

static int times_init(struct times *times, size_t jobs)
{
    times->short_cycles = mem_array(3 * PAIRS * jobs, sizeof *times->short_cycles);
    if (!times->short_cycles)
        return -1;
    times->long_cycles = times->short_cycles + PAIRS * jobs;
    times->long_ns = times->long_cycles + PAIRS * jobs;
    return 0;
}

static int time_batch(struct probe_context *context, const struct device_array *array,
                      const struct plan *plan, struct times *times, struct err *err)
{
    struct device_job *jobs = mem_array(plan->jobs, sizeof *jobs);
    struct device_answer *answers;
    if (!jobs)
        return err_no_memory(err);
    for (size_t i = 0; i < plan->jobs; i++) {
        jobs[i] = chase_job();
        chase_add(&jobs[i], DEVICE_WARM, array, 0);
        for (size_t p = 0; p < PAIRS; p++) {
            chase_add(&jobs[i], DEVICE_AVERAGE, array, plan->short_loads);
            chase_add(&jobs[i], DEVICE_AVERAGE, array, plan->long_loads);
        }
    }
    int rc = chase_run(context, jobs, plan->jobs, 0, &answers, err);
    free(jobs);
    if (rc)
        return rc;
    for (size_t i = 0; i < PAIRS * plan->jobs; i++) {
        const struct device_sample *pair = &answers[i / PAIRS].samples[2 * (i % PAIRS)];
        times->short_cycles[i] = (double)pair[0].total_cycles;
        times->long_cycles[i] = (double)pair[1].total_cycles;
        times->long_ns[i] = (double)pair[1].elapsed_ns;
    }
    device_answers_fini(answers, plan->jobs);
    free(answers);
    return 0;
}

/* The median of the chases that met no spike. Spikes only add time, so those chases are the lower
 * part of all; how large a part follows from the spike rate. */
static double undisturbed(const double *cycles, size_t count, uint64_t loads, double spike_share)
{
    return cpd_quantile(cycles, count, pow(1 - spike_share, (double)loads) / 2);
}

static int measure_once(struct probe_context *context, const struct device_array *array,
                        const struct study *study, const struct plan *plan,
                        struct latency *out_latency, struct err *err)
{
    size_t count = PAIRS * plan->jobs;
    double cycles[REPEATS], clocks[REPEATS];
    struct times times;
    if (times_init(&times, plan->jobs))
        return err_no_memory(err);
    int rc = 0;
    for (size_t i = 0; i < REPEATS && !rc; i++) {
        rc = time_batch(context, array, plan, &times, err);
        if (rc)
            break;
        double longer = undisturbed(times.long_cycles, count, plan->long_loads, study->spike_share);
        double shorter =
            undisturbed(times.short_cycles, count, plan->short_loads, study->spike_share);
        double ns = cpd_median(times.long_ns, count);
        cycles[i] = (longer - shorter) / (double)(plan->long_loads - plan->short_loads);
        clocks[i] = ns > 0 ? cpd_median(times.long_cycles, count) / ns : 0;
    }
    free(times.short_cycles);
    if (rc)
        return rc;
    double clock = cpd_median(clocks, REPEATS);
    out_latency->cycles = cpd_median(cycles, REPEATS);
    out_latency->spread = (cpd_quantile(cycles, REPEATS, 1) - cpd_quantile(cycles, REPEATS, 0)) / 2;
    out_latency->ns = clock > 0 ? out_latency->cycles / clock : 0;
    out_latency->n = (uint32_t)(REPEATS * count);
    return 0;
}

int latency_measure(struct probe_context *context, const struct device_array *array,
                    const struct study *study, struct latency *out_latency, struct err *err)
{
    const struct plan plan = make_plan(study);
    for (int attempt = 0;; attempt++) {
        int rc = measure_once(context, array, study, &plan, out_latency, err);
        if (rc || attempt == AGAIN_MAX || out_latency->spread <= UNSTABLE * out_latency->cycles)
            return rc;
    }
}
