/* The probes of main memory. */
#include "probes/scattered.h"

enum {
    L2_FACTOR = 4, /* footprint over the L2 that the driver reports */
    LOADS = 2048,
};
static const uint64_t FOOTPRINT_MIN_BYTES = 8 * 1024 * 1024;

static uint64_t footprint(const struct device_limits *limits)
{
    uint64_t bytes = L2_FACTOR * limits->l2_reported_bytes;
    if (bytes < FOOTPRINT_MIN_BYTES)
        bytes = FOOTPRINT_MIN_BYTES;
    if (limits->global_bytes && bytes > limits->global_bytes)
        bytes = limits->global_bytes;
    return bytes / SCATTERED_STRIDE_BYTES * SCATTERED_STRIDE_BYTES;
}

static int run_latency(struct probe_context *context, struct err *err)
{
    const struct scattered_task task = {.metric = "main.latency",
                                        .path = DEVICE_GLOBAL_CG,
                                        .size_bytes = footprint(device_limits(context->device)),
                                        .loads = LOADS,
                                        .cold_l2 = true};
    return scattered_report(context, &task, err);
}

const struct probe probe_main_latency = {
    .description = {"main.latency", "latency of main memory", PROFILE_QUICK},
    .metrics = {"main.latency"},
    .again = true,
    .within = 0.02,
    .run = run_latency,
};
