/* What is reported of the prefetch of L2. */
#include "probes/l2/l2_prefetch.h"

#include <stdio.h>

#include "base/mem.h"

enum { REASON_MAX = 160 };

static const char METHOD[] = "cold chase in ascending order, distance between misses";

static int report_missing(struct probe_context *context, const char *metric,
                          enum measure_status status, const char *reason, struct err *err)
{
    return measures_add_missing(context->measures, metric, status, reason) ? 0 : err_no_memory(err);
}

static int report_bytes(struct probe_context *context, const char *metric, uint64_t bytes,
                        bool at_least, const struct l2_prefetch *found, struct err *err)
{
    struct measure *m = measures_add(context->measures, metric, (double)bytes, "B", METHOD);
    if (!m)
        return err_no_memory(err);
    m->bound = at_least ? MEASURE_AT_LEAST : MEASURE_EXACT;
    m->n = found->n;
    m->confidence = found->agreement;
    return facts_set_int(&m->notes, "footprint", (int64_t)found->footprint_bytes)
               ? err_no_memory(err)
               : 0;
}

static int report_irregular(struct probe_context *context, const struct l2_prefetch *found,
                            struct err *err)
{
    char reason[REASON_MAX];
    snprintf(reason, sizeof reason,
             "%.0f %% of first loads in ascending order hit, but misses are not evenly apart",
             100 * found->hit_share);
    int rc = report_missing(context, "l2.prefetch", MEASURE_FAILED, reason, err);
    return rc ? rc : report_missing(context, "l2.prefetch_from", MEASURE_FAILED, reason, err);
}

static int run_prefetch(struct probe_context *context, struct err *err)
{
    struct l2_prefetch found;
    int rc = l2_reach(context, L2_FETCH, err);
    if (rc)
        return rc;
    rc = l2_measure_prefetch(context, &context->l2, &found, err);
    if (rc)
        return rc;
    if (found.kind == L2_PREFETCH_IRREGULAR)
        return report_irregular(context, &found, err);
    rc = report_bytes(context, "l2.prefetch", found.ahead_bytes, found.kind == L2_PREFETCH_BEYOND,
                      &found, err);
    if (rc)
        return rc;
    if (found.kind == L2_PREFETCH_NONE)
        return report_missing(context, "l2.prefetch_from", MEASURE_UNSUPPORTED,
                              "L2 does not prefetch from main memory", err);
    return report_bytes(context, "l2.prefetch_from", found.from_bytes, false, &found, err);
}

const struct probe probe_l2_prefetch = {
    .description = {"l2.prefetch", "prefetch from main memory into L2", PROFILE_FULL},
    .depends = {"l2.line"},
    .metrics = {"l2.prefetch", "l2.prefetch_from"},
    .run = run_prefetch,
};
