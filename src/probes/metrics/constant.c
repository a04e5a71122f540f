/* The probes of the constant caches: L1 and, behind it, L1.5. */
#include "probes/method/cache_report.h"

static int run_l1_line(struct probe_context *context, struct err *err)
{
    return cache_report_line(context, STUDY_CONSTANT_L1, err);
}

static int run_l1_size(struct probe_context *context, struct err *err)
{
    return cache_report_size(context, STUDY_CONSTANT_L1, err);
}

static int run_l1_latency(struct probe_context *context, struct err *err)
{
    return cache_report_latency(context, STUDY_CONSTANT_L1, err);
}

const struct probe probe_constant_l1_line = {
    .description = {"constant_l1.line", "fetch unit and line of the constant L1 cache",
                    PROFILE_STANDARD},
    .metrics = {"constant_l1.fetch", "constant_l1.line"},
    .run = run_l1_line,
};

const struct probe probe_constant_l1_size = {
    .description = {"constant_l1.size", "size and reach of the constant L1 cache",
                    PROFILE_STANDARD},
    .metrics = {"constant_l1.size", "constant_l1.reach"},
    .run = run_l1_size,
};

const struct probe probe_constant_l1_latency = {
    .description = {"constant_l1.latency", "latency of a hit in the constant L1 cache",
                    PROFILE_STANDARD},
    .metrics = {"constant_l1.latency", "constant_l1.miss_penalty"},
    .run = run_l1_latency,
};

static int run_l15_line(struct probe_context *context, struct err *err)
{
    return cache_report_line(context, STUDY_CONSTANT_L15, err);
}

static int run_l15_size(struct probe_context *context, struct err *err)
{
    return cache_report_size(context, STUDY_CONSTANT_L15, err);
}

static int run_l15_latency(struct probe_context *context, struct err *err)
{
    return cache_report_latency(context, STUDY_CONSTANT_L15, err);
}

const struct probe probe_constant_l15_line = {
    .description = {"constant_l15.line", "fetch unit and line of the constant L1.5 cache",
                    PROFILE_STANDARD},
    .metrics = {"constant_l15.fetch", "constant_l15.line"},
    .run = run_l15_line,
};

const struct probe probe_constant_l15_size = {
    .description = {"constant_l15.size", "size and reach of the constant L1.5 cache",
                    PROFILE_STANDARD},
    .metrics = {"constant_l15.size", "constant_l15.reach"},
    .run = run_l15_size,
};

const struct probe probe_constant_l15_latency = {
    .description = {"constant_l15.latency", "latency of a hit in the constant L1.5 cache",
                    PROFILE_STANDARD},
    .metrics = {"constant_l15.latency", "constant_l15.miss_penalty"},
    .run = run_l15_latency,
};
