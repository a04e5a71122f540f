/* Makes a measure from repetitions of one figure, or from the reason why there is none. */
#include "probes/method/repeats.h"

#include <errno.h>
#include <math.h>

#include "cpd/cpd.h"

/* Confidence lost per unit of spread / value. */
static const double CONFIDENCE_SLOPE = 10;

/* Repetitions whose half range is a larger share than this are unstable. */
static const double UNSTABLE = 0.02;

double repeats_half_range(const double *values, size_t count)
{
    return (cpd_quantile(values, count, 1) - cpd_quantile(values, count, 0)) / 2;
}

struct measure *repeats_add(struct probe_context *context, const char *metric, const double *values,
                            size_t count, const char *unit, const char *method)
{
    struct measure *m =
        measures_add(context->measures, metric, cpd_median(values, count), unit, method);
    m->spread = repeats_half_range(values, count);
    m->n = (uint32_t)count;
    m->confidence = repeats_confidence(m->value, m->spread);
    return m;
}

const char repeats_confirming[] = "confirming";

void repeats_confirm(struct probe_context *context, const char *metric, double value,
                     const char *unit, uint32_t n)
{
    struct measure *m = measures_add(context->measures, metric, value, unit, repeats_confirming);
    m->n = n;
}

void repeats_unsupported(struct probe_context *context, const char *metric, const char *reason)
{
    measures_add_missing(context->measures, metric, MEASURE_UNSUPPORTED, reason);
}

int repeats_end(struct probe_context *context, const char *metric, int rc, const struct err *own,
                struct err *err)
{
    if (rc == -ENOTSUP) {
        repeats_unsupported(context, metric, own->text);
        return 0;
    }
    return rc ? err_set(err, rc, "%s", own->text) : 0;
}

double repeats_confidence(double value, double spread)
{
    return value != 0 ? fmax(0.5, 1 - CONFIDENCE_SLOPE * fabs(spread / value)) : 0.5;
}

void repeats_settle(struct measure *measure)
{
    measure->confidence = repeats_confidence(measure->value, measure->spread);
    if (fabs(measure->spread) <= UNSTABLE * fabs(measure->value))
        return;
    measure_set_status(measure, MEASURE_NOISY, "the repetitions differ by more than 2 %");
}
