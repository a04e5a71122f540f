/* The probes of the texture cache: linear texture fetches. */
#include "probes/method/cache_report.h"

static int run_line(struct probe_context *context, struct err *err)
{
    return cache_report_line(context, STUDY_TEXTURE, err);
}

static int run_size(struct probe_context *context, struct err *err)
{
    return cache_report_size(context, STUDY_TEXTURE, err);
}

static int run_latency(struct probe_context *context, struct err *err)
{
    return cache_report_latency(context, STUDY_TEXTURE, err);
}

const struct probe probe_texture_line = {
    .description = {"texture.line", "fetch unit and line of the texture cache", PROFILE_STANDARD},
    .metrics = {"texture.fetch", "texture.line"},
    .run = run_line,
};

const struct probe probe_texture_size = {
    .description = {"texture.size", "size and reach of the texture cache", PROFILE_STANDARD},
    .metrics = {"texture.size", "texture.reach"},
    .run = run_size,
};

const struct probe probe_texture_latency = {
    .description = {"texture.latency", "latency of a hit in the texture cache", PROFILE_STANDARD},
    .metrics = {"texture.latency", "texture.miss_penalty"},
    .run = run_latency,
};
