/* The part of the device interface that all backends share: checks, bins, warm-up. */
#include "device/device.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "device/instruction.h"

enum { EXACT_BINS = 256, OCTAVE_BINS = 128, FIRST_OCTAVE = 8, LANES_MAX = 32, WORD_BYTES = 4 };

uint32_t device_bin_of(uint32_t cycles)
{
    if (cycles < EXACT_BINS)
        return cycles;
    uint32_t octave = 31 - (uint32_t)__builtin_clz(cycles);
    uint32_t bin =
        EXACT_BINS + (octave - FIRST_OCTAVE) * OCTAVE_BINS + ((cycles >> (octave - 7)) & 127);
    return bin < DEVICE_BIN_COUNT ? bin : DEVICE_BIN_COUNT - 1;
}

double device_bin_cycles(uint32_t bin)
{
    if (bin < EXACT_BINS)
        return bin;
    uint32_t shift = (bin - EXACT_BINS) / OCTAVE_BINS + 1;
    uint32_t step = (bin - EXACT_BINS) % OCTAVE_BINS;
    double low = (double)((uint64_t)(OCTAVE_BINS + step) << shift);
    return low + ((double)(UINT64_C(1) << shift) - 1) / 2;
}

static uint64_t path_bytes(const struct device_limits *limits, enum device_path path)
{
    switch (path) {
    case DEVICE_CONSTANT:
        return limits->constant_bytes;
    case DEVICE_SHARED:
        return limits->shared_array_bytes;
    case DEVICE_HOST:
        return limits->host_bytes;
    default:
        return limits->global_bytes;
    }
}

/* Steps of some kinds may reach further than global_bytes. */
static uint64_t step_bytes(const struct device_limits *limits, const struct device_step *step)
{
    enum device_path path = step->array.path;
    uint64_t room = path_bytes(limits, path);
    bool wide = device_step_may_be_wide(step);
    return wide && room && limits->wide_bytes > room ? limits->wide_bytes : room;
}

static int check_array(const struct device_limits *limits, const struct device_step *step,
                       struct err *err)
{
    const struct device_array *array = &step->array;
    if ((unsigned)array->path >= DEVICE_PATH_COUNT || (unsigned)array->order > DEVICE_DESCENDING)
        return err_set(err, -EINVAL, "no such path or order");
    if (array->stride_bytes == 0 || array->stride_bytes % WORD_BYTES ||
        array->offset_bytes % WORD_BYTES)
        return err_set(err, -EINVAL, "stride and offset must be multiples of %d bytes", WORD_BYTES);
    if (array->size_bytes < array->stride_bytes)
        return err_set(err, -EINVAL, "an array of %llu bytes has no element of stride %llu",
                       (unsigned long long)array->size_bytes,
                       (unsigned long long)array->stride_bytes);
    uint64_t elements = array->size_bytes / array->stride_bytes;
    if (step->start >= elements)
        return err_set(err, -EINVAL, "start %llu is past the last of %llu elements",
                       (unsigned long long)step->start, (unsigned long long)elements);
    if ((step->loads ? step->loads : elements) > UINT32_MAX)
        return err_set(err, -EINVAL, "more loads in one step than a histogram can count");
    uint64_t room = step_bytes(limits, step);
    /* Not device_step_end_bytes: it could overflow, since nothing is checked yet. */
    if (room && (array->offset_bytes > room || array->size_bytes > room - array->offset_bytes ||
                 device_lane_span_bytes(step) > room - array->offset_bytes - array->size_bytes))
        return err_set(err, -EINVAL, "the array ends past the memory's %llu bytes",
                       (unsigned long long)room);
    return 0;
}

uint32_t device_keep_max(const struct device_job *job)
{
    uint32_t timed = 0;
    for (uint32_t i = 0; i < job->step_count; i++)
        timed += job->steps[i].kind == DEVICE_CHASE;
    return timed > 1 ? DEVICE_KEEP_SEVERAL : DEVICE_KEEP_ONE;
}

static int check_keep(const struct device_job *job, const struct device_step *step, struct err *err)
{
    uint64_t loads = step->loads ? step->loads : step->array.size_bytes / step->array.stride_bytes;
    uint64_t kept = step->keep < loads ? step->keep : loads;
    if (step->kind != DEVICE_CHASE || kept <= device_keep_max(job))
        return 0;
    return err_set(err, -EINVAL, "%llu latencies to keep: at most %u of each timed chase here",
                   (unsigned long long)kept, device_keep_max(job));
}

