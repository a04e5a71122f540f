/* A job: a short program of steps ("chase these bytes", "fill that array") for one or two agents
 * (threads). Jobs come in batches; the backend spreads a batch over the SMs, one job per SM at a
 * time, so that one array size per SM (thesis, section 4.7.2) is the normal case. */
#ifndef GPUMEMTOPO_DEVICE_JOB_H
#define GPUMEMTOPO_DEVICE_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The instruction and the path of a load. */
enum device_path {
    DEVICE_GLOBAL_CA, /* global, cached in L1 where the GPU does that (ld.global.ca) */
    DEVICE_GLOBAL_CG, /* global, cached in L2 only (ld.global.cg) */
    DEVICE_READ_ONLY, /* global through the read-only path (ld.global.nc) */
    DEVICE_TEXTURE,   /* linear texture fetch */
    DEVICE_CONSTANT,  /* constant bank: arrays must end within device_limits.constant_bytes */
    DEVICE_SHARED,    /* shared memory: arrays must end within the granted size */
    DEVICE_HOST,      /* pinned host memory mapped into the GPU */
    DEVICE_PATH_COUNT
};

/* An array in the memory of a path. Its elements lie stride_bytes apart, the first one at
 * offset_bytes; there are size_bytes / stride_bytes of them, at least one. Arrays of equal offset
 * on the four global paths are the same memory; constant, shared and host are separate. */
enum device_order {
    DEVICE_SEQUENTIAL, /* element 0, 1, 2, ... and again */
    DEVICE_RANDOM,     /* one random cycle through all elements, chosen by seed */
    DEVICE_DESCENDING, /* element 2, 1, 0, the last one, ... and again */
};
struct device_array {
    enum device_path path;
    uint64_t offset_bytes;
    uint64_t size_bytes;
    uint64_t stride_bytes;
    enum device_order order;
    uint64_t seed;
};

enum device_step_kind {
    DEVICE_WARM,    /* one thread chases, untimed */
    DEVICE_CHASE,   /* one thread chases, every load is timed: gives a sample with a histogram */
    DEVICE_AVERAGE, /* one thread chases, timed as a whole: gives a sample with total cycles */
    DEVICE_FILL,    /* all warps of the agent's SM load the array once, past L1, untimed */
};

/* loads: how many; 0 means each element once. If an agent's step has the same array as its previous
 * step (all fields equal), it continues at the element where that step ended; otherwise it begins
 * at element start. With DEVICE_RANDOM and fewer loads than elements, the step loads a random
 * sample, no element twice. */
struct device_step {
    enum device_step_kind kind;
    uint32_t agent; /* index in the job's agents */
    struct device_array array;
    uint64_t start;
    uint64_t loads;
    uint32_t keep;              /* DEVICE_CHASE: latencies to keep, at evenly spread positions; at
                                 * most device_keep_max of the job */
    uint32_t split_cycles;      /* not 0: of those only whether they are above; no histogram */
    uint32_t lanes;             /* threads of the warp that load together; 0 means 1 */
    uint32_t lane_stride_bytes; /* distance between the addresses of two lanes (bank conflicts) */
};

/* The distance from the address of a step's first lane to that of its last. */
static inline uint64_t device_lane_span_bytes(const struct device_step *step)
{
    return step->lanes > 1 ? (uint64_t)(step->lanes - 1) * step->lane_stride_bytes : 0;
}

/* The end of the memory that a step loads: its array, moved by the distance of the last lane. */
static inline uint64_t device_step_end_bytes(const struct device_step *step)
{
    return step->array.offset_bytes + step->array.size_bytes + device_lane_span_bytes(step);
}

/* Whether a step may use memory beyond limits.global_bytes (see wide_bytes). */
static inline bool device_step_may_be_wide(const struct device_step *step)
{
    return (step->kind == DEVICE_WARM || step->kind == DEVICE_CHASE) &&
           (step->array.path == DEVICE_GLOBAL_CA || step->array.path == DEVICE_GLOBAL_CG);
}

enum { DEVICE_SM_ANY = -1, DEVICE_SM_SAME = -2, DEVICE_SM_OTHER = -3 };

/* The thread that executes a step. Agent 0: DEVICE_SM_ANY or the index of an SM. Agent 1 also
 * DEVICE_SM_SAME (as agent 0) or DEVICE_SM_OTHER. Steps run strictly one after the other, also
 * those of different agents, and all in one launch: between two launches GPUs empty more caches
 * than those of the SM. */
struct device_agent {
    int32_t sm;
    uint32_t warp; /* warp of the block: it decides which of several caches per SM is used */
};

enum { DEVICE_STEPS_MAX = 6, DEVICE_AGENTS_MAX = 2 };

/* The caches before L2 are empty when a job begins, except that jobs which run at the same time
 * load into caches that SMs share. L2 is flushed only if `cold_l2` is set. */
struct device_job {
    struct device_agent agents[DEVICE_AGENTS_MAX];
    uint32_t agent_count;
    struct device_step steps[DEVICE_STEPS_MAX];
    uint32_t step_count;
    uint64_t shared_bytes; /* shared memory wished for, in total: decides the L1 carve-out */
    bool cold_l2;
};

/* A GPU keeps latencies in shared memory until its job ends, so that they do not pass through the
 * caches that are measured. A job that times one chase can keep so many of them, one that times
 * several so many of each. */
enum { DEVICE_KEEP_ONE = 3584, DEVICE_KEEP_SEVERAL = 672 };

/* How many latencies of a timed chase of this job can be kept, whatever the backend. Jobs that ask
 * for more are refused. */
uint32_t device_keep_max(const struct device_job *job);

/* Latencies by cycles, log-linear: exact below 256, then 128 bins per octave (0.8 %). */
enum { DEVICE_BIN_COUNT = 256 + 128 * 16 };
struct device_bin {
    uint16_t bin;
    uint32_t count;
};
uint32_t device_bin_of(uint32_t cycles);
double device_bin_cycles(uint32_t bin); /* middle of a bin */

/* The raw sample of one timed step. Single latencies include the cost of timing; nothing is
 * subtracted or smoothed. */
struct device_sample {
    uint32_t step; /* index of the step in its job */
    int32_t sm;    /* the SM that executed it */
    uint64_t loads;
    uint64_t total_cycles;   /* of the whole step, by the clock of the SM */
    uint64_t elapsed_ns;     /* the same by a real-time clock, 0 if there is none */
    struct device_bin *bins; /* ascending, without empty ones; DEVICE_CHASE only */
    uint32_t bin_count;
    uint32_t
        *kept; /* DEVICE_CHASE: cycles of load i * loads / kept_count; split: 0 or UINT32_MAX */
    uint32_t kept_count;
};

/* The samples of one job's timed steps, in step order. */
struct device_answer {
    struct device_sample samples[DEVICE_STEPS_MAX];
    uint32_t sample_count;
};

struct device_batch {
    const struct device_job *jobs;
    size_t job_count;
    uint32_t at_once; /* jobs that run together, each on its own SM; 0: as many as SMs, 1: alone */
};

#endif
