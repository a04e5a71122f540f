/* The probes of bandwidth: main memory and L2, and L1 data and shared memory of all SMs together.
 */
#include "base/mem.h"
#include "probes/method/repeats.h"
#include "probes/streams/bandwidth.h"

enum {
    L2_FACTOR = 32, /* main memory: at most 3 % of the footprint can stay in L2 */
    L2_DIVISOR = 4, /* L2: half of what one of two parts holds */
    L2_TICKET_PER_CENT =
        40, /* by ticket: more chunks, and still less than one of two parts holds */
    UNIT_BYTES = 4096,
};

static const uint64_t MAIN_MIN_BYTES = UINT64_C(64) << 20;

static uint64_t main_stream_bytes(const struct device_limits *limits)
{
    uint64_t bytes = L2_FACTOR * limits->l2_reported_bytes;
    if (bytes < MAIN_MIN_BYTES)
        bytes = MAIN_MIN_BYTES;
    return limits->global_bytes && bytes > limits->global_bytes ? limits->global_bytes : bytes;
}

static int report_main(struct probe_context *context, const char *metric,
                       enum device_stream_kind kind, struct err *err)
{
    uint64_t bytes = main_stream_bytes(device_limits(context->device));
    const struct bandwidth_task task = {.metric = metric,
                                        .kind = kind,
                                        .path = DEVICE_GLOBAL_CG,
                                        .footprint_bytes = bytes / UNIT_BYTES * UNIT_BYTES};
    return bandwidth_report(context, &task, err);
}

static int report_l2(struct probe_context *context, const char *metric,
                     enum device_stream_kind kind, struct err *err)
{
    uint64_t bytes = device_limits(context->device)->l2_reported_bytes / L2_DIVISOR;
    const struct bandwidth_task task = {.metric = metric,
                                        .kind = kind,
                                        .path = DEVICE_GLOBAL_CG,
                                        .footprint_bytes = bytes / UNIT_BYTES * UNIT_BYTES};
    if (!task.footprint_bytes) {
        repeats_unsupported(context, metric, "the driver reports no L2");
        return 0;
    }
    return bandwidth_report(context, &task, err);
}

static int run_main_read(struct probe_context *context, struct err *err)
{
    return report_main(context, "main.bandwidth.read", DEVICE_STREAM_READ, err);
}

static int run_main_write(struct probe_context *context, struct err *err)
{
    return report_main(context, "main.bandwidth.write", DEVICE_STREAM_WRITE, err);
}

static int run_main_copy(struct probe_context *context, struct err *err)
{
    return report_main(context, "main.bandwidth.copy", DEVICE_STREAM_COPY, err);
}

static int run_l2_read(struct probe_context *context, struct err *err)
{
    return report_l2(context, "l2.bandwidth.read", DEVICE_STREAM_READ, err);
}

static int run_l2_write(struct probe_context *context, struct err *err)
{
    return report_l2(context, "l2.bandwidth.write", DEVICE_STREAM_WRITE, err);
}

const struct probe probe_main_bandwidth_read = {
    .description = {"main.bandwidth.read", "bandwidth of reading main memory", PROFILE_QUICK},
    .metrics = {"main.bandwidth.read"},
    .again = true,
    .within = 0.05,
    .run = run_main_read,
};

const struct probe probe_main_bandwidth_write = {
    .description = {"main.bandwidth.write", "bandwidth of writing main memory", PROFILE_QUICK},
    .metrics = {"main.bandwidth.write"},
    .again = true,
    .within = 0.05,
    .run = run_main_write,
};

const struct probe probe_main_bandwidth_copy = {
    .description = {"main.bandwidth.copy", "bandwidth of copying in main memory, both ways counted",
                    PROFILE_STANDARD},
    .metrics = {"main.bandwidth.copy"},
    .run = run_main_copy,
};

const struct probe probe_l2_bandwidth_read = {
    .description = {"l2.bandwidth.read", "bandwidth of reading L2", PROFILE_QUICK},
    .metrics = {"l2.bandwidth.read"},
    .again = true,
    .within = 0.05,
    .run = run_l2_read,
};

const struct probe probe_l2_bandwidth_write = {
    .description = {"l2.bandwidth.write", "bandwidth of writing L2", PROFILE_QUICK},
    .metrics = {"l2.bandwidth.write"},
    .again = true,
    .within = 0.05,
    .run = run_l2_write,
};

