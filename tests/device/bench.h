/* A simulated GPU on the bench: opened from model text, with quiet timing, for tests. */
#ifndef GPUMEMTOPO_TESTS_DEVICE_BENCH_H
#define GPUMEMTOPO_TESTS_DEVICE_BENCH_H

#include <stdint.h>

#include "device/sim/sim.h"

/* Sections every model needs, without noise, at full clock from the start. */
extern const char bench_head[];

/* A model of bench_head and further text; fails the test when it is refused. */
struct device *bench_open(const char *text);
struct device *bench_open_faulty(const char *text, const struct sim_fault *faults, size_t count);

struct device_array bench_array(enum device_path path, uint64_t size_bytes, uint64_t stride_bytes);

/* A job of one agent: warm pass over the array, then a timed one. */
struct device_job bench_warm_chase(struct device_array array);

/* Runs one job and gives the first sample's mean latency. */
double bench_mean(struct device *device, const struct device_job *job);

/* Runs one job, which must have a DEVICE_CHASE as its last sample, and counts the loads of that
 * sample that took at least `cycles`. */
uint64_t bench_slow_loads(struct device *device, const struct device_job *job, double cycles);

#endif
