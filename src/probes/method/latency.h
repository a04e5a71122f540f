/* Latency of a load: from long dependent chases, without timer and loop overhead, or from single
 * loads if these scatter too much. */
#ifndef GPUMEMTOPO_PROBES_METHOD_LATENCY_H
#define GPUMEMTOPO_PROBES_METHOD_LATENCY_H

#include "probes/probe.h"

/* Adds the metric: cycles per load of a chase through an array that is warm after one pass. study:
 * how single loads of this path scatter (stage STUDY_LEVEL); chases are long if they are quiet,
 * short and many if they are not. Noisy if the repetitions, or chases and single loads,
 * disagree. */
int latency_report(struct probe_context *context, const char *metric,
                   const struct device_array *array, const struct study *study, struct err *err);

/* True when single loads of about this many cycles, timer included, scatter so much that a sum of
 * them tells less than each one by itself. */
bool latency_scatters(const struct probe_context *context, const struct study *study,
                      double timed_cycles);

#endif
