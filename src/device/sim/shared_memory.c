/* Loads of shared memory on a simulated SM: which words of which banks the lanes of a warp want,
 * and every load of every warp, when its last word is there and shared memory is free. */
#include <errno.h>
#include <math.h>
#include <stdbool.h>

#include "base/rng.h"
#include "device/shared_load.h"
#include "device/sim/gpu.h"

enum { LANES_MAX = 32, WORDS_PER_LANE_MAX = 16 };

struct wanted {
    uint64_t rows[LANES_MAX * WORDS_PER_LANE_MAX];
    uint32_t banks[LANES_MAX * WORDS_PER_LANE_MAX];
    uint32_t count;
    uint32_t per_bank[SIM_BANKS_MAX];
};

/* A word that is wanted twice is delivered once. */
static void wanted_add(const struct sim_banks *banks, uint64_t address, struct wanted *wanted)
{
    uint32_t bank = (uint32_t)(address / banks->interleave_bytes % banks->count);
    uint64_t row = address / ((uint64_t)banks->count * banks->bank_bytes);
    for (uint32_t i = 0; i < wanted->count; i++)
        if (wanted->banks[i] == bank && wanted->rows[i] == row)
            return;
    wanted->banks[wanted->count] = bank;
    wanted->rows[wanted->count++] = row;
    wanted->per_bank[bank]++;
}

static uint32_t passes_of_group(const struct sim_banks *banks, const struct sim_lanes *lanes,
                                uint32_t first, uint32_t end)
{
    struct wanted wanted = {.count = 0};
    uint32_t most = 1;
    for (uint32_t lane = first; lane < end; lane++)
        for (uint32_t at = 0; at < lanes->width_bytes; at += banks->interleave_bytes)
            wanted_add(banks, lanes->address + (uint64_t)lane * lanes->stride_bytes + at, &wanted);
    for (uint32_t i = 0; i < banks->count; i++)
        most = wanted.per_bank[i] > most ? wanted.per_bank[i] : most;
    return most;
}

uint32_t sim_banks_passes(const struct sim_banks *banks, const struct sim_lanes *lanes)
{
    uint32_t together = banks->count * banks->bank_bytes / lanes->width_bytes, passes = 0;
    together = together < 1 ? 1 : together;
    for (uint32_t first = 0; first < lanes->count; first += together) {
        uint32_t end = first + together < lanes->count ? first + together : lanes->count;
        passes += passes_of_group(banks, lanes, first, end);
    }
    return passes;
}

static const double start_cycles = 24; /* reading the clock, starting the chain */

struct load_warp {
    double ready; /* when its last word is there */
    uint32_t done;
    uint32_t passes; /* of one load */
};

/* The next warp: the one whose word came first, then the one that is furthest behind. */
static struct load_warp *next_load_warp(struct load_warp *warps, uint32_t count, uint32_t loads)
{
    struct load_warp *best = NULL;
    for (uint32_t i = 0; i < count; i++) {
        struct load_warp *warp = &warps[i];
        if (warp->done < loads && (!best || warp->ready < best->ready ||
                                   (warp->ready == best->ready && warp->done < best->done)))
            best = warp;
    }
    return best;
}

static double load_disturbance(const struct sim_noise *noise, struct rng *rng)
{
    double cycles = noise->jitter_cycles * rng_normal(rng);
    if (noise->spike_rate > 0 && rng_uniform(rng) < noise->spike_rate)
        cycles += noise->spike_cycles * (0.5 + rng_uniform(rng));
    return cycles;
}

static uint64_t execute_loads(const struct sim_model *model, const struct device_shared_load *load,
                              struct rng *rng)
{
    const struct sim_banks *banks = &model->banks;
    struct load_warp warps[SHARED_LOAD_WARPS_MAX], *warp;
    double free_at = 0;
    uint64_t cycles[SHARED_LOAD_WARPS_MAX];
    for (uint32_t w = 0; w < load->warps; w++) {
        const struct sim_lanes lanes = {device_shared_load_place(w), load->lanes,
                                        load->lane_stride_bytes, load->width_bytes};
        warps[w] = (struct load_warp){.passes = sim_banks_passes(banks, &lanes)};
    }
    while ((warp = next_load_warp(warps, load->warps, load->loads))) {
        double begin = fmax(warp->ready, free_at);
        double busy = fmax(banks->load_cycles, warp->passes * banks->pass_cycles);
        double latency = model->paths[DEVICE_SHARED].main_cycles +
                         (warp->passes - 1) * banks->conflict_cycles +
                         load_disturbance(&model->noise, rng);
        free_at = begin + busy;
        warp->ready = begin + fmax(latency, 1);
        warp->done++;
    }
    for (uint32_t w = 0; w < load->warps; w++)
        cycles[w] = (uint64_t)(start_cycles + warps[w].ready + 0.5);
    return device_shared_load_median(cycles, load->warps);
}

int gpu_load_shared(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_shared_load *load = request;
    struct device_shared_load_answer *out_answer = answer;
    struct gpu *gpu = (struct gpu *)device;
    struct rng rng;
    gpu_update(gpu);
    if (!gpu->model.paths[DEVICE_SHARED].present)
        return err_set(err, -ENOTSUP, "this GPU has no shared memory");
    rng_init(&rng, rng_derive(gpu->noise_seed, "shared_load", gpu->stream_number++), "noise");
    out_answer->cycles = execute_loads(&gpu->model, load, &rng);
    gpu->busy_ns += (double)out_answer->cycles * 1e3 / gpu_clock_mhz(gpu, gpu->busy_ns);
    return 0;
}
