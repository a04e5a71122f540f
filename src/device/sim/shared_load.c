/* Loads of shared memory on a simulated SM: every load of every warp is executed, when its last
 * word is there and shared memory is free. */
#include "device/shared_load.h"

#include <errno.h>
#include <math.h>

#include "base/rng.h"
#include "device/sim/gpu.h"

static const double start_cycles = 24; /* reading the clock, starting the chain */

struct load_warp {
    double ready; /* when its last word is there */
    uint32_t done;
    uint32_t passes; /* of one load */
};

/* The next warp: the one whose word came first, then the one that is furthest behind. */
static struct load_warp *choose(struct load_warp *warps, uint32_t count, uint32_t loads)
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

static double disturbance(const struct sim_noise *noise, struct rng *rng)
{
    double cycles = noise->jitter_cycles * rng_normal(rng);
    if (noise->spike_rate > 0 && rng_uniform(rng) < noise->spike_rate)
        cycles += noise->spike_cycles * (0.5 + rng_uniform(rng));
    return cycles;
}

static uint64_t execute(const struct sim_model *model, const struct device_shared_load *load,
                        struct rng *rng)
{
    const struct sim_banks *banks = &model->banks;
    struct load_warp warps[SHARED_LOAD_WARPS_MAX], *warp;
    double free_at = 0;
    uint64_t cycles[SHARED_LOAD_WARPS_MAX];
    for (uint32_t w = 0; w < load->warps; w++) {
        const struct sim_lanes lanes = {device_shared_load_place(w), load->lanes,
                                        load->lane_stride_bytes, load->width_bytes};
        warps[w] = (struct load_warp){.passes = shared_banks_passes(banks, &lanes)};
    }
    while ((warp = choose(warps, load->warps, load->loads))) {
        double begin = fmax(warp->ready, free_at);
        double busy = fmax(banks->load_cycles, warp->passes * banks->pass_cycles);
        double latency = model->paths[DEVICE_SHARED].main_cycles +
                         (warp->passes - 1) * banks->conflict_cycles +
                         disturbance(&model->noise, rng);
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
    out_answer->cycles = execute(&gpu->model, load, &rng);
    gpu->busy_ns += (double)out_answer->cycles * 1e3 / gpu_clock_mhz(gpu, gpu->busy_ns);
    return 0;
}
