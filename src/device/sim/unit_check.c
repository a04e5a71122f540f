/* The check of the SMs on a simulated GPU. Warps that compute right have the hash that the host
 * expects, so only the programs of wrong ones are executed, with a wrong bit. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "device/check_program.h"
#include "device/sim/gpu.h"

enum { WARPS = 32, SECTION_WORDS = 1024, WRONG_SUB_CORE = 2, WRONG_BIT = 1 << 9 };

/* What an SM starts in a cycle: of the arithmetic units additions and multiplications, by the
 * number of its cores (CUDA programming guide, throughput of instructions; the others are guesses
 * that nothing depends on). 0: it has no such unit. */
static double rate_of(const struct sim_model *model, enum device_unit unit)
{
    double cores = model->hardware.cores_per_sm;
    double capability = strtod(model->hardware.compute_capability, NULL);
    switch (unit) {
    case DEVICE_UNIT_INT:
    case DEVICE_UNIT_FP64:
        return cores;
    case DEVICE_UNIT_FP32:
        return 2 * cores;
    case DEVICE_UNIT_MMA_F16:
    case DEVICE_UNIT_MMA_BF16:
        return capability >= 8 ? 16 * cores : 0;
    case DEVICE_UNIT_MMA_FP8:
        return capability >= 8.9 ? 16 * cores : 0;
    case DEVICE_UNIT_WGMMA_F16:
    case DEVICE_UNIT_WGMMA_BF16:
        return capability == 9 ? 32 * cores : 0;
    case DEVICE_UNIT_WGMMA_FP8:
        return capability == 9 ? 64 * cores : 0;
    default:
        return cores / 32;
    }
}

/* Draws how many of a sub-core's hashes are wrong. */
static uint32_t draw_wrong(const struct sim_model *model, enum device_unit unit, size_t place,
                           uint32_t count, struct rng *rng)
{
    uint32_t wrong = 0;
    if (unit != DEVICE_UNIT_FP32 || model->wrong_share <= 0 ||
        place != (size_t)model->wrong_sm * DEVICE_SUB_CORES + WRONG_SUB_CORE)
        return 0;
    for (uint32_t i = 0; i < count; i++)
        wrong += rng_uniform(rng) < model->wrong_share;
    return wrong;
}

int gpu_check_unit(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_check *check = request;
    struct device_check_answer *out_answer = answer;
    struct gpu *gpu = (struct gpu *)device;
    const struct sim_model *model = &gpu->model;
    gpu_update(gpu);
    double rate = rate_of(model, check->unit);
    if (rate <= 0)
        return err_set(err, -ENOTSUP, "%s: this GPU does not have it",
                       device_unit_name(check->unit));
    struct check_run run = {
        .unit = check->unit, .seed = check->seed, .warps = WARPS, .section_words = SECTION_WORDS};
    double mhz = gpu_clock_mhz(gpu, gpu->busy_ns), ns = 1e6 * check->target_ms;
    double period_cycles = (double)check_operations(&run) * WARPS / rate;
    run.periods = (uint32_t)fmax(ns * mhz / 1e3 / period_cycles, 1);
    out_answer->place_count = (size_t)model->sms * DEVICE_SUB_CORES;
    out_answer->places = mem_array(out_answer->place_count, sizeof *out_answer->places);
    struct rng rng;
    rng_init(&rng, rng_derive(gpu->noise_seed, "unit check", gpu->stream_number++), "noise");
    for (size_t i = 0; i < out_answer->place_count; i++) {
        struct device_check_place *place = &out_answer->places[i];
        place->count = WARPS / DEVICE_SUB_CORES;
        place->wrong = draw_wrong(model, check->unit, i, place->count, &rng);
        if (!place->wrong)
            continue;
        place->wrong_hash = check_hash(&run, WRONG_BIT);
        if (place->wrong_hash == check_hash(&run, 0))
            place->wrong = 0;
    }
    out_answer->operations = check_operations(&run) * run.periods * WARPS;
    out_answer->cycles = (uint64_t)(period_cycles * run.periods + 0.5);
    out_answer->elapsed_ns = (uint64_t)((double)out_answer->cycles * 1e3 / mhz + 0.5);
    gpu->busy_ns += (double)out_answer->elapsed_ns;
    return 0;
}
