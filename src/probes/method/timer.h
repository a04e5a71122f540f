/* How many cycles the timing of a single load adds, by path. */
#ifndef GPUMEMTOPO_PROBES_METHOD_TIMER_H
#define GPUMEMTOPO_PROBES_METHOD_TIMER_H

#include "base/err.h"
#include "device/device.h"

struct probe_context;

/* Measures it for every path, on the warm GPU. */
int timer_calibrate(struct probe_context *context, struct err *err);

/* In cycles, to be subtracted from a single load's latency. */
double timer_overhead(const struct probe_context *context, enum device_path path);

#endif
