/* The probes of the bandwidth of L1 data and shared memory, summed over all SMs. */
#include "probes/method/bandwidth.h"
#include "probes/method/repeats.h"

/* Footprints per SM: small if the size of L1 is not known; otherwise large enough for all threads
 * of a block to have several accesses in flight. */
static const uint64_t SMALL_BYTES = 4 * 1024, LARGE_BYTES = 64 * 1024;

static uint64_t power_of_two_within(uint64_t bytes)
{
    uint64_t power = 1;
    while (power * 2 <= bytes)
        power *= 2;
    return power < LARGE_BYTES ? power : LARGE_BYTES;
}

static int run_l1(struct probe_context *context, struct err *err)
{
    struct bandwidth_task task = {.metric = "l1_data.bandwidth.read",
                                  .kind = DEVICE_STREAM_READ,
                                  .path = DEVICE_GLOBAL_CA,
                                  .footprint_bytes = SMALL_BYTES};
    double size_bytes;
    int rc = study_reach(context, STUDY_L1_DATA, STUDY_LEVEL, err);
    if (rc)
        return rc;
    if (!context->studies[STUDY_L1_DATA].supported)
        return repeats_unsupported(context, task.metric, "global loads are not cached in L1", err);
    if (measures_value(context->measures, "l1_data.size", &size_bytes))
        task.footprint_bytes = power_of_two_within((uint64_t)(size_bytes / 2));
    return bandwidth_report(context, &task, err);
}

static int run_shared(struct probe_context *context, struct err *err)
{
    uint64_t bytes = device_limits(context->device)->shared_array_bytes;
    const struct bandwidth_task task = {.metric = "shared.bandwidth.read",
                                        .kind = DEVICE_STREAM_READ,
                                        .path = DEVICE_SHARED,
                                        .footprint_bytes = power_of_two_within(bytes)};
    if (!bytes)
        return repeats_unsupported(context, task.metric, "a block has no shared memory", err);
    return bandwidth_report(context, &task, err);
}

const struct probe probe_l1_data_bandwidth_read = {
    .description = {"l1_data.bandwidth.read", "bandwidth of reading L1 data, all SMs together",
                    PROFILE_STANDARD},
    .depends = {"l1_data.size"},
    .metrics = {"l1_data.bandwidth.read"},
    .run = run_l1,
};

const struct probe probe_shared_bandwidth_read = {
    .description = {"shared.bandwidth.read", "bandwidth of reading shared memory, all SMs together",
                    PROFILE_STANDARD},
    .metrics = {"shared.bandwidth.read"},
    .run = run_shared,
};
