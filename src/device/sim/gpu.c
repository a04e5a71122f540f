/* The state of a simulated GPU as its work goes on: its clock, and faults that come and go, in a
 * window of its work, in the first sessions, by chance, or growing. */
#include "device/sim/gpu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

double gpu_clock_mhz(const struct gpu *gpu, double busy_ns)
{
    const struct sim_clock *clock = &gpu->model.clock;
    double ramp_ns = clock->ramp_ms * 1e6;
    if (busy_ns >= ramp_ns)
        return clock->sm_mhz;
    double idle = clock->idle_mhz < clock->sm_mhz ? clock->idle_mhz : clock->sm_mhz;
    return idle + (clock->sm_mhz - idle) * busy_ns / ramp_ns;
}

/* A fault that grows does so in this many steps. */
enum { GROW_STEPS = 64 };

/* faults: those of the GPU that are not always present, applied to none of its models yet. */
struct gpu_timed {
    struct sim_model usual; /* without these faults */
    uint64_t asked;
    size_t count;
    struct timed_fault {
        struct sim_fault fault;
        double size; /* 0: absent, 1: in full */
    } faults[];
};

void gpu_time_faults(struct gpu *gpu, const struct sim_fault *faults, size_t count)
{
    size_t timed = 0;
    for (size_t i = 0; i < count; i++)
        timed += faults[i].when.timed;
    if (!timed)
        return;
    gpu->timed = mem_array(1, sizeof *gpu->timed + timed * sizeof gpu->timed->faults[0]);
    gpu->timed->usual = gpu->model;
    for (size_t i = 0; i < count; i++)
        if (faults[i].when.timed)
            gpu->timed->faults[gpu->timed->count++].fault = faults[i];
    gpu_update(gpu);
}

static bool fault_happens(const struct gpu *gpu, const struct sim_when *when, size_t i)
{
    if (when->chance <= 0)
        return true;
    struct rng rng;
    uint64_t number = when->each_session ? 0 : gpu->timed->asked;
    rng_init(&rng, rng_derive(rng_derive(gpu->noise_seed, "fault", i), "when", number), "chance");
    return rng_uniform(&rng) < when->chance;
}

static double fault_size_now(const struct gpu *gpu, const struct sim_when *when, size_t i)
{
    double ms = gpu->busy_ns / 1e6 - when->from_ms;
    if (ms < 0 || (when->for_ms > 0 && ms >= when->for_ms))
        return 0;
    if ((when->sessions && gpu->unit.session >= when->sessions) || !fault_happens(gpu, when, i))
        return 0;
    if (when->grow_ms <= 0 || ms >= when->grow_ms)
        return 1;
    return (double)(int)(ms / when->grow_ms * GROW_STEPS) / GROW_STEPS;
}

/* The fault at a part of its size. */
static struct sim_fault fault_scaled(const struct sim_fault *fault, const struct sim_model *usual,
                                     double size)
{
    struct sim_fault now = *fault;
    double mhz = fault->kind == SIM_MEMORY_CLOCK ? usual->clock.memory_mhz : usual->clock.sm_mhz;
    now.share *= size;
    now.mhz = mhz + (fault->mhz - mhz) * size;
    now.w = usual->config.power_limit_w + (fault->w - usual->config.power_limit_w) * size;
    now.factor = 1 + (fault->factor - 1) * size;
    return now;
}

/* Everything that a fault changes that comes and goes (may_change in fault.c). */
static void gpu_restore(struct sim_model *model, const struct sim_model *usual)
{
    model->clock = usual->clock;
    model->noise = usual->noise;
    model->dram_factor = usual->dram_factor;
    model->slow_sm = usual->slow_sm;
    model->slow_share = usual->slow_share;
    model->bandwidth = usual->bandwidth;
    model->paths[DEVICE_HOST] = usual->paths[DEVICE_HOST];
    model->config = usual->config;
    model->fall_share = usual->fall_share;
    model->throttle_bits = usual->throttle_bits;
    model->health[HEALTH_TEMPERATURE] = usual->health[HEALTH_TEMPERATURE];
    model->health[HEALTH_TEMPERATURE_MARGIN] = usual->health[HEALTH_TEMPERATURE_MARGIN];
}

void gpu_update(struct gpu *gpu)
{
    struct gpu_timed *timed = gpu->timed;
    bool changed = false;
    if (!timed)
        return;
    timed->asked++;
    for (size_t i = 0; i < timed->count; i++) {
        double size = fault_size_now(gpu, &timed->faults[i].fault.when, i);
        changed |= size < timed->faults[i].size || size > timed->faults[i].size;
        timed->faults[i].size = size;
    }
    if (!changed)
        return;
    gpu_restore(&gpu->model, &timed->usual);
    for (size_t i = 0; i < timed->count; i++) {
        struct sim_fault now =
            fault_scaled(&timed->faults[i].fault, &timed->usual, timed->faults[i].size);
        if (timed->faults[i].size > 0)
            sim_model_apply(&gpu->model, &now, NULL); /* it fitted in full when it was read */
    }
}
