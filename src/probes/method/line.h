/* The line of a cache: the largest stride at which capacity counted as span does not yet grow. */
#ifndef GPUMEMTOPO_PROBES_METHOD_LINE_H
#define GPUMEMTOPO_PROBES_METHOD_LINE_H

#include "probes/probe.h"

/* Below this confidence the line is reported as noisy. */
extern const double LINE_SURE;

/* At stage STUDY_REGION: line_bytes, line_confidence, touch_bytes, the contrast that decides, and a
 * first figure of resident_bytes. -ENODATA when nothing stays resident. */
int line_measure(struct probe_context *context, struct study *study, struct err *err);

/* At stage STUDY_REGION, cheaply: guess_bytes and touch_bytes of four, eight or two fetch units
 * where a check of it holds, else one; and a first figure of resident_bytes. */
int line_guess(struct probe_context *context, struct study *study, struct err *err);

/* The deciding contrast once more: the line where that confirms it, else another one. */
int line_confirm(struct probe_context *context, const struct study *study, uint64_t *out_line_bytes,
                 uint32_t *out_n, struct err *err);

#endif
