/* Bandwidth of a simulated GPU: what the SMs can take, what is in flight, and what the level can
 * deliver limit the blocks while they run (stream_blocks.c). */
#include <errno.h>
#include <math.h>

#include "device/sim/gpu.h"
#include "device/sim/stream_blocks.h"

enum { BEST_UNROLL = 8, BLOCKS_PER_SM_MAX = 32 };

/* One level as a source or sink of streams. GB/s are bytes per nanosecond. */
struct source {
    double level_limit; /* GB/s of the whole GPU; 0: none beyond that of the SMs */
    double sm_limit;    /* bytes per cycle and SM */
    double latency_ns;  /* for Little's law: alone */
    double loaded_ns;   /* while the level delivers all it can */
};

/* Blocks that an SM can hold at once. */
static uint32_t blocks_at_once(const struct sim_model *model, const struct device_stream *stream)
{
    uint32_t per_sm = model->hardware.threads_per_sm / stream->threads;
    per_sm = per_sm > BLOCKS_PER_SM_MAX ? BLOCKS_PER_SM_MAX : per_sm;
    return per_sm ? per_sm : 1;
}

static uint64_t l1_bytes(const struct sim_model *model)
{
    const struct sim_path *path = &model->paths[DEVICE_GLOBAL_CA];
    if (!path->cache_count)
        return 0;
    const struct sim_cache *cache = &model->caches[path->caches[0]];
    return (uint64_t)((double)cache->geometry.size * (cache->carveout ? model->l1_share : 1));
}

/* Reads and writes of one stream take turns. */
static double l2_limit(const struct sim_bandwidth *b, enum device_stream_kind kind)
{
    double arrays = device_stream_arrays(kind);
    if (kind == DEVICE_STREAM_READ || kind == DEVICE_STREAM_WRITE)
        return kind == DEVICE_STREAM_READ ? b->l2_read : b->l2_write;
    return arrays / ((arrays - 1) / b->l2_read + 1 / b->l2_write);
}

static double main_limit(const struct sim_bandwidth *b, enum device_stream_kind kind)
{
    if (kind == DEVICE_STREAM_READ || kind == DEVICE_STREAM_WRITE)
        return kind == DEVICE_STREAM_READ ? b->main_read : b->main_write;
    return device_stream_arrays(kind) > 2 && b->main_add > 0 ? b->main_add : b->main_copy;
}

static struct source main_source(const struct gpu *gpu, const struct device_stream *stream,
                                 double mhz)
{
    const struct sim_model *model = &gpu->model;
    const struct sim_bandwidth *b = &model->bandwidth;
    const struct sim_path *path = &model->paths[stream->path];
    double memory = model->clock.memory_mhz / model->nominal_clock.memory_mhz / model->dram_factor;
    double dram_ns = model->dram_factor * 1e3 / model->nominal_clock.sm_mhz;
    double l2_ns = path->l2_cycles * 1e3 / mhz, alone = path->main_cycles - path->l2_cycles;
    double loaded = fmax(path->main_cycles, b->main_loaded_cycles) - path->l2_cycles;
    return (struct source){.sm_limit = b->sm,
                           .level_limit = main_limit(b, stream->kind) * memory,
                           .latency_ns = l2_ns + alone * dram_ns,
                           .loaded_ns = l2_ns + loaded * dram_ns};
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
                               .level_limit = l2_limit(b, stream->kind) * clock,
                               .latency_ns = path->l2_cycles * ns,
                               .loaded_ns = fmax(path->l2_cycles, b->l2_loaded_cycles) * ns};
    return main_source(gpu, stream, mhz);
}

/* A slow SM takes less; its blocks are not told from others. */
static double sm_share(const struct sim_model *model, double sms)
{
    bool slow = model->slow_sm >= 0 && model->slow_sm < sms;
    return slow ? 1 - (1 - 1 / (1 + model->slow_share)) / sms : 1;
}

