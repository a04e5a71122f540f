/* The probes of the L1 data cache: global loads with .ca. */
#include "probes/cache.h"

static int run_line(struct probe_context *context, struct err *err)
{
    return cache_report_line(context, STUDY_L1_DATA, err);
}

static int run_size(struct probe_context *context, struct err *err)
{
    return cache_report_size(context, STUDY_L1_DATA, err);
}

static int run_latency(struct probe_context *context, struct err *err)
{
    return cache_report_latency(context, STUDY_L1_DATA, err);
}

const struct probe probe_l1_data_line = {
    .description = {"l1_data.line", "fetch unit and line of the L1 data cache", PROFILE_STANDARD},
    .metrics = {"l1_data.fetch", "l1_data.line"},
    .run = run_line,
};

const struct probe probe_l1_data_size = {
    .description = {"l1_data.size", "size and reach of the L1 data cache", PROFILE_QUICK},
    .metrics = {"l1_data.size", "l1_data.reach"},
    .run = run_size,
};

const struct probe probe_l1_data_latency = {
    .description = {"l1_data.latency", "latency of a hit in the L1 data cache", PROFILE_QUICK},
    .metrics = {"l1_data.latency"},
    .run = run_latency,
};
