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
    JOBS = 64,   /* chases of each length per batch */
    LONG_MAX = 2048,
    LONG_MIN = 48,
};

struct batch_times {
    double short_cycles[JOBS], long_cycles[JOBS];
    double long_ns[JOBS];
};

static int time_batch(struct probe_context *context, const struct device_array *array,
                      uint64_t short_loads, uint64_t long_loads, struct batch_times *out_times,
                      struct err *err)
{
    struct device_job jobs[JOBS];
    struct device_answer *answers;
    for (size_t i = 0; i < JOBS; i++) {
        jobs[i] = chase_job();
        chase_add(&jobs[i], DEVICE_WARM, array, 0);
        chase_add(&jobs[i], DEVICE_AVERAGE, array, short_loads);
        chase_add(&jobs[i], DEVICE_AVERAGE, array, long_loads);
    }
    int rc = chase_run(context, jobs, JOBS, 0, &answers, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < JOBS; i++) {
        out_times->short_cycles[i] = (double)answers[i].samples[0].total_cycles;
        out_times->long_cycles[i] = (double)answers[i].samples[1].total_cycles;
        out_times->long_ns[i] = (double)answers[i].samples[1].elapsed_ns;
    }
    device_answers_fini(answers, JOBS);
    free(answers);
    return 0;
}

int latency_measure(struct probe_context *context, const struct device_array *array,
                    double stray_share, struct latency *out_latency, struct err *err)
{
    double length = stray_share > 0 ? 0.4 / stray_share : LONG_MAX;
    uint64_t long_loads = length < LONG_MIN   ? LONG_MIN
                          : length > LONG_MAX ? LONG_MAX
                                              : (uint64_t)length;
    uint64_t short_loads = long_loads / 4;
    double cycles[REPEATS], per_ns[REPEATS];
    for (size_t i = 0; i < REPEATS; i++) {
        struct batch_times times;
        int rc = time_batch(context, array, short_loads, long_loads, &times, err);
        if (rc)
            return rc;
        double long_cycles = cpd_median(times.long_cycles, JOBS);
        double long_ns = cpd_median(times.long_ns, JOBS);
        cycles[i] = (long_cycles - cpd_median(times.short_cycles, JOBS)) /
                    (double)(long_loads - short_loads);
        per_ns[i] = long_ns > 0 ? long_cycles / long_ns : 0;
    }
    double clock = cpd_median(per_ns, REPEATS);
    out_latency->cycles = cpd_median(cycles, REPEATS);
    out_latency->spread = (cpd_quantile(cycles, REPEATS, 1) - cpd_quantile(cycles, REPEATS, 0)) / 2;
    out_latency->ns = clock > 0 ? out_latency->cycles / clock : 0;
    out_latency->n = REPEATS * JOBS;
    return 0;
}
