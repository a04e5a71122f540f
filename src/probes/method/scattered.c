/* Latency of a memory behind all caches: single loads in random order, no line twice. */
#include "probes/method/scattered.h"

#include <stdlib.h>

#include "cpd/cpd.h"
#include "probes/method/chase.h"
#include "probes/method/host_link.h"
#include "probes/method/pool.h"
#include "probes/method/repeats.h"
#include "probes/method/timer.h"

static size_t job_count(const struct probe_context *context)
{
    return context->options->profile == PROFILE_QUICK ? 1 : SCATTERED_JOBS;
}

/* The host's own work delays some loads by a lot; therefore the mean of the middle half. */
static int typical_latency(struct probe_context *context, const struct scattered_task *task,
                           size_t repeat, struct pool *pool, double *out_cycles, double *out_per_ns,
                           struct err *err)
{
    struct device_job jobs[SCATTERED_JOBS];
    struct device_answer *answers;
    size_t count = job_count(context);
    for (size_t i = 0; i < count; i++) {
        const struct device_array array = {.path = task->path,
                                           .offset_bytes =
                                               (repeat * SCATTERED_JOBS + i) * task->apart_bytes,
                                           .size_bytes = task->size_bytes,
                                           .stride_bytes = SCATTERED_STRIDE_BYTES,
                                           .order = DEVICE_RANDOM,
                                           .seed = probe_seed(context)};
        uint64_t elements = array.size_bytes / array.stride_bytes;
        jobs[i] = chase_job();
        chase_add(&jobs[i], DEVICE_CHASE, &array, elements < task->loads ? elements : task->loads);
    }
    if (task->path == DEVICE_HOST)
        host_link_begin(context);
    int rc = chase_run(context, jobs, count, 1, &answers, err);
    if (task->path == DEVICE_HOST)
        host_link_end(context);
    if (rc)
        return rc;
    double middles[SCATTERED_JOBS], clocks[SCATTERED_JOBS];
    for (size_t i = 0; i < count; i++) {
        const struct device_sample *s = &answers[i].samples[0];
        pool_add(pool, s);
        middles[i] = chase_middle_mean(s);
        clocks[i] = s->elapsed_ns ? (double)s->total_cycles / (double)s->elapsed_ns : 0;
    }
    *out_cycles = cpd_median(middles, count);
    *out_per_ns = cpd_median(clocks, count);
    device_answers_fini(answers, count);
    free(answers);
    return 0;
}

int scattered_report(struct probe_context *context, const struct scattered_task *task,
                     struct err *err)
{
    double cycles[SCATTERED_REPEATS], clocks[SCATTERED_REPEATS];
    double overhead = timer_overhead(context, task->path);
    struct pool pool = {0};
    struct err own = {0};
    size_t repeats = probe_repeats(context, SCATTERED_REPEATS);
    for (size_t i = 0; i < repeats; i++) {
        int rc = typical_latency(context, task, i, &pool, &cycles[i], &clocks[i], &own);
        if (rc)
            return repeats_end(context, task->metric, rc, &own, err);
        cycles[i] -= overhead;
    }
    struct measure *m = repeats_add(context, task->metric, cycles, repeats, "cycles",
                                    "middle half of a random chase");
    if (!m)
        return err_no_memory(err);
    uint64_t elements = task->size_bytes / SCATTERED_STRIDE_BYTES;
    uint64_t loads = elements < task->loads ? elements : task->loads;
    m->n = (uint32_t)(repeats * job_count(context) * loads);
    double clock = cpd_median(clocks, repeats);
    if (repeats_settle(m) || (clock > 0 && facts_set_real(&m->notes, "ns", m->value / clock)) ||
        facts_set_real(&m->notes, "mean", pool_mean(&pool) - overhead) ||
        pool_note_percentiles(&pool, overhead, &m->notes))
        return err_no_memory(err);
    return 0;
}
