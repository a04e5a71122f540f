/* The state of one simulated GPU, shared by the files of this folder. */
#ifndef GPUMEMTOPO_DEVICE_SIM_GPU_H
#define GPUMEMTOPO_DEVICE_SIM_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cachesim/cache.h"
#include "device/device.h"
#include "device/sim/model.h"
#include "device/sim/node_links.h"
#include "device/sim/sim.h"
#include "device/turn.h"

struct run;
struct gpu_timed;

/* Caches of an SM while it runs a job; created at first use. */
struct sm_context {
    struct cache *caches[SIM_CACHES_MAX][SIM_INSTANCES_MAX];
    struct cache *tlbs[SIM_TLBS];
    uint64_t constant_epoch; /* of the job that last loaded from constant memory */
};

/* The last misses of L2, if each was of the unit behind what the one before had brought. */
struct miss_stream {
    uint64_t next_unit;
    uint32_t misses;
};

struct gpu {
    struct device device;
    struct sim_model model;  /* faults and variation applied */
    struct gpu_timed *timed; /* faults that come and go; NULL: none */
    struct sim_unit unit;
    char uuid[SIM_UUID_MAX];
    uint64_t noise_seed;
    uint64_t job_number;    /* counts all jobs, over all batches */
    uint64_t launch_number; /* the same for all jobs that run at once */
    uint64_t stream_number;
    struct turn link;
    struct sim_links links;
    double busy_ns; /* simulated time: advances with the work */
    struct sm_context *contexts;
    size_t context_count;
    struct run *runs; /* one per job in flight */
    size_t run_count;
    struct cache **wide[SIM_CACHES_MAX]; /* by group of SMs; NULL for SM-private caches */
    struct cache *l2[SIM_PARTS_MAX];
    struct miss_stream l2_misses;
    struct cache **tlbs[SIM_TLBS]; /* the same */
};

/* SM clock at a point of simulated time. */
double gpu_clock_mhz(const struct gpu *gpu, double busy_ns);

/* Keeps the faults that are not always present (gpu.c); the others are applied already. */
void gpu_time_faults(struct gpu *gpu, const struct sim_fault *faults, size_t count);

/* Before each launch, copy and question to the driver: which of these faults are present now. */
void gpu_update(struct gpu *gpu);

uint32_t gpu_group_count(const struct sim_model *model, int scope);
uint32_t gpu_group_of(const struct sim_model *model, int scope, uint32_t sm);

/* How long a sub-core works on what takes the usual one so many cycles (checks.c). */
uint64_t gpu_place_cycles(const struct gpu *gpu, size_t place, double usual, struct rng *rng);

/* What gpu_read_health answers (identity.c). */
void gpu_report_health(const struct gpu *gpu, struct device_health *answer);

/* The backend's functions: gpu_run_batch, ... */
#define GPU_DECLARED(name, function) device_function gpu_##function;
DEVICE_CALLS(GPU_DECLARED)

#endif