static double device_rate(const struct gpu *gpu, const struct device_stream *stream, double mhz)
{
    const struct sim_model *model = &gpu->model;
    uint32_t at_once = blocks_at_once(model, stream);
    uint32_t blocks = stream->blocks ? stream->blocks : at_once * model->sms;
    uint32_t sms = blocks < model->sms ? blocks : model->sms;
    struct source source = source_of(gpu, stream, mhz, sms);
    double unroll = stream->unroll ? stream->unroll : BEST_UNROLL;
    const struct stream_blocks run = {
        .sms = model->sms,
        .at_once = at_once,
        .blocks = blocks,
        .block_in_flight = stream->threads * unroll * stream->width_bytes,
        .sm_limit = source.sm_limit * mhz / 1e3 * sm_share(model, sms),
        .level_limit = source.level_limit,
        .latency_ns = source.latency_ns + model->bandwidth.round_cycles * 1e3 / mhz,
        .loaded_ns = source.loaded_ns,
    };
    return stream_blocks_rate(&run);
}

/* all: every GPU of the node copies. */
static double host_rate(const struct gpu *gpu, enum device_stream_kind kind, bool all)
{
    const struct sim_model *model = &gpu->model;
    const struct sim_config *config = &model->config;
    const struct sim_hardware *hardware = &model->hardware;
    double rate = kind == DEVICE_STREAM_H2D   ? model->bandwidth.h2d
                  : kind == DEVICE_STREAM_D2H ? model->bandwidth.d2h
                                              : model->bandwidth.bidir;
    double ways = kind == DEVICE_STREAM_BIDIR ? 2 : 1;
    /* Each generation doubles the rate of a lane. */
    for (uint32_t gen = config->pcie_gen; gen < hardware->pcie_gen_max; gen++)
        rate /= 2;
    rate = rate * config->pcie_width / hardware->pcie_width_max;
    return ways * sim_links_host_share(&gpu->links, rate / ways, all);
}

/* Disturbances can only cost time. */
static double disturbed(struct gpu *gpu, double rate)
{
    const struct sim_model *model = &gpu->model;
    struct rng rng;
    rng_init(&rng, rng_derive(gpu->noise_seed, "stream", gpu->stream_number++), "noise");
    rate /= 1 + fabs(model->noise.bandwidth * rng_normal(&rng));
    return rate / (1 + model->health[HEALTH_PROCESSES]);
}

int gpu_run_stream(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_stream *stream = request;
    struct device_stream_answer *out_answer = answer;
    struct gpu *gpu = (struct gpu *)device;
    const struct sim_model *model = &gpu->model;
    bool on_device = !device_stream_uses_host(stream->kind);
    if (on_device && !model->paths[stream->path].present)
        return err_set(err, -ENOTSUP, "this GPU has no such path");
    if (on_device && stream->threads > model->hardware.threads_per_block)
        return err_set(err, -EINVAL, "%u threads: a block has at most %u", stream->threads,
                       model->hardware.threads_per_block);
    gpu_update(gpu);
    double mhz = gpu_clock_mhz(gpu, gpu->busy_ns);
    double rate = on_device ? device_rate(gpu, stream, mhz) : host_rate(gpu, stream->kind, false);
    rate = disturbed(gpu, rate);
    double ns = (double)stream->total_bytes / rate;
    gpu->busy_ns += ns;
    *out_answer = (struct device_stream_answer){.bytes = stream->total_bytes,
                                                .elapsed_ns = ns < 1 ? 1 : (uint64_t)(ns + 0.5)};
    return 0;
}

int gpu_share_host(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_host_share *asked = request;
    struct device_host_share_answer *out_answer = answer;
    struct gpu *gpu = (struct gpu *)device;
    if (gpu->links.count < 2 || gpu->links.own >= gpu->links.count)
        return err_set(err, -ENOTSUP, "the process sees no other GPU of the node");
    if (!gpu->links.wiring.present)
        return err_set(err, -ENOTSUP, "the simulated node has no links between its GPUs");
    gpu_update(gpu);
    double ns = asked->window_ms * 1e6;
    double rate = disturbed(gpu, host_rate(gpu, asked->kind, true));
    gpu->busy_ns += ns;
    *out_answer = (struct device_host_share_answer){
        .gpus = gpu->links.count, .bytes = (uint64_t)(ns * rate), .elapsed_ns = (uint64_t)ns};
    return 0;
}