static int check_step(const struct device_limits *limits, const struct device_job *job,
                      const struct device_step *step, struct err *err)
{
    if ((unsigned)step->kind > DEVICE_FILL)
        return err_set(err, -EINVAL, "no such kind of step");
    if (step->agent >= job->agent_count)
        return err_set(err, -EINVAL, "the job has no agent %u", step->agent);
    if (step->lanes > LANES_MAX)
        return err_set(err, -EINVAL, "%u lanes: a warp has %d", step->lanes, LANES_MAX);
    int rc = check_array(limits, step, err);
    return rc ? rc : check_keep(job, step, err);
}

static int check_agent(const struct device_limits *limits, const struct device_agent *agent,
                       bool first, struct err *err)
{
    bool named = agent->sm >= 0 && (!limits->sm_count || (uint32_t)agent->sm < limits->sm_count);
    bool relative = !first && (agent->sm == DEVICE_SM_SAME || agent->sm == DEVICE_SM_OTHER);
    if (!named && !relative && agent->sm != DEVICE_SM_ANY)
        return err_set(err, -EINVAL, "no SM %d for this agent", agent->sm);
    if (agent->sm == DEVICE_SM_OTHER && limits->sm_count == 1)
        return err_set(err, -EINVAL, "there is no other SM");
    if (limits->warp_count && agent->warp >= limits->warp_count)
        return err_set(err, -EINVAL, "warp %u: a block has %u", agent->warp, limits->warp_count);
    return 0;
}

static int check_job(const struct device_limits *limits, const struct device_job *job,
                     struct err *err)
{
    if (job->agent_count < 1 || job->agent_count > DEVICE_AGENTS_MAX || job->step_count < 1 ||
        job->step_count > DEVICE_STEPS_MAX)
        return err_set(err, -EINVAL, "%u agents and %u steps", job->agent_count, job->step_count);
    if (limits->shared_bytes_max && job->shared_bytes > limits->shared_bytes_max)
        return err_set(err, -EINVAL, "a block has at most %llu bytes of shared memory",
                       (unsigned long long)limits->shared_bytes_max);
    for (uint32_t i = 0; i < job->agent_count; i++) {
        int rc = check_agent(limits, &job->agents[i], i == 0, err);
        if (rc)
            return rc;
    }
    for (uint32_t i = 0; i < job->step_count; i++) {
        int rc = check_step(limits, job, &job->steps[i], err);
        if (rc) {
            err_prefix(err, "step %u", i);
            return rc;
        }
    }
    return 0;
}

/* What is left of latencies of which only a side of split_cycles was asked for. It is done here and
 * not by the backends, so that a recorder sees the same as they do. */
static void split_samples(const struct device_job *job, struct device_answer *answer)
{
    for (uint32_t i = 0; i < answer->sample_count; i++) {
        struct device_sample *sample = &answer->samples[i];
        uint32_t split = job->steps[sample->step].split_cycles;
        if (!split)
            continue;
        free(sample->bins);
        sample->bins = NULL;
        sample->bin_count = 0;
        for (uint32_t k = 0; k < sample->kept_count; k++)
            sample->kept[k] = sample->kept[k] > split ? UINT32_MAX : 0;
    }
}

int device_run(struct device *device, const struct device_batch *batch,
               struct device_answer *answers, struct err *err)
{
    for (size_t i = 0; i < batch->job_count; i++) {
        int rc = check_job(&device->limits, &batch->jobs[i], err);
        if (rc) {
            err_prefix(err, "job %zu", i);
            return rc;
        }
        answers[i] = (struct device_answer){0};
    }
    int rc = device->ops->run_batch(device, batch, answers, err);
    for (size_t i = 0; i < batch->job_count && !rc; i++)
        split_samples(&batch->jobs[i], &answers[i]);
    return rc;
}

void device_answers_fini(struct device_answer *answers, size_t count)
{
    for (size_t i = 0; answers && i < count; i++) {
        for (uint32_t k = 0; k < answers[i].sample_count; k++) {
            free(answers[i].samples[k].bins);
            free(answers[i].samples[k].kept);
        }
        answers[i] = (struct device_answer){0};
    }
}

int device_identify(struct device *device, struct facts *hardware, struct facts *board,
                    struct facts *config, struct err *err)
{
    return device->ops->identify(device, hardware, board, config, err);
}

/* One access of every thread of a block to every array. */
static uint64_t least_bytes(const struct device_stream *stream)
{
    return (uint64_t)stream->threads * stream->width_bytes * device_stream_arrays(stream->kind);
}

