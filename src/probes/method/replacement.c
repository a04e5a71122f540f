/* Which line of a set goes when a new one comes.
 *
 * If every line of an overflowing set misses in every pass, the policy is LRU or FIFO: using some
 * lines again before a new one comes tells them apart. Otherwise the order of the misses says which
 * way each of them took. Where no set can be loaded by itself, all sets are looked at together. */
#include "probes/method/replacement.h"

#include <stdio.h>
#include <stdlib.h>

#include "probes/method/chase.h"
#include "probes/method/miss_counts.h"
#include "probes/method/replacement_kinds.h"

/* Share of misses of an overflowing set under LRU and FIFO: all, less what noise hides. */
static const double ALL_MISS = 0.97;

/* Share of loads that constant L1 may serve while L1.5 is looked at. */
static const double SERVED_BEFORE = 0.01;

const char *replacement_name(enum replacement_policy policy)
{
    static const char *const names[] = {
        [REPLACEMENT_UNKNOWN] = "unknown", [REPLACEMENT_NONE] = "direct_mapped",
        [REPLACEMENT_LRU] = "lru",         [REPLACEMENT_FIFO] = "fifo",
        [REPLACEMENT_RANDOM] = "random",   [REPLACEMENT_BIASED] = "biased",
        [REPLACEMENT_NOT_LRU] = "not_lru",
    };
    return names[policy];
}

/* Constant L1.5 is looked at past L1. If L1 serves some of the loads, L1.5 does not see them. */
static int served_before(struct probe_context *context, const struct study *study,
                         const struct cache_sets *sets, double *out_share, struct err *err)
{
    struct device_job job = miss_counts_job(study);
    struct device_answer *answers;
    const struct device_array array = {.path = study->path,
                                       .size_bytes = (sets->fits + 1) * study->line_bytes,
                                       .stride_bytes = study->line_bytes};
    *out_share = 0;
    if (study->id != STUDY_CONSTANT_L15)
        return 0;
    const struct study *before = &context->studies[STUDY_CONSTANT_L1];
    chase_add(&job, DEVICE_WARM, &array, 2 * (sets->fits + 1));
    chase_add(&job, DEVICE_CHASE, &array, 16 * (sets->fits + 1));
    int rc = chase_run(context, &job, 1, 1, &answers, err);
    if (rc)
        return rc;
    *out_share = 1 - chase_share_above(&answers[0].samples[0], before->threshold);
    device_answers_fini(answers, 1);
    free(answers);
    return 0;
}

int replacement_measure(struct probe_context *context, const struct study *study,
                        const struct cache_sets *sets, struct replacement *out_replacement,
                        struct err *err)
{
    struct replacement r = {.n = sets->loads};
    double served;
    int rc = served_before(context, study, sets, &served, err);
    if (rc)
        return rc;
    if (served > SERVED_BEFORE) {
        snprintf(r.reason, sizeof r.reason, "constant L1 serves %.0f %% of the loads itself",
                 100 * served);
    } else if (sets->early) {
        r.policy = REPLACEMENT_NOT_LRU;
        snprintf(r.reason, sizeof r.reason, "lines are evicted although their set has room");
    } else if (sets->ways == 1) {
        r.policy = REPLACEMENT_NONE;
    } else if (sets->scattered) {
        rc = replacement_by_scatter(context, study, sets, &r, err);
    } else {
        rc = sets->miss_share > ALL_MISS ? replacement_by_reuse(context, study, sets, &r, err)
                                         : replacement_by_order(context, study, sets, &r, err);
    }
    if (!rc)
        *out_replacement = r;
    return rc;
}
