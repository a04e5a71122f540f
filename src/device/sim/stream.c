/* Bandwidth of a simulated GPU: the smallest of what the SMs can take, what is in flight, and what
 * the level can deliver. */
#include <errno.h>
#include <math.h>

#include "device/sim/gpu.h"

enum { BEST_UNROLL = 8 };

/* One level as a source or sink of streams. GB/s are bytes per nanosecond. */
struct source {
    double level_limit; /* GB/s of the whole GPU; 0: none beyond that of the SMs */
    double sm_limit;    /* bytes per cycle and SM */
    double latency_ns;  /* for Little's law */
};

struct launch {
    double sms;     /* that have a block */
    double threads; /* resident at once, in all */
};

static struct launch launch_of(const struct sim_model *model, const struct device_stream *stream)
{
    uint32_t per_sm = model->hardware.threads_per_sm / stream->threads;
    per_sm = per_sm ? per_sm : 1;
    uint64_t blocks = stream->blocks ? stream->blocks : (uint64_t)per_sm * model->sms;
    uint64_t sms = blocks < model->sms ? blocks : model->sms;
    uint64_t resident = blocks < sms * per_sm ? blocks : sms * per_sm;
    return (struct launch){.sms = (double)sms, .threads = (double)(resident * stream->threads)};
}

static uint64_t l1_bytes(const struct sim_model *model)
{
    const struct sim_path *path = &model->paths[DEVICE_GLOBAL_CA];
    if (!path->cache_count)
        return 0;
    const struct sim_cache *cache = &model->caches[path->caches[0]];
    return (uint64_t)((double)cache->geometry.size * (cache->carveout ? model->l1_share : 1));
}

/* A footprint that fits into a level is served by it after the first pass. A larger one never hits,
 * since the replacement is least recently used. Writes bypass L1. */
static struct source source_of(const struct gpu *gpu, const struct device_stream *stream,
                               double mhz, double sms)
{
    const struct sim_model *model = &gpu->model;
    const struct sim_bandwidth *b = &model->bandwidth;
    const struct sim_path *path = &model->paths[stream->path];
    double ns = 1e3 / mhz, clock = mhz / model->nominal_clock.sm_mhz;
    if (stream->path == DEVICE_SHARED)
        return (struct source){.sm_limit = b->shared, .latency_ns = path->main_cycles * ns};
    bool reads = stream->kind == DEVICE_STREAM_READ;
    bool cached = stream->path == DEVICE_GLOBAL_CA;
    if (reads && cached && stream->footprint_bytes <= l1_bytes(model))
        return (struct source){.sm_limit = b->l1, .latency_ns = path->cache_cycles[0] * ns};
    double footprint = (double)stream->footprint_bytes * (cached ? sms : 1);
    if (footprint <= (double)model->l2.geometry.size)
        return (struct source){.sm_limit = b->sm,
                               .level_limit = (reads ? b->l2_read : b->l2_write) * clock,
                               .latency_ns = fmax(path->l2_cycles, b->l2_loaded_cycles) * ns};
    double memory = model->clock.memory_mhz / model->nominal_clock.memory_mhz / model->dram_factor;
    double limit = reads                                 ? b->main_read
                   : stream->kind == DEVICE_STREAM_WRITE ? b->main_write
                                                         : b->main_copy;
    double dram_cycles = fmax(path->main_cycles, b->main_loaded_cycles) - path->l2_cycles;
    return (struct source){.sm_limit = b->sm,
                           .level_limit = limit * memory,
                           .latency_ns = path->l2_cycles * ns + dram_cycles * model->dram_factor *
                                                                    1e3 /
                                                                    model->nominal_clock.sm_mhz};
}

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

static double device_rate(const struct gpu *gpu, const struct device_stream *stream, double mhz)
{
    const struct sim_model *model = &gpu->model;
    struct launch launch = launch_of(model, stream);
    struct source source = source_of(gpu, stream, mhz, launch.sms);
    double sms = launch.sms;
    if (model->slow_sm >= 0 && model->slow_sm < launch.sms)
        sms -= 1 - 1 / (1 + model->slow_share);
    double rate = sms * source.sm_limit * mhz / 1e3;
    double unroll = stream->unroll ? stream->unroll : BEST_UNROLL;
    rate = smaller(rate, launch.threads * unroll * stream->width_bytes / source.latency_ns);
    return source.level_limit > 0 ? smaller(rate, source.level_limit) : rate;
}

static double host_rate(const struct sim_model *model, enum device_stream_kind kind)
{
    const struct sim_config *config = &model->config;
    const struct sim_hardware *hardware = &model->hardware;
    double rate = kind == DEVICE_STREAM_H2D   ? model->bandwidth.h2d
                  : kind == DEVICE_STREAM_D2H ? model->bandwidth.d2h
                                              : model->bandwidth.bidir;
    /* Each generation doubles the rate of a lane. */
    for (uint32_t gen = config->pcie_gen; gen < hardware->pcie_gen_max; gen++)
        rate /= 2;
    return rate * config->pcie_width / hardware->pcie_width_max;
}

int gpu_run_stream(struct device *device, const struct device_stream *stream,
                   struct device_stream_answer *out_answer, struct err *err)
{
    struct gpu *gpu = (struct gpu *)device;
    const struct sim_model *model = &gpu->model;
    bool on_device = stream->kind < DEVICE_STREAM_H2D;
    if (on_device && !model->paths[stream->path].present)
        return err_set(err, -ENOTSUP, "this GPU has no such path");
    if (on_device && stream->threads > model->hardware.threads_per_block)
        return err_set(err, -EINVAL, "%u threads: a block has at most %u", stream->threads,
                       model->hardware.threads_per_block);
    gpu_update(gpu);
    double mhz = gpu_clock_mhz(gpu, gpu->busy_ns);
    double rate = on_device ? device_rate(gpu, stream, mhz) : host_rate(model, stream->kind);
    struct rng rng;
    rng_init(&rng, rng_derive(gpu->noise_seed, "stream", gpu->stream_number++), "noise");
    /* Disturbances can only cost time. */
    rate /= 1 + fabs(model->noise.bandwidth * rng_normal(&rng));
    rate /= 1 + model->health[SIM_PROCESSES];
    double ns = (double)stream->total_bytes / rate;
    gpu->busy_ns += ns;
    *out_answer = (struct device_stream_answer){.bytes = stream->total_bytes,
                                                .elapsed_ns = ns < 1 ? 1 : (uint64_t)(ns + 0.5)};
    return 0;
}
