/* The probe of the host links of all GPUs of a node at once. */
#include <errno.h>
#include <math.h>

#include "base/clock.h"
#include "base/mem.h"
#include "probes/method/repeats.h"
#include "probes/probe.h"

enum { WINDOW_MS = 200 };
static const uint64_t COPY_BYTES = UINT64_C(32) << 20;

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
static int report(struct probe_context *context, const struct way *way,
                  const struct device_host_share_answer *answer, struct err *err)
{
    double rate = (double)answer->bytes / (double)answer->elapsed_ns, alone;
    struct measure *m = measures_add(context->measures, way->metric, rate, "GB/s",
                                     "copies while all GPUs of the node copy");
    if (!m)
        return err_no_memory(err);
    m->confidence = NAN;
    if (measures_value(context->measures, way->alone, &alone) && alone > 0 &&
        facts_set_real(&m->notes, "share", rate / alone))
        return err_no_memory(err);
    return 0;
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
    if (!room)
        return repeats_unsupported(context, way->metric,
                                   "no host memory can be mapped into the GPU", err);
    int rc = device_share_host(context->device, &asked, &answer, &own);
    if (rc == -EAGAIN)
        return repeats_unsupported(context, way->metric, own.text, err);
    if (rc)
        return repeats_end(context, way->metric, rc, &own, err);
    if (!answer.bytes || !answer.elapsed_ns)
        return repeats_unsupported(context, way->metric, "the copies took no time", err);
    *gpus = answer.gpus < *gpus ? answer.gpus : *gpus;
    return report(context, way, &answer, err);
}

static int report_gpus(struct probe_context *context, uint32_t gpus, struct err *err)
{
    if (gpus == UINT32_MAX)
        return 0;
    struct measure *m = measures_add(context->measures, "host.together.gpus", gpus, "",
                                     "GPUs of the node that copied at once");
    if (m)
        m->confidence = NAN;
    return m ? 0 : err_no_memory(err);
}

static int run(struct probe_context *context, struct err *err)
{
    struct facts gpus = {0};
    struct err own = {0};
    int rc = device_list_peers(context->device, &gpus, &own);
    bool alone = !facts_text(&gpus, "1");
    facts_fini(&gpus);
    if (rc)
        return repeats_end(context, ways[0].metric, rc, &own, err);
    if (alone)
        return repeats_unsupported(context, ways[0].metric, one_gpu, err);
    double stop_s = clock_monotonic_s() + WAIT_SHARE * probe_left_s(context);
    uint32_t least = UINT32_MAX;
    for (size_t i = 0; i < COUNT_OF(ways) && !rc; i++)
        rc = run_way(context, &ways[i], stop_s, &least, err);
    return rc ? rc : report_gpus(context, least, err);
}

const struct probe probe_host_together = {
    .description = {"host.together", "bandwidth of the host link while all GPUs of the node copy",
                    PROFILE_FULL},
    .depends = {"host.bandwidth.h2d", "host.bandwidth.d2h", "host.bandwidth.both"},
    .metrics = {"host.together.h2d", "host.together.d2h", "host.together.both",
                "host.together.gpus"},
    .last = true,
    .run = run,
};
