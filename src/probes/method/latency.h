/* Latency of a load: from long dependent chases, free of timer and loop overhead, or from single
 * loads where these scatter too much for that. */
#ifndef GPUMEMTOPO_PROBES_METHOD_LATENCY_H
#define GPUMEMTOPO_PROBES_METHOD_LATENCY_H

#include "probes/probe.h"

/* Adds the metric: cycles per load of a chase through an array that is warm after one pass. study:
 * how single loads of this path scatter (stage STUDY_LEVEL); chases are long where they are quiet,
 * short and many where they are not. Noisy where the repetitions, or chases and single loads, do
 * not agree. */
int latency_report(struct probe_context *context, const char *metric,
                   const struct device_array *array, const struct study *study, struct err *err);

/* Whether single loads of about so many cycles, timer included, scatter so much that a sum of them
 * tells less than each for itself. */
bool latency_scatters(const struct probe_context *context, const struct study *study,
                      double timed_cycles);

#endif
