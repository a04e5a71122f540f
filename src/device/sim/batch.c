/* Runs the jobs of a batch. Spreads them over the SMs, one after the other, or interleaved if SMs
 * share caches; executes the steps of a job a few loads at a time and collects the samples. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/portable_math.h"
#include "base/rng.h"
#include "device/sim/gpu.h"
#include "device/sim/route.h"

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

/* The clock is read once per chunk; a clock ramp of some milliseconds takes many chunks. */
enum { CHUNK_LOADS = 4096, SKIP_LOADS = 65536, BLOCK_LOADS = 64 };

static double run_clock_mhz(const struct run *run)
{
    return gpu_clock_mhz(run->gpu, run->now_ns);
}

static void pass_time(struct run *run, double cycles, double mhz)
{
    double ns = cycles / mhz * 1e3;
    run->cycles += cycles;
    run->step_ns += ns;
    run->now_ns += ns;
}

/* Sum of four uniform numbers: close enough to a normal distribution up to three deviations. It
 * uses integers only, so that every machine draws the same numbers. */
static inline double rough_normal(struct rng *rng)
{
    static const double mean = 4 * 32767.5, deviation = 37837.23; /* 65536 * sqrt(4 / 12) */
    uint64_t bits = rng_next(rng);
    uint64_t sum = (bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48);
    return ((double)sum - mean) * (1 / deviation);
}

/* Draws the number of loads until the next spike (geometric), so that not every load needs a
 * draw. */
static uint64_t draw_spike_distance(struct run *run)
{
    if (run->gpu->model.noise.spike_rate <= 0)
        return UINT64_MAX;
    double distance = portable_log(1 - rng_uniform(&run->noise)) / run->spike_log;
    return distance < 1e15 ? (uint64_t)distance : UINT64_MAX;
}

static double draw_spike(struct run *run)
{
    const struct sim_noise *noise = &run->gpu->model.noise;
    run->spike_in = draw_spike_distance(run);
    return noise->spike_cycles * (0.5 + rng_uniform(&run->noise));
}

static inline double draw_noise(struct run *run, double jitter_cycles)
{
    double cycles = jitter_cycles > 0 ? jitter_cycles * rough_normal(&run->noise) : 0;
    return run->spike_in-- ? cycles : cycles + draw_spike(run);
}

/* Latencies without noise of the walk's next loads, at most BLOCK_LOADS. Addresses, loads and noise
 * have separate loops: the processor cannot predict whether a load hits, and the other loops need
 * not wait for it. */
