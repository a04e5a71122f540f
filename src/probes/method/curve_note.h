/* The sweep of a memory, kept with its size in the profile `full`. */
#ifndef GPUMEMTOPO_PROBES_METHOD_CURVE_NOTE_H
#define GPUMEMTOPO_PROBES_METHOD_CURVE_NOTE_H

#include "inventory/curve.h"
#include "probes/probe.h"

/* Sweeps around a size that the study (for L2: the probe l2.size) found before. */
int curve_sweep_cache(struct probe_context *context, const struct study *study,
                      struct curve *out_curve, struct err *err);
int curve_sweep_l2(struct probe_context *context, struct curve *out_curve, struct err *err);

/* Sweeps and adds the note `curve` to an existing metric, in the profile `full` only. */
int curve_note_cache(struct probe_context *context, const struct study *study, struct err *err);
int curve_note_l2(struct probe_context *context, struct err *err);

#endif