static int check_stream(const struct device_limits *limits, const struct device_stream *stream,
                        struct err *err)
{
    if ((unsigned)stream->kind >= DEVICE_STREAM_KIND_COUNT)
        return err_set(err, -EINVAL, "no such kind of stream");
    bool partly = !device_stream_uses_host(stream->kind) && stream->path == DEVICE_GLOBAL_CG &&
                  stream->total_bytes >= least_bytes(stream);
    if (!stream->footprint_bytes || (stream->total_bytes < stream->footprint_bytes && !partly))
        return err_set(err, -EINVAL, "a stream passes over its footprint at least once");
    if (device_stream_uses_host(stream->kind))
        return 0;
    if (stream->path != DEVICE_GLOBAL_CA && stream->path != DEVICE_GLOBAL_CG &&
        stream->path != DEVICE_SHARED)
        return err_set(err, -EINVAL, "this path cannot be streamed");
    uint32_t width = stream->width_bytes;
    if (width < 1 || width > 16 || (width & (width - 1)))
        return err_set(err, -EINVAL, "accesses are 1, 2, 4, 8 or 16 bytes wide, not %u", width);
    if (!stream->threads)
        return err_set(err, -EINVAL, "a block has at least one thread");
    uint64_t room = path_bytes(limits, stream->path);
    if (room && stream->footprint_bytes > room)
        return err_set(err, -EINVAL, "the footprint is larger than the memory's %llu bytes",
                       (unsigned long long)room);
    return 0;
}

int device_stream(struct device *device, const struct device_stream *stream,
                  struct device_stream_answer *out_answer, struct err *err)
{
    int rc = check_stream(&device->limits, stream, err);
    return rc ? rc : device->ops->run_stream(device, stream, out_answer, err);
}

int device_read_clocks(struct device *device, struct device_clocks *out_clocks, struct err *err)
{
    return device->ops->read_clocks(device, out_clocks, err);
}

void device_begin_link(struct device *device, struct device_link *out_link)
{
    *out_link = (struct device_link){.alone = true, .near = true};
    if (device->ops->begin_link)
        device->ops->begin_link(device, out_link);
}

void device_end_link(struct device *device)
{
    if (device->ops->end_link)
        device->ops->end_link(device);
}

int device_test_memory(struct device *device, const struct device_memory_test *test,
                       struct device_memory_map *out_map, struct err *err)
{
    *out_map = (struct device_memory_map){0};
    if (test->region_bytes < DEVICE_REGION_MIN || (test->region_bytes & (test->region_bytes - 1)))
        return err_set(err, -EINVAL, "regions are powers of two of at least %d MiB",
                       DEVICE_REGION_MIN >> 20);
    if (!test->patterns || test->patterns > DEVICE_PATTERN_COUNT)
        return err_set(err, -EINVAL, "there are %d patterns", DEVICE_PATTERN_COUNT);
    if (!device->ops->test_memory)
        return err_set(err, -ENOTSUP, "this device cannot test its memory");
    int rc = device->ops->test_memory(device, test, out_map, err);
    if (rc)
        device_memory_map_fini(out_map);
    return rc;
}

void device_memory_map_fini(struct device_memory_map *map)
{
    free(map->regions);
    *map = (struct device_memory_map){0};
}

int device_check_unit(struct device *device, const struct device_check *check,
                      struct device_check_answer *out_answer, struct err *err)
{
    *out_answer = (struct device_check_answer){0};
    if ((unsigned)check->unit >= DEVICE_UNIT_COUNT)
        return err_set(err, -EINVAL, "no such unit");
    if (!device->ops->check_unit)
        return err_set(err, -ENOTSUP, "this device cannot check its SMs");
    int rc = device->ops->check_unit(device, check, out_answer, err);
    if (rc)
        device_check_answer_fini(out_answer);
    return rc;
}

void device_check_answer_fini(struct device_check_answer *answer)
{
    free(answer->places);
    *answer = (struct device_check_answer){0};
}

static int check_map(const struct device *device, const struct device_sm_map *map, struct err *err)
{
    uint64_t footprint = map->footprint_bytes;
    if (map->kind == DEVICE_SM_MAP_MEMORY)
        return map->regions && map->regions <= DEVICE_SM_MAP_REGIONS_MAX && map->loads &&
                       map->loads <= DEVICE_SM_MAP_LOADS_MAX
                   ? 0
                   : err_set(err, -EINVAL, "at most %d regions and %d loads",
                             DEVICE_SM_MAP_REGIONS_MAX, DEVICE_SM_MAP_LOADS_MAX);
    if (map->kind != DEVICE_SM_MAP_READ || !map->window_cycles || !map->turns)
        return err_set(err, -EINVAL, "a map of reads has turns and a window");
    if (footprint < DEVICE_REGION_MIN || (footprint & (footprint - 1)))
        return err_set(err, -EINVAL, "a footprint is a power of two of at least %d MiB",
                       DEVICE_REGION_MIN >> 20);
    for (uint32_t i = 0; i < device->limits.sm_count; i++)
        if (map->turns[i] >= device->limits.sm_count)
            return err_set(err, -EINVAL, "SM %u has turn %u: there are not more turns than SMs", i,
                           map->turns[i]);
    return 0;
}

