/* The capacity of a cache by its resident share, whatever its replacement policy. */
#ifndef GPUMEMTOPO_PROBES_METHOD_CAPACITY_H
#define GPUMEMTOPO_PROBES_METHOD_CAPACITY_H

#include "probes/probe.h"

/* Stage STUDY_RESIDENT: resident_bytes, line_bytes and touch_bytes of the study. */
int capacity_measure(struct probe_context *context, struct study *study, struct err *err);

/* Measures the capacity once more, with the wanted standard error as a share. touch_bytes and
 * resident_bytes must be known. */
int capacity_measure_again(struct probe_context *context, const struct study *study,
                           double precision, double *out_bytes, double *out_error, struct err *err);

/* Measures only the capacity, at stage STUDY_REGION, with a standard error of about one per
 * cent. */
int capacity_measure_quick(struct probe_context *context, struct study *study, double *out_bytes,
                           double *out_error, struct err *err);

#endif
