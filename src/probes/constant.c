/* The probes of the constant caches: L1 and, behind it, L1.5. */
#include "probes/cache.h"

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

/* Where SM 0 has loaded something, an SM that shares its L1.5 finds it there at first touch. */
static int run_l15_sms(struct probe_context *context, struct err *err)
{
    const struct study *study = &context->studies[STUDY_CONSTANT_L15];
    int rc = study_reach(context, STUDY_CONSTANT_L15, STUDY_LEVEL, err);
    if (rc)
        return rc;
    if (!study->supported || !study->neighbour_count) {
        struct measure *none =
            measures_add_missing(context->measures, "constant_l15.sms", MEASURE_UNSUPPORTED,
                                 study->supported ? "only one SM" : "no constant cache behind L1");
        return none ? 0 : err_no_memory(err);
    }
    uint32_t together = 1;
    for (uint32_t i = 1; i < study->neighbour_count; i++)
        together += study->neighbour_cycles[i] < study->threshold;
    struct measure *m = measures_add(context->measures, "constant_l15.sms", together, "",
                                     "first touch after another SM's");
    if (!m)
        return err_no_memory(err);
    m->n = study->neighbour_count - 1;
    m->confidence = 0.99;
    return 0;
}

const struct probe probe_constant_l15_sms = {
    .description = {"constant_l15.sms", "how many SMs share a constant L1.5", PROFILE_STANDARD},
    .metrics = {"constant_l15.sms"},
    .run = run_l15_sms,
};
