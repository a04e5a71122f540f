/* Jobs for probes, and what their samples say. */
#ifndef GPUMEMTOPO_PROBES_METHOD_CHASE_H
#define GPUMEMTOPO_PROBES_METHOD_CHASE_H

#include <stdint.h>

#include "device/device.h"
#include "probes/probe.h"

/* An empty job of one agent on any SM. */
struct device_job chase_job(void);

/* Appends a step of agent 0 to a job; the caller may adjust the result. The job must have room. An
 * array in shared memory raises the job's wish for shared memory. */
struct device_step *chase_add(struct device_job *job, enum device_step_kind kind,
                              const struct device_array *array, uint64_t loads);

/* Loads the array, then times it: one warm pass, then whole timed passes of at least loads_min
 * loads. */
struct device_job chase_twice(const struct device_array *array, uint64_t loads_min);

/* Runs jobs over all SMs (at_once 0) and returns their answers, freed by chase_free. */
int chase_run(struct probe_context *context, const struct device_job *jobs, size_t count,
              uint32_t at_once, struct device_answer **out_answers, struct err *err);

void chase_free(struct device_answer *answers, size_t count);

/* Share of loads above `cycles`, over the whole timed pass. */
double chase_share_above(const struct device_sample *sample, double cycles);

/* Mean of all latencies. */
double chase_mean(const struct device_sample *sample);

/* Mean of the middle half of the latencies: as insensitive to spikes as the median, and stable if
 * half of the loads go to a near part of a memory and half to a far one. */
double chase_middle_mean(const struct device_sample *sample);

/* How long a chase of `loads` loads takes without a spike, from the times of `count` chases, which
 * get sorted. Spikes only add time, so the chases without one are the lower part. The result is the
 * mean of the middle half of that part: its size is only estimated, and the median of times from a
 * coarse timer is a multiple of the timer's step. */
double chase_undisturbed(double *cycles, size_t count, uint64_t loads, double spike_share);

#endif
