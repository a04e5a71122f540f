/* The probes of the link to the host: copies both ways, the latency of mapped memory, and copies
 * while all GPUs of the node copy. */
#include <errno.h>
#include <math.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cpd/cpd.h"
#include "probes/method/chase.h"
#include "probes/method/pool.h"
#include "probes/method/repeats.h"
#include "probes/method/timer.h"
#include "probes/probe.h"
#include "probes/streams/bandwidth.h"

enum {
    SCATTERED_STRIDE_BYTES = 256, /* more than the line and the fetch of any L2 */
    SCATTERED_REPEATS = 3,
    SCATTERED_JOBS = 4, /* one after the other: nothing shares the memory with a timed load */
};

struct scattered_task {
    const char *metric;
    enum device_path path;
    uint64_t size_bytes;  /* of the array of one job */
    uint64_t apart_bytes; /* distance between the arrays of successive jobs; 0: the same array */
    uint64_t loads;       /* of one job */
};

/* Latency of a memory behind all caches: single loads in random order, no line twice. */

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
        probe_begin_link(context);
    int rc = chase_run(context, jobs, count, 1, &answers, err);
    if (task->path == DEVICE_HOST)
        probe_end_link(context);
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
    chase_free(answers, count);
    return 0;
}

/* Adds the metric in cycles, without timer overhead, with the notes `ns`, `mean`, `p50`, `p95`,
 * `sd`.
 */
static int scattered_report(struct probe_context *context, const struct scattered_task *task,
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
    uint64_t elements = task->size_bytes / SCATTERED_STRIDE_BYTES;
    uint64_t loads = elements < task->loads ? elements : task->loads;
    m->n = (uint32_t)(repeats * job_count(context) * loads);
    double clock = cpd_median(clocks, repeats);
    repeats_settle(m);
    if (clock > 0)
        facts_set_real(&m->notes, "ns", m->value / clock);
    facts_set_real(&m->notes, "mean", pool_mean(&pool) - overhead);
    pool_note_distribution(&pool, overhead, &m->notes);
    return 0;
}

enum { LATENCY_LOADS = 512, LATENCY_SLICES = SCATTERED_REPEATS * SCATTERED_JOBS };

static const uint64_t COPY_BYTES = UINT64_C(32) << 20, LATENCY_BYTES = UINT64_C(1) << 20;

static const char NO_MEMORY[] = "no host memory can be mapped into the GPU";

static int report_copies(struct probe_context *context, const char *metric,
                         enum device_stream_kind kind, struct err *err)
{
    uint64_t room = device_limits(context->device)->host_bytes / 2; /* for each direction */
    const struct bandwidth_task task = {
        .metric = metric, .kind = kind, .footprint_bytes = room < COPY_BYTES ? room : COPY_BYTES};
    if (!room) {
        repeats_unsupported(context, metric, NO_MEMORY);
        return 0;
    }
    context->link = (struct device_link){.alone = true, .near = true};
    int rc = bandwidth_report(context, &task, err);
    if (rc)
        return rc;
    probe_remark_link(context, metric);
    return 0;
}

static int run_h2d(struct probe_context *context, struct err *err)
{
    return report_copies(context, "host.bandwidth.h2d", DEVICE_STREAM_H2D, err);
}

static int run_d2h(struct probe_context *context, struct err *err)
{
    return report_copies(context, "host.bandwidth.d2h", DEVICE_STREAM_D2H, err);
}

static int run_both(struct probe_context *context, struct err *err)
{
    return report_copies(context, "host.bandwidth.both", DEVICE_STREAM_BIDIR, err);
}

/* L2 may keep lines of host memory, so each job has its own slice, and no line is loaded twice. */
static int host_run_latency(struct probe_context *context, struct err *err)
{
    uint64_t slice = device_limits(context->device)->host_bytes / LATENCY_SLICES;
    slice = slice < LATENCY_BYTES ? slice : LATENCY_BYTES;
    slice = slice / SCATTERED_STRIDE_BYTES * SCATTERED_STRIDE_BYTES;
    const struct scattered_task task = {.metric = "host.latency",
                                        .path = DEVICE_HOST,
                                        .size_bytes = slice,
                                        .apart_bytes = slice,
                                        .loads = LATENCY_LOADS};
    if (!slice) {
        repeats_unsupported(context, task.metric, NO_MEMORY);
        return 0;
    }
    context->link = (struct device_link){.alone = true, .near = true};
    int rc = scattered_report(context, &task, err);
    if (rc)
        return rc;
    probe_remark_link(context, task.metric);
    return 0;
}

const struct probe probe_host_bandwidth_h2d = {
    .description = {"host.bandwidth.h2d", "bandwidth of copies from the host to the GPU",
                    PROFILE_QUICK},
    .metrics = {"host.bandwidth.h2d"},
    .again = true,
    .within = 0.05,
    .highest = true,
    .run = run_h2d,
};

const struct probe probe_host_bandwidth_d2h = {
    .description = {"host.bandwidth.d2h", "bandwidth of copies from the GPU to the host",
                    PROFILE_QUICK},
    .metrics = {"host.bandwidth.d2h"},
    .again = true,
    .within = 0.05,
    .highest = true,
    .run = run_d2h,
};

