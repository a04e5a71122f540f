/* What can be told of the structure of L2: index and policy. */
#include <math.h>
#include <stdio.h>

#include "base/mem.h"
#include "probes/l2/l2_index.h"
#include "probes/l2/l2_policy.h"

enum { REASON_MAX = 120 };

/* Both rest on few patterns: they say what kind it is, not each detail. */
static const double CONFIDENCE = 0.95, DOUBTED = 0.5;

static const char *const METRICS[] = {"l2.index", "l2.policy"};

static int report_missing(struct probe_context *context, const char *metric, const char *reason,
                          struct err *err)
{
    return measures_add_missing(context->measures, metric, MEASURE_FAILED, reason)
               ? 0
               : err_no_memory(err);
}

/* The share that stays depends on the capacity: if that is in doubt, so is what follows. */
static int settle(struct probe_context *context, struct measure *m, uint32_t n, struct err *err)
{
    const struct measure *size = measures_get(context->measures, "l2.size");
    bool sure = size && size->status == MEASURE_OK;
    if (!m)
        return err_no_memory(err);
    m->n = n;
    m->confidence = sure ? CONFIDENCE : DOUBTED;
    return !sure && measure_set_status(m, MEASURE_NOISY, "the size of L2 is not certain")
               ? err_no_memory(err)
               : 0;
}

static int report_index(struct probe_context *context, struct err *err)
{
    struct l2_index index;
    int rc = l2_measure_index(context, &context->l2, &index, err);
    if (rc)
        return rc;
    if (index.kind == L2_INDEX_UNKNOWN)
        return report_missing(context, "l2.index",
                              "strides that could tell do not stay apart from "
                              "those that are their control",
                              err);
    const char *word = index.kind == L2_INDEX_REGULAR ? "regular" : "not_by_bits";
    return settle(context,
                  measures_add_words(context->measures, "l2.index", &word, 1,
                                     "few lines a power of two apart"),
                  index.n, err);
}

/* What is kept as under LRU is kept by nothing else. What is kept as under no known policy may come
 * from sets of few ways, which fill unevenly; and parts that keep lines twice have less room than
 * their size, so that LRU loses what FIFO would. */
static bool may_be_lru(const struct probe_context *context, const struct l2_policy *policy)
{
    const struct measure *parts = measures_get(context->measures, "l2.parts");
    bool one = parts && parts->status == MEASURE_OK && parts->value == 1;
    return policy->policy == REPLACEMENT_NOT_LRU || (policy->policy != REPLACEMENT_LRU && !one);
}

static int doubt_policy(struct measure *m, const struct l2_policy *policy, struct err *err)
{
    char reason[REASON_MAX];
    snprintf(reason, sizeof reason,
             "%.0f, %.0f and %.0f %% of an area stay: not LRU, or few ways, or lines kept twice",
             100 * policy->kept[L2_POLICY_PLAIN], 100 * policy->kept[L2_POLICY_AGAIN],
             100 * policy->kept[L2_POLICY_OFTEN]);
    m->confidence = DOUBTED;
    return measure_set_status(m, MEASURE_NOISY, reason) ? err_no_memory(err) : 0;
}

static int report_policy(struct probe_context *context, struct err *err)
{
    struct l2_policy policy;
    int rc = l2_measure_policy(context, &context->l2, &policy, err);
    if (rc)
        return rc;
    const char *word = replacement_name(policy.policy);
    struct measure *m = measures_add_words(context->measures, "l2.policy", &word, 1,
                                           "what is kept of an area, used again or not");
    rc = settle(context, m, policy.timed_loads, err);
    return rc || !may_be_lru(context, &policy) ? rc : doubt_policy(m, &policy, err);
}

static int run_l2_structure(struct probe_context *context, struct err *err)
{
    const struct l2_study *l2 = &context->l2;
    int rc = l2_reach(context, L2_LINE, err);
    if (rc)
        return rc;
    if (l2->unbounded || !l2->line_bytes) {
        for (size_t i = 0; i < COUNT_OF(METRICS) && !rc; i++)
            rc = report_missing(
                context, METRICS[i],
                l2->unbounded ? "L2 could not be overfilled" : "the line is not known", err);
        return rc;
    }
    rc = report_index(context, err);
    return rc ? rc : report_policy(context, err);
}

const struct probe probe_structure_l2 = {
    .description = {"structure.l2", "index and policy of L2", PROFILE_FULL},
    .depends = {"l2.size"},
    .metrics = {"l2.index", "l2.policy"},
    .run = run_l2_structure,
};
