/* Repetitions of one figure as a measure, and what is missing with its reason. */
#ifndef GPUMEMTOPO_PROBES_METHOD_REPEATS_H
#define GPUMEMTOPO_PROBES_METHOD_REPEATS_H

#include <stddef.h>

#include "probes/probe.h"

/* Half of the distance between the smallest and the largest value. */
double repeats_half_range(const double *values, size_t count);

/* Adds the median with half the range as its spread. NULL when out of memory; valid until the next
 * measure is added. */
struct measure *repeats_add(struct probe_context *context, const char *metric, const double *values,
                            size_t count, const char *unit, const char *method);

/* In a further round over the run: adds a value by a reduced measurement. It only confirms: the
 * first round's stands, with a spread that covers both. 0 or -ENOMEM. */
int repeats_confirm(struct probe_context *context, const char *metric, double value,
                    const char *unit, uint32_t n, struct err *err);
extern const char repeats_confirming[]; /* the method of such a measure */

/* What a spread of repetitions says of their median: 1 for none, 0.9 at one per cent of it, never
 * below 0.5. */
double repeats_confidence(double value, double spread);

/* Sets the measure's confidence from its spread, and noisy where that is above two per cent. 0 or
 * -ENOMEM. */
int repeats_settle(struct measure *measure);

/* Adds the metric as unsupported. 0 or -ENOMEM. */
int repeats_unsupported(struct probe_context *context, const char *metric, const char *reason,
                        struct err *err);

/* Ends a probe whose device call returned rc with the text in `own`: what the device has not
 * (-ENOTSUP) becomes an unsupported metric, another error goes on to the caller. */
int repeats_end(struct probe_context *context, const char *metric, int rc, const struct err *own,
                struct err *err);

#endif
