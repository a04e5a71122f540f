/* What stays resident in L2: its capacity and line. */
#ifndef GPUMEMTOPO_PROBES_L2_L2_CAPACITY_H
#define GPUMEMTOPO_PROBES_L2_L2_CAPACITY_H

#include "probes/probe.h"

/* Stages L2_CAPACITY and L2_LINE. */
int l2_measure_capacity(struct probe_context *context, struct l2_study *l2, struct err *err);
int l2_measure_line(struct probe_context *context, struct l2_study *l2, struct err *err);

/* Counts the tags, or what stays resident, once more; out: the line, or the size, that follows. */
int l2_confirm_line(struct probe_context *context, const struct l2_study *l2,
                    uint64_t *out_line_bytes, struct err *err);
int l2_confirm_capacity(struct probe_context *context, const struct l2_study *l2, double *out_bytes,
                        struct err *err);

#endif