static void load_block(struct run *run, const struct device_step *step, struct walk *walk,
                       uint32_t count, double *out_cycles)
{
    uint64_t addresses[BLOCK_LOADS];
    walk_next(walk, addresses, count);
    if (step->lanes <= 1) {
        route_load(&run->route, addresses, count, &run->replacement, out_cycles);
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        out_cycles[i] = route_load_lanes(&run->route, addresses[i], step->lanes,
                                         step->lane_stride_bytes, &run->replacement);
}

/* What two clock reads around a load measure. */
static inline uint32_t time_load(const struct sim_model *model, double cycles, struct rng *rng)
{
    double granularity = model->timer_granularity_cycles;
    if (granularity > 1)
        cycles = granularity * floor(cycles / granularity + rng_uniform(rng));
    else
        cycles += 0.5;
    return cycles < 0 ? 0 : cycles > 4e9 ? UINT32_C(4000000000) : (uint32_t)cycles;
}

static uint64_t next_kept(const struct run *run)
{
    return run->kept_next < run->kept_count ? run->kept_next * run->loads / run->kept_count
                                            : UINT64_MAX;
}

static void run_chase(struct run *run, const struct device_step *step, struct walk *walk,
                      uint64_t loads)
{
    const struct sim_model *model = &run->gpu->model;
    double overhead = model->timer_overhead_cycles[step->array.path];
    uint64_t total = 0, end = run->done + loads, kept = next_kept(run);
    double block[BLOCK_LOADS];
    while (run->done < end) {
        uint32_t count = end - run->done < BLOCK_LOADS ? (uint32_t)(end - run->done) : BLOCK_LOADS;
        load_block(run, step, walk, count, block);
        for (uint32_t i = 0; i < count; i++) {
            double latency = block[i] + draw_noise(run, model->noise.jitter_cycles);
            latency = latency < 1 ? 1 : latency;
            uint32_t cycles = time_load(model, latency + overhead, &run->noise);
            total += cycles;
            run->counts[cycles < 256 ? cycles : device_bin_of(cycles)]++;
            if (run->done + i == kept) {
                run->kept[run->kept_next++] = cycles;
                kept = next_kept(run);
            }
        }
        run->done += count;
    }
    pass_time(run, (double)total, run_clock_mhz(run));
}

/* After a whole pass that brought nothing into any cache, every further pass is the same, so its
 * cycles are known without executing it. Only whole passes are skipped, so that the order of use
 * stays right. */
static void skip_passes(struct run *run, bool noisy, uint64_t pass)
{
    const struct sim_noise *noise = &run->gpu->model.noise;
    while (run->loads - run->done >= pass) {
        uint64_t passes = (run->loads - run->done) / pass;
        uint64_t most = SKIP_LOADS / pass ? SKIP_LOADS / pass : 1;
        passes = passes < most ? passes : most;
        double loads = (double)(passes * pass), cycles = (double)passes * run->pass_cycles;
        if (noisy) {
            uint64_t left = passes * pass;
            cycles += sqrt(loads) * noise->jitter_cycles * rough_normal(&run->noise);
            for (; run->spike_in < left; cycles += draw_spike(run))
                left -= run->spike_in + 1;
            run->spike_in -= left;
            cycles = cycles < loads ? loads : cycles;
        }
        run->done += passes * pass;
        pass_time(run, cycles, run_clock_mhz(run));
    }
}

/* Executes loads that are not timed one by one. */
static void stride_along(struct run *run, const struct device_step *step, struct walk *walk,
                         uint64_t loads)
{
    double jitter = run->gpu->model.noise.jitter_cycles;
    bool noisy = step->kind == DEVICE_AVERAGE;
    loads = loads < run->pass_left ? loads : run->pass_left;
    double pure = 0, total = 0, block[BLOCK_LOADS];
    for (uint64_t begun = 0; begun < loads; begun += BLOCK_LOADS) {
        uint32_t count = loads - begun < BLOCK_LOADS ? (uint32_t)(loads - begun) : BLOCK_LOADS;
        load_block(run, step, walk, count, block);
        for (uint32_t i = 0; i < count; i++) {
            double latency = block[i];
            pure += latency;
            latency += noisy ? draw_noise(run, jitter) : 0;
            total += latency < 1 ? 1 : latency;
        }
    }
    run->done += loads;
    run->pass_left -= loads;
    run->pass_cycles += pure;
    pass_time(run, total, run_clock_mhz(run));
    if (run->pass_left)
        return;
    uint64_t fills = route_fills(&run->route);
    if (run->alone && fills == run->pass_fills && !run->route.host)
        skip_passes(run, noisy, walk->count);
    run->pass_left = walk->count;
    run->pass_fills = fills;
    run->pass_cycles = 0;
}

/* All warps of one SM load the array. */
static void run_fill(struct run *run, const struct device_step *step)
{
    const struct device_array *array = &step->array;
    uint64_t count = array->size_bytes / array->stride_bytes;
    for (uint64_t i = 0; i < count; i++)
        route_fill(&run->route, array->offset_bytes + i * array->stride_bytes, &run->replacement);
    run->done = run->loads;
    pass_time(run, (double)array->size_bytes / run->gpu->model.bandwidth.sm, run_clock_mhz(run));
}

static bool run_same_array(const struct device_array *a, const struct device_array *b)
{
    return a->path == b->path && a->offset_bytes == b->offset_bytes &&
           a->size_bytes == b->size_bytes && a->stride_bytes == b->stride_bytes &&
           a->order == b->order && a->seed == b->seed;
}

static int run_begin_step(struct run *run, struct err *err)
{
    const struct device_step *step = &run->job->steps[run->step];
    struct run_agent *agent = &run->agents[step->agent];
    struct route_place place = {.context = agent->context,
                                .sm = agent->sm,
                                .warp = run->job->agents[step->agent].warp,
                                .l1_bytes = run->l1_bytes,
                                .epoch = run->epoch,
                                .launch = run->gpu->launch_number};
    if (step->array.path == DEVICE_SHARED && device_step_end_bytes(step) > run->shared_bytes)
        return err_set(err, -EINVAL, "the array ends past the %llu bytes of shared memory granted",
                       (unsigned long long)run->shared_bytes);
    int rc = route_prepare(run->gpu, step->array.path, &place, &run->route, err);
    if (rc)
        return rc;
    if (!agent->walked || !run_same_array(&agent->array, &step->array)) {
        walk_init(&agent->walk, &step->array, step->start);
        agent->array = step->array;
        agent->walked = true;
    }
    run->loads = step->loads ? step->loads : agent->walk.count;
    run->done = 0;
    run->cycles = run->step_ns = run->pass_cycles = 0;
    run->pass_left = agent->walk.count;
    run->pass_fills = route_fills(&run->route);
    if (step->kind == DEVICE_CHASE) {
        memset(run->counts, 0, sizeof run->counts);
        run->kept_next = 0;
        run->kept_count = step->keep < run->loads ? step->keep : (uint32_t)run->loads;
        run->kept = mem_array(run->kept_count, sizeof *run->kept);
    }
    run->started = true;
    return 0;
}

static void collect_bins(const struct run *run, struct device_sample *sample)
{
    uint32_t used = 0;
    for (uint32_t i = 0; i < DEVICE_BIN_COUNT; i++)
        used += run->counts[i] > 0;
    sample->bins = mem_array(used, sizeof *sample->bins);
    for (uint32_t i = 0; i < DEVICE_BIN_COUNT; i++)
        if (run->counts[i])
            sample->bins[sample->bin_count++] =
                (struct device_bin){.bin = (uint16_t)i, .count = run->counts[i]};
}

static void run_end_step(struct run *run)
{
    const struct device_step *step = &run->job->steps[run->step];
    const struct run_agent *agent = &run->agents[step->agent];
    struct device_sample sample = {
        .step = run->step, .sm = (int32_t)agent->sm, .loads = run->loads};
    if (step->kind == DEVICE_AVERAGE)
        pass_time(run, run->gpu->model.timer_overhead_cycles[step->array.path], run_clock_mhz(run));
    sample.total_cycles = (uint64_t)(run->cycles + 0.5);
    sample.elapsed_ns = (uint64_t)(run->step_ns * (1 + run->gpu->model.timer_error) + 0.5);
    if (step->kind == DEVICE_CHASE) {
        collect_bins(run, &sample);
        sample.kept = run->kept;
        sample.kept_count = run->kept_count;
        run->kept = NULL;
    }
    if (step->kind == DEVICE_CHASE || step->kind == DEVICE_AVERAGE)
        run->answer->samples[run->answer->sample_count++] = sample;
    run->started = false;
    run->step++;
}

static void run_advance(struct run *run, uint64_t loads)
{
    const struct device_step *step = &run->job->steps[run->step];
    struct walk *walk = &run->agents[step->agent].walk;
    uint64_t left = run->loads - run->done;
    loads = loads < left ? loads : left;
    loads = loads < CHUNK_LOADS ? loads : CHUNK_LOADS;
    route_set_clock(&run->route, run_clock_mhz(run) / run->gpu->model.nominal_clock.sm_mhz);
    if (step->kind == DEVICE_FILL)
        run_fill(run, step);
    else if (step->kind == DEVICE_CHASE)
        run_chase(run, step, walk, loads);
    else
        stride_along(run, step, walk, loads);
}

/* Executes about `loads` further loads. 1: the job is not done; 0: it is done; negative: failed. */
static int run_some(struct run *run, uint64_t loads, struct err *err)
{
    for (uint64_t used = 0; used < loads && run->step < run->job->step_count;) {
        if (!run->started) {
            int rc = run_begin_step(run, err);
            if (rc)
                return rc;
        }
        uint64_t before = run->done;
        run_advance(run, loads - used);
        used += run->done - before;
        if (run->done == run->loads)
            run_end_step(run);
    }
    return run->step < run->job->step_count;
}

/* Places the job on its SMs; the caller has set agents[i].context and .sm. number: of the job among
 * all that the GPU ever ran; it determines the noise. */
static int run_begin(struct run *run, struct gpu *gpu, const struct device_job *job,
                     struct device_answer *answer, uint64_t number, struct err *err)
{
    const struct sim_model *model = &gpu->model;
    struct run_agent agents[DEVICE_AGENTS_MAX];
    memcpy(agents, run->agents, sizeof agents);
    memset(run, 0, sizeof *run);
    for (int i = 0; i < DEVICE_AGENTS_MAX; i++)
        run->agents[i] = (struct run_agent){.context = agents[i].context, .sm = agents[i].sm};
    run->gpu = gpu;
    run->job = job;
    run->answer = answer;
    run->epoch = number + 1;
    run->now_ns = gpu->busy_ns;
    run->shared_bytes = model->shared_bytes_max;
    rng_init(&run->noise, rng_derive(gpu->noise_seed, "job", number), "noise");
    rng_init(&run->replacement, rng_derive(gpu->noise_seed, "job", number), "replacement");
    run->spike_log = portable_log1p(-model->noise.spike_rate);
    run->spike_in = draw_spike_distance(run);
    if (!model->carveout.present)
        return 0;
    uint64_t granted;
    int rc = sim_carveout_grant(&model->carveout, job->shared_bytes, &granted, &run->l1_bytes, err);
    if (rc)
        return rc;
    run->l1_bytes = (uint64_t)((double)run->l1_bytes * model->l1_share);
    run->shared_bytes = granted - model->carveout.reserve;
    return 0;
}

/* Releases what a failed or unfinished run holds. */
static void run_abandon(struct run *run)
{
    free(run->kept);
    run->kept = NULL;
}

/* Loads that a job executes before another one in flight gets its turn. */
enum { QUANTUM_LOADS = 16, SERIAL_LOADS = 1 << 30 };

/* Where the jobs of one wave run: jobs first .. first + count - 1. */
struct wave {
    size_t first, count;
    uint32_t sms[SIM_SMS_MAX][DEVICE_AGENTS_MAX];
    bool taken[SIM_SMS_MAX];
};

/* First free SM from `from` on, wrapping around; sm_count when none is free. */
static uint32_t wave_free_sm(const struct wave *wave, uint32_t sm_count, uint32_t from)
{
    for (uint32_t i = 0; i < sm_count; i++)
        if (!wave->taken[(from + i) % sm_count])
            return (from + i) % sm_count;
    return sm_count;
}

/* False: the job has to wait for an SM. */
static bool place_job(struct wave *wave, const struct device_job *job, uint32_t sm_count,
                      uint32_t at_once)
{
    const struct device_agent *agents = job->agents;
    /* Spread evenly: with half as many jobs as SMs, each pair of SMs gets one. */
    uint32_t preferred = (uint32_t)((uint64_t)wave->count * sm_count / at_once);
    uint32_t sm =
        agents[0].sm >= 0 ? (uint32_t)agents[0].sm : wave_free_sm(wave, sm_count, preferred);
    if (sm == sm_count || wave->taken[sm])
        return false;
    uint32_t other = sm;
    if (job->agent_count > 1 && agents[1].sm != DEVICE_SM_SAME) {
        wave->taken[sm] = true;
        other = agents[1].sm >= 0 ? (uint32_t)agents[1].sm : wave_free_sm(wave, sm_count, sm + 1);
        bool waits = other == sm_count || (other != sm && wave->taken[other]);
        wave->taken[sm] = false;
        if (waits)
            return false;
    }
    wave->taken[sm] = wave->taken[other] = true;
    wave->sms[wave->count][0] = sm;
    wave->sms[wave->count][1] = other;
    wave->count++;
    return true;
}

static void wave_build(struct wave *wave, const struct device_batch *batch, size_t first,
                       uint32_t sm_count)
{
    uint32_t at_once = batch->at_once && batch->at_once < sm_count ? batch->at_once : sm_count;
    memset(wave->taken, 0, sizeof wave->taken);
    wave->first = first;
    wave->count = 0;
    while (first + wave->count < batch->job_count && wave->count < at_once &&
           place_job(wave, &batch->jobs[first + wave->count], sm_count, at_once))
        ;
}

static bool uses_wide_cache(const struct sim_model *model, const struct device_job *job)
{
    for (uint32_t i = 0; i < job->step_count; i++) {
        const struct sim_path *path = &model->paths[job->steps[i].array.path];
        for (uint32_t k = 0; k < path->cache_count; k++)
            if (model->caches[path->caches[k]].scope != SIM_SCOPE_SM)
                return true;
    }
    return false;
}

static bool must_interleave(const struct sim_model *model, const struct device_batch *batch,
                            const struct wave *wave)
{
    size_t users = 0;
    for (size_t i = 0; i < wave->count; i++)
        users += uses_wide_cache(model, &batch->jobs[wave->first + i]);
    return users > 1;
}

static void wait_hang_or_crash(struct gpu *gpu)
{
    if (gpu->model.wait_s > 0) {
        double seconds = gpu->model.wait_s;
        struct timespec left = {.tv_sec = (time_t)seconds,
                                .tv_nsec = (long)((seconds - floor(seconds)) * 1e9)};
        gpu->model.wait_s = 0;
        while (nanosleep(&left, &left) && errno == EINTR)
            ;
    }
    if (gpu->model.hang_after >= 0 && gpu->job_number >= (uint64_t)gpu->model.hang_after)
        for (;;)
            pause();
    if (gpu->model.crash_after >= 0 && gpu->job_number >= (uint64_t)gpu->model.crash_after) {
        /* As a fault in a driver library does: no handler of the program is called. */
        signal(SIGSEGV, SIG_DFL);
        raise(SIGSEGV);
    }
}

/* slot: the run and the contexts to use. */
static int wave_start_job(struct gpu *gpu, const struct device_batch *batch,
                          const struct wave *wave, size_t i, size_t slot,
                          struct device_answer *answers, struct err *err)
{
    const struct device_job *job = &batch->jobs[wave->first + i];
    struct run *run = &gpu->runs[slot];
    struct sm_context *contexts = &gpu->contexts[slot * DEVICE_AGENTS_MAX];
    bool same = wave->sms[i][0] == wave->sms[i][1];
    wait_hang_or_crash(gpu);
    for (int p = 0; job->cold_l2 && p < SIM_PARTS_MAX && gpu->l2[p]; p++)
        cache_reset(gpu->l2[p], gpu->l2[p]->geometry.size);
    run->agents[0].context = &contexts[0];
    run->agents[1].context = same ? &contexts[0] : &contexts[1];
    run->agents[0].sm = wave->sms[i][0];
    run->agents[1].sm = wave->sms[i][1];
    return run_begin(run, gpu, job, &answers[wave->first + i], gpu->job_number++, err);
}

static int run_serially(struct gpu *gpu, const struct device_batch *batch, const struct wave *wave,
                        struct device_answer *answers, double *latest_ns, struct err *err)
{
    for (size_t i = 0; i < wave->count; i++) {
        struct run *run = &gpu->runs[0];
        int rc = wave_start_job(gpu, batch, wave, i, 0, answers, err);
        run->alone = true;
        while (!rc && (rc = run_some(run, SERIAL_LOADS, err)) > 0)
            rc = 0;
        run_abandon(run);
        if (rc)
            return rc;
        *latest_ns = run->now_ns > *latest_ns ? run->now_ns : *latest_ns;
    }
    return 0;
}

/* The job that has executed the fewest loads; count when all are done. */
static size_t least_advanced(const struct run *runs, const bool *active, size_t count)
{
    size_t least = count;
    for (size_t i = 0; i < count; i++)
        if (active[i] && (least == count || runs[i].now_ns < runs[least].now_ns))
            least = i;
    return least;
}

static int run_interleaved(struct gpu *gpu, const struct device_batch *batch,
                           const struct wave *wave, struct device_answer *answers,
                           double *latest_ns, struct err *err)
{
    bool active[SIM_SMS_MAX] = {false};
    int rc = 0;
    size_t begun = 0, next;
    for (; !rc && begun < wave->count; begun++) {
        rc = wave_start_job(gpu, batch, wave, begun, begun, answers, err);
        active[begun] = true;
    }
    while (rc >= 0 && (next = least_advanced(gpu->runs, active, begun)) < begun) {
        rc = run_some(&gpu->runs[next], QUANTUM_LOADS, err);
        active[next] = rc > 0;
    }
    for (size_t i = 0; i < begun; i++) {
        run_abandon(&gpu->runs[i]);
        *latest_ns = gpu->runs[i].now_ns > *latest_ns ? gpu->runs[i].now_ns : *latest_ns;
    }
    return rc;
}

int gpu_run_batch(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_batch *batch = request;
    struct device_answer *answers = answer;
    struct gpu *gpu = (struct gpu *)device;
    struct wave *wave = mem_array(1, sizeof *wave);
    int rc = 0;
    for (size_t first = 0; !rc && first < batch->job_count; first += wave->count) {
        wave_build(wave, batch, first, gpu->model.sms);
        gpu->launch_number++;
        gpu_update(gpu);
        bool together = must_interleave(&gpu->model, batch, wave);
        double latest_ns = gpu->busy_ns;
        size_t runs = together ? wave->count : 1;
        gpu->runs = mem_grow(gpu->runs, &gpu->run_count, runs, sizeof *gpu->runs);
        gpu->contexts = mem_grow(gpu->contexts, &gpu->context_count, runs * DEVICE_AGENTS_MAX,
                                 sizeof *gpu->contexts);
        rc = together ? run_interleaved(gpu, batch, wave, answers, &latest_ns, err)
                      : run_serially(gpu, batch, wave, answers, &latest_ns, err);
        gpu->busy_ns = latest_ns;
    }
    if (rc)
        device_answers_fini(answers, batch->job_count);
    free(wave);
    return rc;
}
