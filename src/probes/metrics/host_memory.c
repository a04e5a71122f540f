/* The probes of the link to the host: copies both ways, and the latency of mapped memory. */
#include "probes/method/bandwidth.h"
#include "probes/method/host_link.h"
#include "probes/method/repeats.h"
#include "probes/method/scattered.h"

enum { LATENCY_LOADS = 512, LATENCY_SLICES = SCATTERED_REPEATS * SCATTERED_JOBS };
static const uint64_t COPY_BYTES = UINT64_C(32) << 20, LATENCY_BYTES = UINT64_C(1) << 20;
static const char NO_MEMORY[] = "no host memory can be mapped into the GPU";

static int report_copies(struct probe_context *context, const char *metric,
                         enum device_stream_kind kind, struct err *err)
{
    uint64_t room = device_limits(context->device)->host_bytes / 2; /* for each direction */
    const struct bandwidth_task task = {
        .metric = metric, .kind = kind, .footprint_bytes = room < COPY_BYTES ? room : COPY_BYTES};
    if (!room)
        return repeats_unsupported(context, metric, NO_MEMORY, err);
    context->link = (struct device_link){.alone = true, .near = true};
    int rc = bandwidth_report(context, &task, err);
    if (rc)
        return rc;
    return host_link_remark(context, metric) ? err_no_memory(err) : 0;
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
static int run_latency(struct probe_context *context, struct err *err)
{
    uint64_t slice = device_limits(context->device)->host_bytes / LATENCY_SLICES;
    slice = slice < LATENCY_BYTES ? slice : LATENCY_BYTES;
    slice = slice / SCATTERED_STRIDE_BYTES * SCATTERED_STRIDE_BYTES;
    const struct scattered_task task = {.metric = "host.latency",
                                        .path = DEVICE_HOST,
                                        .size_bytes = slice,
                                        .apart_bytes = slice,
                                        .loads = LATENCY_LOADS};
    if (!slice)
        return repeats_unsupported(context, task.metric, NO_MEMORY, err);
    context->link = (struct device_link){.alone = true, .near = true};
    int rc = scattered_report(context, &task, err);
    if (rc)
        return rc;
    return host_link_remark(context, task.metric) ? err_no_memory(err) : 0;
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
    .again = true,
    .within = 0.05,
    .highest = true,
    .run = run_both,
};

const struct probe probe_host_latency = {
    .description = {"host.latency", "latency of host memory mapped into the GPU", PROFILE_STANDARD},
    .metrics = {"host.latency"},
    .run = run_latency,
};
