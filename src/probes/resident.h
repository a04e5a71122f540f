/* How much of an oversized array stays resident: capacity and line without regard to the
 * replacement policy. */
#ifndef GPUMEMTOPO_PROBES_RESIDENT_H
#define GPUMEMTOPO_PROBES_RESIDENT_H

#include "probes/probe.h"

/* Stage STUDY_RESIDENT: resident_bytes, tags and line_bytes of the study. */
int resident_measure(struct probe_context *context, struct study *study, struct err *err);

/* Capacity alone, at stage STUDY_REGION: bytes at one element per fetch unit, and the standard
 * error. */
int resident_measure_quick(struct probe_context *context, const struct study *study,
                           double *out_bytes, double *out_error, struct err *err);

#endif