int device_map_sms(struct device *device, const struct device_sm_map *map,
                   struct device_sm_map_answer *out_answer, struct err *err)
{
    *out_answer = (struct device_sm_map_answer){0};
    int rc = check_map(device, map, err);
    if (rc)
        return rc;
    if (!device->ops->map_sms || !device->limits.sm_count)
        return err_set(err, -ENOTSUP, "this device cannot measure single SMs");
    rc = device->ops->map_sms(device, map, out_answer, err);
    if (rc)
        device_sm_map_answer_fini(out_answer);
    return rc;
}

void device_sm_map_answer_fini(struct device_sm_map_answer *answer)
{
    free(answer->values);
    *answer = (struct device_sm_map_answer){0};
}

int device_run_load(struct device *device, const struct device_load *load,
                    struct device_load_answer *out_answer, struct err *err)
{
    *out_answer = (struct device_load_answer){
        .start_known = true, .waited_ms = load->waited_ms, .alone = load->alone};
    if (!load->duration_ms || !load->sample_ms || !load->limit_ms)
        return err_set(err, -EINVAL, "a load has a duration, a limit and samples");
    if (!device->ops->run_load)
        return err_set(err, -ENOTSUP, "this device cannot be put under load");
    int rc = device->ops->run_load(device, load, out_answer, err);
    if (rc)
        device_load_answer_fini(out_answer);
    return rc;
}

int device_load_answer_add(struct device_load_answer *answer,
                           const struct device_load_sample *sample)
{
    size_t count = answer->sample_count;
    if (!(count & (count - 1))) { /* grows at 0 and at every power of two */
        struct device_load_sample *grown = mem_array(count ? 2 * count : 1, sizeof *grown);
        if (!grown)
            return -ENOMEM;
        if (count)
            memcpy(grown, answer->samples, count * sizeof *grown);
        free(answer->samples);
        answer->samples = grown;
    }
    answer->samples[answer->sample_count++] = *sample;
    return 0;
}

void device_load_answer_fini(struct device_load_answer *answer)
{
    free(answer->samples);
    *answer = (struct device_load_answer){0};
}

static int check_code(const struct device_code *code, struct err *err)
{
    if (code->instruction >= instruction_count)
        return err_set(err, -EINVAL, "no instruction %u", code->instruction);
    if (!code->chains || code->chains > INSTRUCTION_CHAINS_MAX || !code->warps ||
        code->warps > INSTRUCTION_WARPS_MAX || !code->repeats)
        return err_set(err, -EINVAL, "%u chains, %u warps, %u repeats", code->chains, code->warps,
                       code->repeats);
    if (!code->length || code->length > INSTRUCTION_LENGTH_MAX || code->length % code->chains)
        return err_set(err, -EINVAL, "%u instructions in %u chains", code->length, code->chains);
    return 0;
}

int device_run_code(struct device *device, const struct device_code *code,
                    struct device_code_answer *out_answer, struct err *err)
{
    *out_answer = (struct device_code_answer){0};
    int rc = check_code(code, err);
    if (rc)
        return rc;
    if (!device->ops->run_code)
        return err_set(err, -ENOSYS, "this device executes no code");
    return device->ops->run_code(device, code, out_answer, err);
}

int device_list_peers(struct device *device, struct facts *out_gpus, struct err *err)
{
    if (!device->ops->list_peers)
        return err_set(err, -ENOTSUP, "other GPUs of the node are not known");
    return device->ops->list_peers(device, out_gpus, err);
}

int device_test_peer(struct device *device, const struct device_peer_test *test,
                     struct device_peer_answer *out_answer, struct err *err)
{
    if (test->peer >= DEVICE_PEERS_MAX)
        return err_set(err, -EINVAL, "at most %d GPUs of a node are looked at", DEVICE_PEERS_MAX);
    if (test->bytes < DEVICE_REGION_MIN || test->bytes % DEVICE_REGION_MIN || !test->loads)
        return err_set(err, -EINVAL, "transfers are multiples of %d MiB, and loads at least 1",
                       DEVICE_REGION_MIN >> 20);
    if (!device->ops->test_peer)
        return err_set(err, -ENOTSUP, "links to other GPUs cannot be measured");
    return device->ops->test_peer(device, test, out_answer, err);
}