/* The same by ticket: what the memory delivers when no SM waits for another one. */
static int report_tickets(struct probe_context *context, const char *const *metrics,
                          uint64_t footprint_bytes, struct err *err)
{
    static const enum device_stream_kind kinds[] = {DEVICE_STREAM_READ, DEVICE_STREAM_WRITE,
                                                    DEVICE_STREAM_COPY};
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        const struct bandwidth_task task = {.metric = metrics[i],
                                            .kind = kinds[i],
                                            .path = DEVICE_GLOBAL_CG,
                                            .footprint_bytes = footprint_bytes,
                                            .ticket = true};
        int rc = bandwidth_report(context, &task, err);
        if (rc)
            return rc;
    }
    return 0;
}

static int run_main_tickets(struct probe_context *context, struct err *err)
{
    return report_tickets(context, probe_main_bandwidth_ticket.metrics,
                          main_stream_bytes(device_limits(context->device)), err);
}

static int run_l2_tickets(struct probe_context *context, struct err *err)
{
    const char *const *metrics = probe_l2_bandwidth_ticket.metrics;
    uint64_t bytes = device_limits(context->device)->l2_reported_bytes / 100 * L2_TICKET_PER_CENT;
    if (bytes)
        return report_tickets(context, metrics, bytes, err);
    for (size_t i = 0; metrics[i]; i++)
        repeats_unsupported(context, metrics[i], "the driver reports no L2");
    return 0;
}

const struct probe probe_main_bandwidth_ticket = {
    .description = {"main.bandwidth_ticket",
                    "bandwidth of main memory if no SM waits for another one", PROFILE_STANDARD},
    .metrics = {"main.bandwidth_ticket.read", "main.bandwidth_ticket.write",
                "main.bandwidth_ticket.copy"},
    .run = run_main_tickets,
};

const struct probe probe_l2_bandwidth_ticket = {
    .description = {"l2.bandwidth_ticket", "bandwidth of L2 if no SM waits for another one",
                    PROFILE_STANDARD},
    .metrics = {"l2.bandwidth_ticket.read", "l2.bandwidth_ticket.write",
                "l2.bandwidth_ticket.copy"},
    .run = run_l2_tickets,
};

/* The probes of the bandwidth of L1 data and shared memory, summed over all SMs. */

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

static int bandwidth_run_l1_data(struct probe_context *context, struct err *err)
{
    struct bandwidth_task task = {.metric = "l1_data.bandwidth.read",
                                  .kind = DEVICE_STREAM_READ,
                                  .path = DEVICE_GLOBAL_CA,
                                  .footprint_bytes = SMALL_BYTES};
    double size_bytes;
    int rc = study_reach(context, STUDY_L1_DATA, STUDY_LEVEL, err);
    if (rc)
        return rc;
    if (!context->studies[STUDY_L1_DATA].supported) {
        repeats_unsupported(context, task.metric, "global loads are not cached in L1");
        return 0;
    }
    if (measures_value(context->measures, "l1_data.size", &size_bytes))
        task.footprint_bytes = power_of_two_within((uint64_t)(size_bytes / 2));
    return bandwidth_report(context, &task, err);
}

static int bandwidth_run_shared(struct probe_context *context, struct err *err)
{
    uint64_t bytes = device_limits(context->device)->shared_array_bytes;
    const struct bandwidth_task task = {.metric = "shared.bandwidth.read",
                                        .kind = DEVICE_STREAM_READ,
                                        .path = DEVICE_SHARED,
                                        .footprint_bytes = power_of_two_within(bytes)};
    if (!bytes) {
        repeats_unsupported(context, task.metric, "a block has no shared memory");
        return 0;
    }
    return bandwidth_report(context, &task, err);
}

const struct probe probe_l1_data_bandwidth_read = {
    .description = {"l1_data.bandwidth.read", "bandwidth of reading L1 data, all SMs together",
                    PROFILE_STANDARD},
    .depends = {"l1_data.size"},
    .metrics = {"l1_data.bandwidth.read"},
    .run = bandwidth_run_l1_data,
};

const struct probe probe_shared_bandwidth_read = {
    .description = {"shared.bandwidth.read", "bandwidth of reading shared memory, all SMs together",
                    PROFILE_STANDARD},
    .metrics = {"shared.bandwidth.read"},
    .run = bandwidth_run_shared,
};
