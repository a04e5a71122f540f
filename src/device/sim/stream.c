/* Bandwidth of a simulated GPU: what the SMs can take, what is in flight, and what the level can
 * deliver limit the blocks while they run. */
#include "device/sim/stream.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>

#include "base/mem.h"
#include "base/portable_math.h"
#include "device/sim/gpu.h"

enum { KINDS = 2, BISECTIONS = 40 };

/* Latency rises late: on an H200 that copies, by 8 % of the whole rise at 0.6 of the rate, by 40 %
 * at 0.84. */
enum { QUEUE_POWER = 5 };

/* SMs that have the same blocks: some have one more than the others. */
struct sm_kind {
    double sms;
    uint32_t waiting; /* blocks of each SM that have not begun */
    uint32_t running;
    double left; /* work of each running block; a block's whole work is 1 */
    double rate; /* of each SM */
};

static void begin_blocks(const struct stream_blocks *run, struct sm_kind *kind)
{
    kind->running = kind->waiting < run->at_once ? kind->waiting : run->at_once;
    kind->waiting -= kind->running;
    kind->left = 1;
}

/* What the SMs would take together if the level were so busy. The more it is, the longer its
 * queues.
 */
static double stream_demand(const struct stream_blocks *run, struct sm_kind *kinds, double busy)
{
    double more = run->loaded_ns > run->latency_ns ? run->loaded_ns - run->latency_ns : 0;
    double latency_ns = run->latency_ns + more * portable_pow(busy, QUEUE_POWER), sum = 0;
    for (int i = 0; i < KINDS; i++) {
        kinds[i].rate = fmin(run->sm_limit, kinds[i].running * run->block_in_flight / latency_ns);
        sum += kinds[i].sms * kinds[i].rate;
    }
    return sum;
}

/* The level serves the SMs in turn: none gets more than the others while these want more. */
static void share_level(const struct stream_blocks *run, struct sm_kind *kinds)
{
    struct sm_kind *less = kinds[0].rate < kinds[1].rate ? &kinds[0] : &kinds[1];
    struct sm_kind *most = less == kinds ? kinds + 1 : kinds;
    double fair = run->level_limit / (kinds[0].sms + kinds[1].sms);
    if (less->rate * less->sms <= 0)
        fair = run->level_limit / most->sms;
    less->rate = fmin(less->rate, fair);
    if (most->sms > 0)
        most->rate = fmin(most->rate, (run->level_limit - less->rate * less->sms) / most->sms);
}

/* The level is as busy as the SMs make it. */
static void stream_set_rates(const struct stream_blocks *run, struct sm_kind *kinds)
{
    double low = 0, high = 1;
    if (run->level_limit <= 0) {
        stream_demand(run, kinds, 0);
        return;
    }
    for (int i = 0; i < BISECTIONS; i++) {
        double busy = (low + high) / 2;
        if (stream_demand(run, kinds, busy) > busy * run->level_limit)
            low = busy;
        else
            high = busy;
    }
    if (stream_demand(run, kinds, high) > run->level_limit)
        share_level(run, kinds);
}

/* Runs until the next blocks end, and begins those that wait for them. Returns the time it takes,
 * in ns for each byte of a block's work. */
static double blocks_advance(const struct stream_blocks *run, struct sm_kind *kinds)
{
    double time = INFINITY;
    stream_set_rates(run, kinds);
    for (int i = 0; i < KINDS; i++)
        if (kinds[i].running)
            time = fmin(time, kinds[i].left * kinds[i].running / kinds[i].rate);
    for (int i = 0; i < KINDS; i++) {
        if (!kinds[i].running)
            continue;
        bool ends = kinds[i].left * kinds[i].running / kinds[i].rate <= time * (1 + 1e-9);
        kinds[i].left -= time * kinds[i].rate / kinds[i].running;
        if (ends)
            begin_blocks(run, &kinds[i]);
    }
    return time;
}

/* Between two moments at which blocks end, every SM has the rate that follows from its bytes in
 * flight and the latency (Little's law), up to its limit and its share of the level's. */
double stream_blocks_rate(const struct stream_blocks *run)
{
    uint32_t each = run->blocks / run->sms, more = run->blocks % run->sms;
    struct sm_kind kinds[KINDS] = {{.sms = more, .waiting = each + 1},
                                   {.sms = run->sms - more, .waiting = each}};
    double time = 0;
    if (!more)
        kinds[0].waiting = 0;
    for (int i = 0; i < KINDS; i++)
        begin_blocks(run, &kinds[i]);
    while (kinds[0].running || kinds[1].running)
        time += blocks_advance(run, kinds);
    return run->blocks / time;
}