const struct probe probe_host_bandwidth_both = {
    .description = {"host.bandwidth.both", "bandwidth of copies both ways at once, bytes added",
                    PROFILE_STANDARD},
    .metrics = {"host.bandwidth.both"},
    .run = run_both,
};

const struct probe probe_host_latency = {
    .description = {"host.latency", "latency of host memory mapped into the GPU", PROFILE_STANDARD},
    .metrics = {"host.latency"},
    .run = host_run_latency,
};

/* The probe of the host links of all GPUs of a node at once. */

enum { WINDOW_MS = 200 };

/* Of the time that the GPU has left, for all of it: most of that is waiting for the others. */
static const double WAIT_SHARE = 0.5;

/* Only a replay has no time limit. */
enum { LIMIT_MS = 60000 };

static const char one_gpu[] =
    "this process sees one GPU; one task per node that sees all of its GPUs (srun "
    "--ntasks-per-node=1 --gpus-per-node=N) measures their host links at once";

static const struct way {
    enum device_stream_kind kind;
    const char *metric, *alone;
} ways[] = {
    {DEVICE_STREAM_H2D, "host.together.h2d", "host.bandwidth.h2d"},
    {DEVICE_STREAM_D2H, "host.together.d2h", "host.bandwidth.d2h"},
    {DEVICE_STREAM_BIDIR, "host.together.both", "host.bandwidth.both"},
};

static uint32_t limit_ms(double stop_s)
{
    double left_s = stop_s - clock_monotonic_s();
    return isfinite(left_s) ? (uint32_t)(1000 * fmin(fmax(left_s, 0.001), 86400)) : LIMIT_MS;
}

/* `share` is the rate as a share of the GPU's rate alone. */
static void host_together_report(struct probe_context *context, const struct way *way,
                                 const struct device_host_share_answer *answer)
{
    double rate = (double)answer->bytes / (double)answer->elapsed_ns, alone;
    struct measure *m = measures_add(context->measures, way->metric, rate, "GB/s",
                                     "copies while all GPUs of the node copy");
    if (measures_value(context->measures, way->alone, &alone) && alone > 0)
        facts_set_real(&m->notes, "share", rate / alone);
}

/* *gpus: how many copied, if they are fewer than before. */
static int run_way(struct probe_context *context, const struct way *way, double stop_s,
                   uint32_t *gpus, struct err *err)
{
    uint64_t room = device_limits(context->device)->host_bytes / 2; /* for each direction */
    const struct device_host_share asked = {.kind = way->kind,
                                            .bytes = room < COPY_BYTES ? room : COPY_BYTES,
                                            .window_ms = WINDOW_MS,
                                            .limit_ms = limit_ms(stop_s)};
    struct device_host_share_answer answer = {0};
    struct err own = {0};
    if (!room) {
        repeats_unsupported(context, way->metric, "no host memory can be mapped into the GPU");
        return 0;
    }
    int rc = device_share_host(context->device, &asked, &answer, &own);
    if (rc == -EAGAIN) {
        repeats_unsupported(context, way->metric, own.text);
        return 0;
    }
    if (rc)
        return repeats_end(context, way->metric, rc, &own, err);
    if (!answer.bytes || !answer.elapsed_ns) {
        repeats_unsupported(context, way->metric, "the copies took no time");
        return 0;
    }
    *gpus = answer.gpus < *gpus ? answer.gpus : *gpus;
    host_together_report(context, way, &answer);
    return 0;
}

static void host_together_report_gpus(struct probe_context *context, uint32_t gpus)
{
    if (gpus == UINT32_MAX)
        return;
    measures_add(context->measures, "host.together.gpus", gpus, "",
                 "GPUs of the node that copied at once");
}

static int host_together_run(struct probe_context *context, struct err *err)
{
    struct facts gpus = {0};
    struct err own = {0};
    int rc = device_list_peers(context->device, &gpus, &own);
    bool alone = !facts_text(&gpus, "1");
    facts_fini(&gpus);
    if (rc)
        return repeats_end(context, ways[0].metric, rc, &own, err);
    if (alone) {
        repeats_unsupported(context, ways[0].metric, one_gpu);
        return 0;
    }
    double stop_s = clock_monotonic_s() + WAIT_SHARE * probe_left_s(context);
    uint32_t least = UINT32_MAX;
    for (size_t i = 0; i < COUNT_OF(ways) && !rc; i++)
        rc = run_way(context, &ways[i], stop_s, &least, err);
    if (rc)
        return rc;
    host_together_report_gpus(context, least);
    return 0;
}

const struct probe probe_host_together = {
    .description = {"host.together", "bandwidth of the host link while all GPUs of the node copy",
                    PROFILE_FULL},
    .depends = {"host.bandwidth.h2d", "host.bandwidth.d2h", "host.bandwidth.both"},
    .metrics = {"host.together.h2d", "host.together.d2h", "host.together.both",
                "host.together.gpus"},
    .last = true,
    .run = host_together_run,
};
