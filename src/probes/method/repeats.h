/* Makes a measure from repetitions of one figure, or from the reason why there is none. */
#ifndef GPUMEMTOPO_PROBES_METHOD_REPEATS_H
#define GPUMEMTOPO_PROBES_METHOD_REPEATS_H

#include <stddef.h>

#include "probes/probe.h"

/* Half of the distance between the smallest and the largest value. */
double repeats_half_range(const double *values, size_t count);

/* Adds the median, with half the range as spread. The result is valid until the next measure is
 * added. */
struct measure *repeats_add(struct probe_context *context, const char *metric, const double *values,
                            size_t count, const char *unit, const char *method);

/* In a further round: adds the value of a reduced measurement. It only confirms: the value of the
 * first round stays, with a spread that covers both. */
void repeats_confirm(struct probe_context *context, const char *metric, double value,
                     const char *unit, uint32_t n);

extern const char repeats_confirming[]; /* the method of such a measure */

/* The confidence in a median, from the spread of its repetitions: 1 without spread, 0.9 at one per
 * cent, never below 0.5. */
double repeats_confidence(double value, double spread);

/* Sets the measure's confidence from its spread, and noisy if that is above two per cent. */
void repeats_settle(struct measure *measure);

/* Adds the metric as unsupported. */
void repeats_unsupported(struct probe_context *context, const char *metric, const char *reason);

/* Ends a probe whose device call returned rc with the text in `own`. -ENOTSUP becomes an
 * unsupported metric; any other error is passed on to the caller. */
int repeats_end(struct probe_context *context, const char *metric, int rc, const struct err *own,
                struct err *err);

#endif