int device_share_host(struct device *device, const struct device_host_share *asked,
                      struct device_host_share_answer *out_answer, struct err *err)
{
    if (asked->kind < DEVICE_STREAM_H2D || asked->kind > DEVICE_STREAM_BIDIR || !asked->bytes)
        return err_set(err, -EINVAL, "not a copy between host and GPU");
    if (!device->ops->share_host)
        return err_set(err, -ENOTSUP, "other GPUs of the node are not known");
    return device->ops->share_host(device, asked, out_answer, err);
}

int device_read_health(struct device *device, struct facts *config, struct facts *health,
                       struct err *err)
{
    return device->ops->read_health ? device->ops->read_health(device, config, health, err) : 0;
}

void device_mark(struct device *device, const char *what)
{
    if (device->ops->mark)
        device->ops->mark(device, what);
}

bool device_knows(struct device *device, const char *what)
{
    return !device->ops->knows || device->ops->knows(device, what);
}

const struct device_limits *device_limits(const struct device *device)
{
    return &device->limits;
}

void device_destroy(struct device *device)
{
    if (device)
        device->ops->destroy(device);
}

/* A round lasts some milliseconds at full speed. The clock counts as stable when a window of
 * rounds, longer than the driver's steps between clocks, agrees within a per cent. */
enum { WARM_LOADS = 200000, WARM_BYTES = 2048, WARM_STRIDE = 128, WARM_WINDOW = 8 };
enum { WARM_ROUNDS_MAX = 600 };
static const double warm_agreement = 0.01;

static int warm_round(struct device *device, const struct device_batch *batch,
                      struct device_answer *answers, double *out_mhz, struct err *err)
{
    int rc = device_run(device, batch, answers, err);
    if (rc)
        return rc;
    double cycles = 0, ns = 0;
    for (size_t i = 0; i < batch->job_count; i++) {
        cycles += (double)answers[i].samples[0].total_cycles;
        ns += (double)answers[i].samples[0].elapsed_ns;
    }
    device_answers_fini(answers, batch->job_count);
    if (ns <= 0)
        return err_set(err, -ENOTSUP, "warm-up: the device has no real-time clock");
    *out_mhz = cycles / ns * 1e3;
    return 0;
}

static bool window_agrees(const double *window, size_t count)
{
    double low = window[0], high = window[0];
    for (size_t i = 1; i < count; i++) {
        low = window[i] < low ? window[i] : low;
        high = window[i] > high ? window[i] : high;
    }
    return high <= low * (1 + warm_agreement);
}

static int warm_until_stable(struct device *device, const struct device_batch *batch,
                             struct device_answer *answers, double *out_sm_mhz, struct err *err)
{
    double window[WARM_WINDOW];
    for (size_t round = 0; round < WARM_ROUNDS_MAX; round++) {
        double mhz = 0;
        int rc = warm_round(device, batch, answers, &mhz, err);
        if (rc)
            return rc;
        window[round % WARM_WINDOW] = mhz;
        if (round + 1 >= WARM_WINDOW && window_agrees(window, WARM_WINDOW)) {
            *out_sm_mhz = mhz;
            return 0;
        }
    }
    return err_set(err, -ETIMEDOUT, "the SM clock did not settle within 1 %%");
}

int device_warm_up(struct device *device, double *out_sm_mhz, struct err *err)
{
    size_t count = device->limits.sm_count ? device->limits.sm_count : 1;
    struct device_job *jobs = mem_array(count, sizeof *jobs);
    struct device_answer *answers = mem_array(count, sizeof *answers);
    int rc = -ENOMEM;
    if (!jobs || !answers) {
        err_no_memory(err);
        goto out;
    }
    for (size_t i = 0; i < count; i++) {
        jobs[i] = (struct device_job){.agents = {{.sm = DEVICE_SM_ANY}},
                                      .agent_count = 1,
                                      .step_count = 1,
                                      .steps = {{.kind = DEVICE_AVERAGE, .loads = WARM_LOADS}}};
        jobs[i].steps[0].array = (struct device_array){
            .path = DEVICE_GLOBAL_CA, .size_bytes = WARM_BYTES, .stride_bytes = WARM_STRIDE};
    }
    struct device_batch batch = {.jobs = jobs, .job_count = count};
    rc = warm_until_stable(device, &batch, answers, out_sm_mhz, err);
out:
    free(jobs);
    free(answers);
    return rc;
}
