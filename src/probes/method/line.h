/* The line of a cache: the largest stride at which the capacity, counted as span, does not grow
 * yet. */
#ifndef GPUMEMTOPO_PROBES_METHOD_LINE_H
#define GPUMEMTOPO_PROBES_METHOD_LINE_H

#include "probes/probe.h"

/* Below this confidence the line is reported as noisy. */
extern const double LINE_SURE;

/* At stage STUDY_REGION: sets line_bytes, line_confidence, touch_bytes, the contrast that decides,
 * and a first value of resident_bytes. -ENODATA when nothing stays resident. */
int line_measure(struct probe_context *context, struct study *study, struct err *err);

/* At stage STUDY_REGION, cheaply: sets guess_bytes and touch_bytes to four, eight or two fetch
 * units if a check confirms it, else touch_bytes to one; and a first value of resident_bytes. */
int line_guess(struct probe_context *context, struct study *study, struct err *err);

/* Measures the deciding contrast once more: the line if that confirms it, else another one. */
int line_confirm(struct probe_context *context, const struct study *study, uint64_t *out_line_bytes,
                 uint32_t *out_n, struct err *err);

#endif
