/* Repetitions of one figure as a measure, and what is missing with its reason. */
#include "probes/repeats.h"

#include <errno.h>

#include "cpd/cpd.h"

static const double CONFIDENCE = 0.99;

double repeats_half_range(const double *values, size_t count)
{
    return (cpd_quantile(values, count, 1) - cpd_quantile(values, count, 0)) / 2;
}

struct measure *repeats_add(struct probe_context *context, const char *metric, const double *values,
                            size_t count, const char *unit, const char *method)
{
    struct measure *m =
        measures_add(context->measures, metric, cpd_median(values, count), unit, method);
    if (m) {
        m->spread = repeats_half_range(values, count);
        m->n = (uint32_t)count;
        m->confidence = CONFIDENCE;
    }
    return m;
}

int repeats_unsupported(struct probe_context *context, const char *metric, const char *reason,
                        struct err *err)
{
    bool added = measures_add_missing(context->measures, metric, MEASURE_UNSUPPORTED, reason);
    return added ? 0 : err_no_memory(err);
}

int repeats_end(struct probe_context *context, const char *metric, int rc, const struct err *own,
                struct err *err)
{
    if (rc == -ENOTSUP)
        return repeats_unsupported(context, metric, own->text, err);
    return rc ? err_set(err, rc, "%s", own->text) : 0;
}