enum { BEST_UNROLL = 8, BLOCKS_PER_SM_MAX = 32 };

/* One level as a source or sink of streams. GB/s are bytes per nanosecond. */
struct source {
    double level_limit; /* GB/s of the whole GPU; 0: none beyond that of the SMs */
    double sm_limit;    /* bytes per cycle and SM */
    double latency_ns;  /* for Little's law: alone */
    double loaded_ns;   /* while the level delivers all it can */
};

/* Of the first cache of a path. */
static uint64_t cache_bytes(const struct sim_model *model, const struct sim_path *path)
{
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

enum { WARP_LANES = 32 };

/* Bytes per cycle of what an SM has of its own: an SM executes one access of a warp per cycle. */
static double sm_limit(const struct sim_bandwidth *b, const struct device_stream *stream)
{
    const double limits[DEVICE_PATH_COUNT] = {[DEVICE_GLOBAL_CA] = b->l1,
                                              [DEVICE_READ_ONLY] = b->read_only,
                                              [DEVICE_TEXTURE] = b->texture,
                                              [DEVICE_CONSTANT] = b->constants,
                                              [DEVICE_SHARED] = b->shared};
    double limit = limits[stream->path] > 0 ? limits[stream->path] : b->l1;
    if (stream->path == DEVICE_SHARED && stream->kind == DEVICE_STREAM_WRITE && b->shared_write > 0)
        limit = b->shared_write;
    return fmin(limit, WARP_LANES * stream->width_bytes);
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
        return (struct source){.sm_limit = sm_limit(b, stream),
                               .latency_ns = path->main_cycles * ns};
    bool reads = stream->kind == DEVICE_STREAM_READ;
    bool cached = stream->path != DEVICE_GLOBAL_CG;
    if (reads && cached && stream->footprint_bytes <= cache_bytes(model, path))
        return (struct source){.sm_limit = sm_limit(b, stream),
                               .latency_ns = path->cache_cycles[0] * ns};
    double footprint = (double)stream->footprint_bytes * (cached ? sms : 1);
    if (footprint <= (double)model->l2.geometry.size)
        return (struct source){.sm_limit = b->sm,
                               .level_limit = l2_limit(b, stream->kind) * clock,
                               .latency_ns = path->l2_cycles * ns,
                               .loaded_ns = fmax(path->l2_cycles, b->l2_loaded_cycles) * ns};
    return main_source(gpu, stream, mhz);
}

/* Some of the parts of L2 together get this power of their share of the whole rate: one of two gets
 * 0.6 of it on H200s whose parts have 64 and 68 SMs. */
static const double PARTS_POWER = 0.74;

/* If the parts of L2 have different numbers of SMs, which have equal work, they share the memory
 * alike until the smallest one is done. */
static double split_share(const struct sim_l2 *l2)
{
    double sms = 0, done = 0, time = 0;
    for (uint32_t i = 0; i < l2->part_count; i++)
        sms += l2->part_sms[i];
    while (done < sms) {
        double next = INFINITY, left = 0;
        for (uint32_t i = 0; i < l2->part_count; i++) {
            if (l2->part_sms[i] <= done)
                continue;
            next = fmin(next, l2->part_sms[i]);
            left++;
        }
        if (left == 0)
            break;
        time += (next - done) * left / portable_pow(left / l2->part_count, PARTS_POWER);
        done = next;
    }
    return sms > 0 ? sms / time : 1;
}

/* What a stream with equal work per SM gets of what L2 or main memory delivers. */
static double equal_share(const struct sim_model *model, const struct device_stream *stream)
{
    const struct sim_bandwidth *b = &model->bandwidth;
    bool l2 = stream->footprint_bytes <= model->l2.geometry.size;
    double split = split_share(&model->l2);
    if (stream->kind == DEVICE_STREAM_READ) /* L2 is read from both parts */
        return l2 ? b->equal_l2_read : b->equal_main_read * split;
    if (stream->kind == DEVICE_STREAM_WRITE)
        return (l2 ? b->equal_l2_write : b->equal_main_write) * split;
    return l2 ? (b->equal_l2_read + b->equal_l2_write) / 2 : b->equal_main_copy * split;
}

/* share: of what the level delivers. */
static double device_rate(const struct gpu *gpu, const struct device_stream *stream, double mhz,
                          double share)
{
    const struct sim_model *model = &gpu->model;
    uint32_t at_once = model->hardware.threads_per_sm / stream->threads; /* blocks of an SM */
    at_once = at_once > BLOCKS_PER_SM_MAX ? BLOCKS_PER_SM_MAX : at_once ? at_once : 1;
    uint32_t blocks = stream->blocks ? stream->blocks : at_once * model->sms;
    uint32_t sms = blocks < model->sms ? blocks : model->sms;
    struct source source = source_of(gpu, stream, mhz, sms);
    /* A slow SM takes less; its blocks are not distinguished from others. */
    bool slow = model->slow_sm >= 0 && model->slow_sm < (double)sms;
    double sm_share = slow ? 1 - (1 - 1 / (1 + model->slow_share)) / sms : 1;
    double unroll = stream->unroll ? stream->unroll : BEST_UNROLL;
    const struct stream_blocks run = {
        .sms = model->sms,
        .at_once = at_once,
        .blocks = blocks,
        .block_in_flight = stream->threads * unroll * stream->width_bytes,
        .sm_limit = source.sm_limit * mhz / 1e3 * sm_share,
        .level_limit = source.level_limit * share,
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
    double rate = on_device ? device_rate(gpu, stream, mhz, equal_share(model, stream))
                            : host_rate(gpu, stream->kind, false);
    rate = disturbed(gpu, rate);
    double ns = (double)stream->total_bytes / rate;
    gpu->busy_ns += ns;
    *out_answer = (struct device_stream_answer){.bytes = stream->total_bytes,
                                                .elapsed_ns = ns < 1 ? 1 : (uint64_t)(ns + 0.5)};
    return 0;
}

/* Between the first SM that ends and the last, of the whole time: chunks are small. */
static const double TICKETS_APART = 0.003;

int gpu_stream_tickets(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_tickets *asked = request;
    struct device_tickets_answer *out_answer = answer;
    struct gpu *gpu = (struct gpu *)device;
    const struct sim_model *model = &gpu->model;
    const struct device_stream stream = {.kind = asked->kind,
                                         .path = DEVICE_GLOBAL_CG,
                                         .footprint_bytes = asked->footprint_bytes,
                                         .total_bytes = asked->total_bytes,
                                         .width_bytes = 16,
                                         .threads = asked->threads,
                                         .blocks = asked->blocks_per_sm * model->sms,
                                         .unroll = asked->unroll};
    if (!model->paths[DEVICE_GLOBAL_CG].present)
        return err_set(err, -ENOTSUP, "this GPU has no such path");
    if (asked->threads > model->hardware.threads_per_block)
        return err_set(err, -EINVAL, "%u threads: a block has at most %u", asked->threads,
                       model->hardware.threads_per_block);
    gpu_update(gpu);
    bool equal = asked->equal_percent == 100;
    double share = equal ? equal_share(model, &stream) : 1;
    double rate = device_rate(gpu, &stream, gpu_clock_mhz(gpu, gpu->busy_ns), share);
    double ns = (double)asked->total_bytes / disturbed(gpu, rate);
    gpu->busy_ns += ns;
    *out_answer = (struct device_tickets_answer){.bytes = asked->total_bytes,
                                                 .elapsed_ns = ns < 1 ? 1 : (uint64_t)(ns + 0.5)};
    if (!asked->ends)
        return 0;
    /* The SMs end evenly apart; the last one with the stream. */
    const double apart = equal ? 2 * (1 - share) : TICKETS_APART;
    out_answer->end_count = model->sms;
    out_answer->end_ns = mem_array(model->sms, sizeof *out_answer->end_ns);
    for (uint32_t i = 0; i < model->sms; i++)
        out_answer->end_ns[i] = (uint64_t)(ns * (1 - apart * (model->sms - 1 - i) / model->sms));
    return 0;
}

/* Cycles of single loads on some SMs while nothing else runs: cold ones, whose pages were loaded,
 * or lines that L2 has. */
static int loaded_time_alone(struct gpu *gpu, const struct device_loaded_chase *asked,
                             struct device_answer *answers, struct err *err)
{
    enum { LINES = 128, LINE_BYTES = 512, NEIGHBOUR_BYTES = 256 };
    struct device_job jobs[DEVICE_LOADED_CHASERS_MAX];
    const struct device_batch batch = {.jobs = jobs, .job_count = asked->chasers, .at_once = 1};
    for (uint32_t i = 0; i < asked->chasers; i++) {
        const uint64_t bytes = LINES * LINE_BYTES;
        const struct device_array lines = {.path = DEVICE_GLOBAL_CG,
                                           .offset_bytes = i * bytes,
                                           .size_bytes = bytes,
                                           .stride_bytes = LINE_BYTES};
        jobs[i] = (struct device_job){.agent_count = 1, .step_count = 2, .cold_l2 = asked->cold};
        jobs[i].agents[0].sm = (int32_t)(i * gpu->model.sms / asked->chasers);
        jobs[i].steps[0].array = jobs[i].steps[1].array = lines;
        jobs[i].steps[0].array.offset_bytes += asked->cold ? NEIGHBOUR_BYTES : 0;
        jobs[i].steps[1].kind = DEVICE_CHASE;
    }
    return gpu_run_batch(&gpu->device, &batch, answers, err);
}

/* What the other SMs read follows from what is in flight, from the latency, which rises with it,
 * and from their limit; each timed load takes as much longer as theirs. */
int gpu_chase_loaded(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_loaded_chase *asked = request;
    struct device_loaded_chase_answer *out_answer = answer;
    struct gpu *gpu = (struct gpu *)device;
    const struct sim_model *model = &gpu->model;
    const struct device_stream stream = {.kind = DEVICE_STREAM_READ,
                                         .path = DEVICE_GLOBAL_CG,
                                         .footprint_bytes = asked->footprint_bytes};
    struct device_answer answers[DEVICE_LOADED_CHASERS_MAX] = {0};
    int rc = loaded_time_alone(gpu, asked, answers, err);
    if (rc)
        return rc;
    gpu_update(gpu);
    const double mhz = gpu_clock_mhz(gpu, gpu->busy_ns), ns = asked->window_cycles * 1e3 / mhz;
    const uint32_t others = model->sms - asked->chasers;
    const struct source source = source_of(gpu, &stream, mhz, model->sms);
    const double limit = (double)asked->limit_bytes / others / ns;
    const struct stream_blocks run = {
        .sms = others,
        .at_once = 1,
        .blocks = others,
        .block_in_flight = (double)DEVICE_LOADED_READ_BYTES * model->hardware.threads_per_sm / 2 /
                           model->hardware.warp_size,
        .sm_limit = fmin(source.sm_limit * mhz / 1e3, limit > 0 ? limit : INFINITY),
        .level_limit = source.level_limit,
        .latency_ns = source.latency_ns,
        .loaded_ns = source.loaded_ns};
    const double rate = asked->quiet ? 0 : stream_blocks_rate(&run);
    const double more_ns = fmax(0, source.loaded_ns - source.latency_ns) *
                           portable_pow(rate / source.level_limit, QUEUE_POWER);
    out_answer->bytes = asked->quiet ? 0 : (uint64_t)(disturbed(gpu, rate) * ns);
    out_answer->elapsed_ns = (uint64_t)fmax(ns, 1);
    for (uint32_t i = 0; i < asked->chasers; i++) {
        const struct device_sample *sample = &answers[i].samples[0];
        for (uint32_t k = 0; k < sample->bin_count; k++) {
            double cycles = device_bin_cycles(sample->bins[k].bin) + more_ns * mhz / 1e3;
            out_answer->loads += sample->bins[k].count;
            out_answer->cycles += (uint64_t)(cycles * sample->bins[k].count + 0.5);
            out_answer->squares += (uint64_t)(cycles * cycles * sample->bins[k].count + 0.5);
        }
    }
    device_answers_fini(answers, asked->chasers);
    gpu->busy_ns += ns;
    return 0;
}

/* The slices of a part serve its share of what L2 delivers; what goes to the other part passes the
 * way, which has a limit in each direction. */
int gpu_cross_way(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_way *asked = request;
    struct device_way_answer *out_answer = answer;
    struct gpu *gpu = (struct gpu *)device;
    const struct sim_model *model = &gpu->model;
    const struct sim_bandwidth *b = &model->bandwidth;
    (void)err;
    gpu_update(gpu);
    const double mhz = gpu_clock_mhz(gpu, gpu->busy_ns), clock = mhz / model->nominal_clock.sm_mhz;
    const double level = asked->work == DEVICE_WAY_READ ? b->l2_read : b->l2_write;
    double longest = 0;
    for (uint32_t part = 0; part < 2; part++) {
        double sms = 0, ns;
        double bytes = fmax((double)asked->total_bytes, (double)asked->footprint_bytes / 2);
        out_answer->lines[part] = asked->footprint_bytes / 2 / model->l2.geometry.line;
        for (uint32_t sm = 0; sm < model->sms; sm++)
            sms += asked->part_of_sm[sm] == part;
        if (!(asked->parts >> part & 1) || sms <= 0)
            continue;
        double rate = fmin(sms / asked->every * b->sm * mhz / 1e3, level / 2 * clock);
        rate = asked->far && b->l2_way > 0 ? fmin(rate, b->l2_way * clock) : rate;
        ns = bytes / disturbed(gpu, rate);
        longest = fmax(longest, ns);
        out_answer->bytes[part] = (uint64_t)(bytes / 2);
        out_answer->elapsed_ns[part] = (uint64_t)fmax(ns / 2, 1);
    }
    gpu->busy_ns += longest;
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
