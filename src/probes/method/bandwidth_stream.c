/* One stream of a shape: how much it has in flight, and how fast it is. */
#include "probes/method/bandwidth_stream.h"

#include <errno.h>
#include <math.h>

#include "probes/method/host_link.h"
#include "probes/probe.h"

enum { GROWTHS_MAX = 6 }; /* how often a stream is made longer until it lasts long enough */

/* Long compared with launch and timer (microseconds), short compared with a survey. */
static const double STREAM_NS = 3e6, COPIES_NS = 2e6;
static const double GROWTH_MIN = 2, GROWTH_MAX = 256;
static const uint64_t TOTAL_MAX_BYTES = UINT64_C(1) << 42;

bool bandwidth_by_kernel(const struct bandwidth_task *task)
{
    return !device_stream_uses_host(task->kind);
}

bool bandwidth_per_block(const struct bandwidth_task *task)
{
    return bandwidth_by_kernel(task) && task->path != DEVICE_GLOBAL_CG;
}

bool bandwidth_allows(const struct probe_context *context, uint32_t threads)
{
    uint32_t warps = device_limits(context->device)->warp_count;
    return !warps || threads <= warps * BANDWIDTH_WARP_THREADS;
}

uint64_t bandwidth_in_flight(const struct bandwidth_task *task, const struct bandwidth_shape *shape,
                             uint32_t sms)
{
    uint64_t bytes = (uint64_t)shape->threads * shape->width_bytes * shape->unroll;
    if (!bandwidth_per_block(task))
        bytes *= (uint64_t)shape->blocks_per_sm * sms;
    return device_stream_arrays(task->kind) * bytes;
}

uint32_t bandwidth_unroll(const struct probe_context *context, const struct bandwidth_task *task,
                          const struct bandwidth_shape *shape)
{
    uint32_t sms = device_limits(context->device)->sm_count;
    struct bandwidth_shape tried = *shape;
    for (tried.unroll = BANDWIDTH_UNROLL_MAX; tried.unroll > 1; tried.unroll /= 2)
        if (bandwidth_in_flight(task, &tried, sms) <= task->footprint_bytes)
            break;
    return tried.unroll;
}

static uint64_t even_footprint(const struct bandwidth_task *task,
                               const struct bandwidth_shape *shape, uint32_t sms)
{
    uint64_t bytes = bandwidth_in_flight(task, shape, sms);
    if (!bytes || bytes > task->footprint_bytes)
        return task->footprint_bytes;
    return task->footprint_bytes / bytes * bytes;
}

static struct device_stream make_stream(const struct bandwidth_task *task,
                                        const struct bandwidth_shape *shape, uint32_t sms)
{
    struct device_stream stream = {
        .kind = task->kind, .path = task->path, .footprint_bytes = task->footprint_bytes};
    if (bandwidth_by_kernel(task)) {
        stream.footprint_bytes = even_footprint(task, shape, sms);
        stream.width_bytes = shape->width_bytes;
        stream.threads = shape->threads;
        stream.blocks = shape->blocks_per_sm * sms;
        stream.unroll = shape->unroll;
    }
    return stream;
}

int bandwidth_time(struct probe_context *context, const struct bandwidth_task *task,
                   const struct bandwidth_shape *shape, uint64_t *total_bytes, double *out_gbs,
                   struct err *err)
{
    uint32_t sms = device_limits(context->device)->sm_count;
    struct device_stream stream = make_stream(task, shape, sms);
    uint64_t pass = stream.footprint_bytes * (bandwidth_per_block(task) && sms ? sms : 1);
    stream.total_bytes = *total_bytes > pass ? *total_bytes : pass;
    const double wanted_ns = bandwidth_by_kernel(task) ? STREAM_NS : COPIES_NS;
    for (size_t i = 0; i < GROWTHS_MAX; i++) {
        struct device_stream_answer answer;
        if (!bandwidth_by_kernel(task))
            host_link_begin(context);
        int rc = device_stream(context->device, &stream, &answer, err);
        if (!bandwidth_by_kernel(task))
            host_link_end(context);
        if (rc)
            return rc;
        double ns = answer.elapsed_ns ? (double)answer.elapsed_ns : 1;
        if (!answer.elapsed_ns && (i + 1 == GROWTHS_MAX || stream.total_bytes >= TOTAL_MAX_BYTES))
            return err_set(err, -ENOTSUP, "the stream takes no time by the device's clock");
        *out_gbs = (double)answer.bytes / ns;
        *total_bytes = stream.total_bytes;
        if (ns >= wanted_ns / 2 || stream.total_bytes >= TOTAL_MAX_BYTES)
            break;
        double growth = fmin(fmax(wanted_ns / ns, GROWTH_MIN), GROWTH_MAX);
        stream.total_bytes = (uint64_t)((double)stream.total_bytes * growth);
    }
    return 0;
}
