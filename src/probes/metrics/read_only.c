/* The probes of the read-only cache: global loads with .nc. */
#include "probes/method/cache_report.h"

static int run_line(struct probe_context *context, struct err *err)
{
    return cache_report_line(context, STUDY_READ_ONLY, err);
}

static int run_size(struct probe_context *context, struct err *err)
{
    return cache_report_size(context, STUDY_READ_ONLY, err);
}

static int run_latency(struct probe_context *context, struct err *err)
{
    return cache_report_latency(context, STUDY_READ_ONLY, err);
}

const struct probe probe_read_only_line = {
    .description = {"read_only.line", "fetch unit and line of the read-only cache",
                    PROFILE_STANDARD},
    .metrics = {"read_only.fetch", "read_only.line"},
    .run = run_line,
};

const struct probe probe_read_only_size = {
    .description = {"read_only.size", "size and reach of the read-only cache", PROFILE_STANDARD},
    .metrics = {"read_only.size", "read_only.reach"},
    .run = run_size,
};

const struct probe probe_read_only_latency = {
    .description = {"read_only.latency", "latency of a hit in the read-only cache",
                    PROFILE_STANDARD},
    .metrics = {"read_only.latency", "read_only.miss_penalty"},
    .run = run_latency,
};
