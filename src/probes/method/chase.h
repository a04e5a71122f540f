/* Jobs as probes write them, and what their samples say. */
#ifndef GPUMEMTOPO_PROBES_METHOD_CHASE_H
#define GPUMEMTOPO_PROBES_METHOD_CHASE_H

#include <stdint.h>

#include "device/device.h"
#include "probes/probe.h"

/* An empty job of one agent on any SM. */
struct device_job chase_job(void);

/* Appends a step to a job of agent 0; the result may be adjusted. The job must have room. Arrays in
 * shared memory make the job wish for it. */
struct device_step *chase_add(struct device_job *job, enum device_step_kind kind,
                              const struct device_array *array, uint64_t loads);

/* "Load the array, then time it": one warm pass and a timed one of at least loads_min loads, in
 * whole passes. */
struct device_job chase_twice(const struct device_array *array, uint64_t loads_min);

/* Runs jobs over all SMs (at_once 0) and gives their answers, freed by device_answers_fini and
 * free(). */
int chase_run(struct probe_context *context, const struct device_job *jobs, size_t count,
              uint32_t at_once, struct device_answer **out_answers, struct err *err);

/* Of the whole timed pass: share of loads above `cycles`. */
double chase_share_above(const struct device_sample *sample, double cycles);

/* Mean of all latencies. */
double chase_mean(const struct device_sample *sample);

/* Mean of the middle half of the latencies: as deaf to spikes as the median, and steady where two
 * halves of the loads go to a near and a far part of a memory. */
double chase_middle_mean(const struct device_sample *sample);

/* What chases of `loads` loads each take without a spike, from the times of `count` of them, which
 * are sorted. Spikes only add time, so the chases without one are the lower part of all. Of that
 * part the mean of the middle half counts: how large the part is was only estimated, and a median
 * of times that a coarse timer read is a multiple of its step. */
double chase_undisturbed(double *cycles, size_t count, uint64_t loads, double spike_share);

#endif
