/* The probes of the L1 data cache: global loads with .ca. */
#include <math.h>

#include "probes/method/cache_report.h"

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

/* Whether global loads are cached in L1 at all: some Kepler and Maxwell GPUs do not (thesis 4.2.1).
 */
static int run_global(struct probe_context *context, struct err *err)
{
    int rc = study_reach(context, STUDY_L1_DATA, STUDY_LEVEL, err);
    if (rc)
        return rc;
    const struct study *study = &context->studies[STUDY_L1_DATA];
    const char *word = study->supported ? "cached" : "not_cached";
    struct measure *m =
        measures_add_words(context->measures, "l1_data.global_loads", &word, 1, ".ca against .cg");
    if (!m)
        return err_no_memory(err);
    m->n = 1;
    m->confidence = NAN;
    return 0;
}

const struct probe probe_l1_data_global = {
    .description = {"l1_data.global", "whether global loads are cached in L1", PROFILE_QUICK},
    .metrics = {"l1_data.global_loads"},
    .run = run_global,
};

const struct probe probe_l1_data_line = {
    .description = {"l1_data.line", "fetch unit and line of the L1 data cache", PROFILE_STANDARD},
    .metrics = {"l1_data.fetch", "l1_data.line"},
    .again = true,
    .run = run_line,
};

const struct probe probe_l1_data_size = {
    .description = {"l1_data.size", "size and reach of the L1 data cache", PROFILE_QUICK},
    .metrics = {"l1_data.size", "l1_data.reach"},
    .again = true,
    .within = 0.03,
    .run = run_size,
};

const struct probe probe_l1_data_latency = {
    .description = {"l1_data.latency", "latency of a hit in the L1 data cache", PROFILE_QUICK},
    .metrics = {"l1_data.latency", "l1_data.miss_penalty"},
    .again = true,
    .within = 0.02,
    .run = run_latency,
};
