/* The probes of the caches of an SM: L1 data (global loads with .ca), texture (linear fetches),
 * read-only (global loads with .nc), constant L1 and, behind it, L1.5. */
#include <math.h>

#include "probes/method/cache_report.h"
#include "probes/method/cache_size.h"

/* Reports whether global loads are cached in L1 at all: some Kepler and Maxwell GPUs do not cache
 * them (thesis 4.2.1). */
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

/* The probes of one cache. `small`: the smallest profile that runs those of size and latency.
 * Judged ones are measured again and must agree within these shares. */
#define CACHE(id, name, words, small, judged)                                                      \
    [id] = {                                                                                       \
        [CACHE_LINE] = {.description = {name ".line", "fetch unit and line of the " words,         \
                                        PROFILE_STANDARD},                                         \
                        .metrics = {name ".fetch", name ".line"},                                  \
                        .again = judged,                                                           \
                        .run_study = cache_report_line,                                            \
                        .study = id},                                                              \
        [CACHE_SIZE] = {.description = {name ".size", "size and reach of the " words, small},      \
                        .metrics = {name ".size", name ".reach"},                                  \
                        .again = judged,                                                           \
                        .within = judged ? 0.03 : 0,                                               \
                        .run_study = cache_size_report,                                            \
                        .study = id},                                                              \
        [CACHE_LATENCY] = {.description = {name ".latency", "latency of a hit in the " words,      \
                                           small},                                                 \
                           .metrics = {name ".latency", name ".miss_penalty"},                     \
                           .again = judged,                                                        \
                           .within = judged ? 0.02 : 0,                                            \
                           .run_study = cache_report_latency,                                      \
                           .study = id},                                                           \
    }

const struct probe probe_caches[STUDY_COUNT][CACHE_PROBES] = {
    CACHE(STUDY_L1_DATA, "l1_data", "L1 data cache", PROFILE_QUICK, true),
    CACHE(STUDY_TEXTURE, "texture", "texture cache", PROFILE_STANDARD, false),
    CACHE(STUDY_READ_ONLY, "read_only", "read-only cache", PROFILE_STANDARD, false),
    CACHE(STUDY_CONSTANT_L1, "constant_l1", "constant L1 cache", PROFILE_STANDARD, false),
    CACHE(STUDY_CONSTANT_L15, "constant_l15", "constant L1.5 cache", PROFILE_STANDARD, false),
};
