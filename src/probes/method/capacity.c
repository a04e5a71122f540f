/* The capacity of a cache: how much stays resident of an array that is touched once per line. */
#include "probes/method/capacity.h"

#include <math.h>

#include "probes/method/line.h"
#include "probes/method/line_fit.h"
#include "probes/method/resident.h"

/* A count of lines whose standard error is below this is rounded. */
static const double SNAP_LINES = 0.12;

/* Wanted standard errors, as shares of the value: well within the 2 % by which a size may be
 * wrong. */
static const double SIZE_PRECISION = 0.003, QUICK_PRECISION = 0.0056;

/* How much stays resident of an array that is touched once per line, or more often if the line is
 * not certain. */
static int measure_capacity(struct probe_context *context, const struct study *study,
                            double precision, double *out_bytes, double *out_error, uint32_t *out_n,
                            struct err *err)
{
    double touch = (double)study->touch_bytes, fetch = (double)study->fetch_bytes;
    double line = (double)(study->line_bytes ? study->line_bytes : study->guess_bytes);
    struct line_observation o = {.units = study->touch_bytes / study->fetch_bytes};
    double elements = RESIDENT_OVERSIZE * study->resident_bytes / touch;
    if (!study->line_bytes)
        elements = resident_whole(elements, o.units);
    int rc = resident_overflow(context, study, elements, study->touch_bytes, line / touch,
                               precision, &o.layout, &o.share, err);
    if (rc)
        return rc;
    double bytes = line_span_of(&o, (struct line_hypothesis){line / fetch, false}, 0).units * fetch;
    double error = o.share.error * (double)o.layout.elements;
    /* No cache holds half a line: a count of lines that is this certain is a whole number. */
    bool snap = error < SNAP_LINES && study->touch_bytes == study->line_bytes;
    *out_bytes = snap ? round(bytes / line) * line : bytes;
    *out_error = error * touch;
    *out_n = o.share.n;
    return 0;
}

int capacity_measure(struct probe_context *context, struct study *study, struct err *err)
{
    int rc = line_measure(context, study, err);
    if (rc)
        return rc;
    return measure_capacity(context, study, SIZE_PRECISION, &study->resident_bytes,
                            &study->resident_error, &study->resident_n, err);
}

int capacity_measure_again(struct probe_context *context, const struct study *study,
                           double precision, double *out_bytes, double *out_error, struct err *err)
{
    uint32_t n;
    return measure_capacity(context, study, precision, out_bytes, out_error, &n, err);
}

int capacity_measure_quick(struct probe_context *context, struct study *study, double *out_bytes,
                           double *out_error, struct err *err)
{
    int rc = study->touch_bytes ? 0 : line_guess(context, study, err);
    uint32_t n;
    if (rc)
        return rc;
    return measure_capacity(context, study, QUICK_PRECISION, out_bytes, out_error, &n, err);
}
