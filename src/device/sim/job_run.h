/* One job in flight: executes its steps a few loads at a time and collects the samples. */
#ifndef GPUMEMTOPO_DEVICE_SIM_JOB_RUN_H
#define GPUMEMTOPO_DEVICE_SIM_JOB_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"
#include "device/sim/gpu.h"
#include "device/sim/route.h"
#include "device/sim/walk.h"

/* The position of an agent, for a step that continues on the same array. */
struct run_agent {
    struct sm_context *context;
    uint32_t sm;
    bool walked;
    struct device_array array;
    struct walk walk;
};

struct run {
    struct gpu *gpu;
    const struct device_job *job;
    struct device_answer *answer;
    struct run_agent agents[DEVICE_AGENTS_MAX];
    struct rng noise, replacement;
    uint64_t spike_in; /* loads until the next spike */
    double spike_log;  /* logarithm of the share of loads without a spike */
    uint64_t epoch;
    uint64_t l1_bytes, shared_bytes; /* what the carve-out leaves to L1 and grants */
    bool alone;                      /* nothing else changes the caches at the same time */
    double now_ns;

    /* The current step. */
    uint32_t step;
    bool started;
    struct route route;
    uint64_t loads, done;
    double cycles, step_ns;
    uint64_t pass_left, pass_fills; /* of one pass over the array, for untimed loads */
    double pass_cycles;
    uint32_t counts[DEVICE_BIN_COUNT];
    uint32_t *kept;
    uint32_t kept_count, kept_next;
};

/* Places the job on its SMs; the caller has set agents[i].context and .sm. number: of the job among
 * all that the GPU ever ran; it determines the noise. */
int run_begin(struct run *run, struct gpu *gpu, const struct device_job *job,
              struct device_answer *answer, uint64_t number, struct err *err);

/* Executes about `loads` further loads. 1: the job is not done; 0: it is done; negative: failed. */
int run_some(struct run *run, uint64_t loads, struct err *err);

/* Releases what a failed or unfinished run holds. */
void run_abandon(struct run *run);

#endif
