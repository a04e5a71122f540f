/* Batches of jobs: bins of latencies, the checks that all backends need, and what a record keeps.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "device/calls.h"

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

uint64_t device_path_bytes(const struct device_limits *limits, enum device_path path)
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

static int array_check(const struct device_limits *limits, const struct device_step *step,
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
    uint64_t room = device_path_bytes(limits, array->path);
    if (room && room < limits->wide_bytes && device_step_may_be_wide(step))
        room = limits->wide_bytes;
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

static int step_check(const struct device_limits *limits, const struct device_job *job,
                      const struct device_step *step, struct err *err)
{
    if ((unsigned)step->kind > DEVICE_FILL)
        return err_set(err, -EINVAL, "no such kind of step");
    if (step->agent >= job->agent_count)
        return err_set(err, -EINVAL, "the job has no agent %u", step->agent);
    if (step->lanes > LANES_MAX)
        return err_set(err, -EINVAL, "%u lanes: a warp has %d", step->lanes, LANES_MAX);
    int rc = array_check(limits, step, err);
    if (rc)
        return rc;
    uint64_t loads = step->loads ? step->loads : step->array.size_bytes / step->array.stride_bytes;
    uint64_t kept = step->keep < loads ? step->keep : loads;
    if (step->kind == DEVICE_CHASE && kept > device_keep_max(job))
        return err_set(err, -EINVAL, "%llu latencies to keep: at most %u of each timed chase here",
                       (unsigned long long)kept, device_keep_max(job));
    return 0;
}

static int agent_check(const struct device_limits *limits, const struct device_agent *agent,
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

static int job_check(const struct device_limits *limits, const struct device_job *job,
                     struct err *err)
{
    if (job->agent_count < 1 || job->agent_count > DEVICE_AGENTS_MAX || job->step_count < 1 ||
        job->step_count > DEVICE_STEPS_MAX)
        return err_set(err, -EINVAL, "%u agents and %u steps", job->agent_count, job->step_count);
    if (limits->shared_bytes_max && job->shared_bytes > limits->shared_bytes_max)
        return err_set(err, -EINVAL, "a block has at most %llu bytes of shared memory",
                       (unsigned long long)limits->shared_bytes_max);
    for (uint32_t i = 0; i < job->agent_count; i++) {
        int rc = agent_check(limits, &job->agents[i], i == 0, err);
        if (rc)
            return rc;
    }
    for (uint32_t i = 0; i < job->step_count; i++) {
        int rc = step_check(limits, job, &job->steps[i], err);
        if (rc) {
            err_prefix(err, "step %u", i);
            return rc;
        }
    }
    return 0;
}

static int batch_check(const struct device *device, const void *request, struct err *err)
{
    const struct device_batch *batch = request;
    for (size_t i = 0; i < batch->job_count; i++) {
        int rc = job_check(&device->limits, &batch->jobs[i], err);
        if (rc) {
            err_prefix(err, "job %zu", i);
            return rc;
        }
    }
    return 0;
}

static size_t batch_count(const void *request)
{
    return ((const struct device_batch *)request)->job_count;
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

static void batch_finish(const void *request, void *answer)
{
    const struct device_batch *batch = request;
    struct device_answer *answers = answer;
    for (size_t i = 0; i < batch->job_count; i++)
        split_samples(&batch->jobs[i], &answers[i]);
}

static bool path_is_global(enum device_path path)
{
    return path <= DEVICE_TEXTURE;
}

static void batch_ask(const struct device *device, const void *request, size_t item,
                      void *out_asked)
{
    const struct device_batch *batch = request;
    const struct device_job *job = &batch->jobs[item];
    struct device_asked_job *asked = out_asked;
    uint64_t lowest = UINT64_MAX;
    (void)device;
    *asked = (struct device_asked_job){.at_once = batch->at_once, .job = *job};
    for (uint32_t i = 0; i < job->step_count; i++) {
        const struct device_array *array = &job->steps[i].array;
        if (path_is_global(array->path) && array->offset_bytes < lowest)
            lowest = array->offset_bytes;
    }
    for (uint32_t i = 0; i < job->step_count; i++) {
        struct device_step *step = &asked->job.steps[i];
        if (path_is_global(step->array.path))
            step->array.offset_bytes -= lowest - (lowest > 0);
        step->split_cycles = step->split_cycles > 0;
        step->array.seed = 0;
        if (step->array.order != DEVICE_RANDOM)
            continue;
        uint32_t first = 0; /* the first step that goes through the same random order */
        while (job->steps[first].array.order != DEVICE_RANDOM ||
               job->steps[first].array.seed != job->steps[i].array.seed)
            first++;
        step->array.seed = first;
        step->start -= job->steps[first].start;
    }
}

static void describe_bytes(struct strbuf *text, uint64_t bytes)
{
    if (bytes && bytes % 1024 == 0)
        strbuf_printf(text, "%llu KiB", (unsigned long long)bytes / 1024);
    else
        strbuf_printf(text, "%llu B", (unsigned long long)bytes);
}

const char *const device_path_names[DEVICE_PATH_COUNT] = {
    "global_ca", "global_cg", "read_only", "texture", "constant", "shared", "host"};
static const char *const step_names[] = {"warm", "chase", "average", "fill"};
static const char *const order_names[] = {"sequential", "random", "descending"};

static void step_describe(struct strbuf *text, const struct device_step *step,
                          const struct device_step *before)
{
    const struct device_array *array = &step->array, *other = before ? &before->array : NULL;
    bool same = other && array->path == other->path && array->seed == other->seed &&
                array->offset_bytes == other->offset_bytes && array->order == other->order &&
                array->size_bytes == other->size_bytes &&
                array->stride_bytes == other->stride_bytes;
    strbuf_puts(text, step_names[step->kind]);
    if (step->loads)
        strbuf_printf(text, " %llu loads of", (unsigned long long)step->loads);
    strbuf_puts(text, same ? " the same" : " ");
    if (same)
        return;
    describe_bytes(text, array->size_bytes);
    strbuf_printf(text, " %s by ", device_path_names[array->path]);
    describe_bytes(text, array->stride_bytes);
    if (array->order != DEVICE_SEQUENTIAL)
        strbuf_puts(text, array->order == DEVICE_RANDOM ? " at random" : " downwards");
    if (array->offset_bytes > 1)
        strbuf_printf(text, " from %llu on", (unsigned long long)array->offset_bytes);
}

/* "alone: warm 64 KiB global_ca by 32 B, chase 2048 loads of the same". */
static void batch_describe(const void *asked, struct strbuf *text)
{
    const struct device_asked_job *it = asked;
    if (it->at_once > 1)
        strbuf_printf(text, "%u at once: ", it->at_once);
    else
        strbuf_puts(text, it->at_once ? "alone: " : "spread: ");
    for (uint32_t i = 0; i < it->job.step_count; i++) {
        strbuf_puts(text, i ? ", " : "");
        step_describe(text, &it->job.steps[i], i ? &it->job.steps[i - 1] : NULL);
    }
}

/* A sample for each timed step, with as many loads and kept latencies as asked for. */
static void batch_expect(const void *asked, void *answer)
{
    const struct device_job *job = &((const struct device_asked_job *)asked)->job;
    struct device_answer *expected = answer;
    for (uint32_t i = 0; i < job->step_count; i++) {
        const struct device_step *step = &job->steps[i];
        const struct device_array *array = &step->array;
        uint64_t elements = array->stride_bytes ? array->size_bytes / array->stride_bytes : 0;
        if (step->kind == DEVICE_CHASE || step->kind == DEVICE_AVERAGE)
            expected->samples[expected->sample_count++] =
                (struct device_sample){.step = i,
                                       .sm = -1,
                                       .loads = step->loads ? step->loads : elements,
                                       .kept_count = step->keep};
    }
}

/* Probes rely on these: one sample for each timed step, on SMs that the device has, bins in
 * range. */
static bool batch_fits(const void *asked, const void *answer, uint32_t sm_count)
{
    const struct device_answer *got = answer;
    struct device_answer expected = {0};
    batch_expect(asked, &expected);
    bool fits = got->sample_count == expected.sample_count;
    for (uint32_t i = 0; fits && i < got->sample_count; i++) {
        const struct device_sample *sample = &got->samples[i];
        fits = sample->step == expected.samples[i].step && sample->sm >= 0 &&
               (!sm_count || (uint32_t)sample->sm < sm_count) &&
               (!sample->bin_count || sample->bins[sample->bin_count - 1].bin < DEVICE_BIN_COUNT);
    }
    return fits;
}

static const struct field array_rows[] = {
    {FIELD_CHOICE(struct device_array, path, device_path_names)},
    {FIELD(struct device_array, offset_bytes, U64)},
    {FIELD(struct device_array, size_bytes, U64)},
    {FIELD(struct device_array, stride_bytes, U64)},
    {FIELD_CHOICE(struct device_array, order, order_names)},
    {FIELD(struct device_array, seed, U64)},
};
static const struct fields array_fields = {FIELDS(struct device_array, array_rows)};
static const struct field step_rows[] = {
    {FIELD_CHOICE(struct device_step, kind, step_names)},
    {FIELD(struct device_step, agent, U32)},
    {FIELD_INSIDE(struct device_step, array, &array_fields)},
    {FIELD(struct device_step, start, U64)},
    {FIELD(struct device_step, loads, U64)},
    {FIELD(struct device_step, keep, U32)},
    {FIELD(struct device_step, split_cycles, U32)},
    {FIELD(struct device_step, lanes, U32)},
    {FIELD(struct device_step, lane_stride_bytes, U32)},
};
static const struct fields step_fields = {FIELDS(struct device_step, step_rows)};
static const struct field agent_rows[] = {
    {FIELD(struct device_agent, sm, I32)},
    {FIELD(struct device_agent, warp, U32)},
};
static const struct fields agent_fields = {FIELDS(struct device_agent, agent_rows)};
static const struct field job_rows[] = {
    {FIELD(struct device_job, agent_count, U32)},
    {FIELD_FIRST(struct device_job, agents, agent_count, &agent_fields)},
    {FIELD(struct device_job, step_count, U32)},
    {FIELD(struct device_job, shared_bytes, U64)},
    {FIELD(struct device_job, cold_l2, BOOL)},
    {FIELD_FIRST(struct device_job, steps, step_count, &step_fields)},
};
static const struct fields job_fields = {FIELDS(struct device_job, job_rows)};
static const struct field asked_job_rows[] = {
    {FIELD(struct device_asked_job, at_once, U32)},
    {FIELD_INSIDE(struct device_asked_job, job, &job_fields)},
};
static const struct fields asked_job_fields = {FIELDS(struct device_asked_job, asked_job_rows)};

static const struct field bin_rows[] = {
    {FIELD(struct device_bin, bin, U16), .form = FIELD_RISES},
    {FIELD(struct device_bin, count, U32)},
};
static const struct fields bin_fields = {FIELDS(struct device_bin, bin_rows), .whole = true};
static const struct field sample_rows[] = {
    {FIELD(struct device_sample, step, U32)},
    {FIELD(struct device_sample, sm, I32), .form = FIELD_SAME},
    {FIELD(struct device_sample, loads, U64)},
    {FIELD(struct device_sample, total_cycles, U64), .form = FIELD_NEAR},
    {FIELD(struct device_sample, elapsed_ns, U64), .form = FIELD_NEAR},
    {FIELD(struct device_sample, bin_count, U32)},
    {FIELD(struct device_sample, kept_count, U32)},
    {FIELD_STRUCT_LIST(struct device_sample, bins, bin_count, &bin_fields)},
    {FIELD_NUMBER_LIST(struct device_sample, kept, kept_count, U32), .form = FIELD_NEAR},
};
static const struct fields sample_fields = {FIELDS(struct device_sample, sample_rows)};
/* The number of samples follows from the job. */
static const struct field answer_rows[] = {
    {FIELD_FIRST(struct device_answer, samples, sample_count, &sample_fields)},
};
static const struct fields answer_fields = {FIELDS(struct device_answer, answer_rows)};

const struct device_call_row device_run_batch_row = {.name = "batch",
                                                     .asked = &asked_job_fields,
                                                     .answer = &answer_fields,
                                                     .absent = "this device runs no jobs",
                                                     .absent_code = -ENOSYS,
                                                     .check = batch_check,
                                                     .finish = batch_finish,
                                                     .count = batch_count,
                                                     .ask = batch_ask,
                                                     .describe = batch_describe,
                                                     .expect = batch_expect,
                                                     .fits = batch_fits};

void device_answers_fini(struct device_answer *answers, size_t count)
{
    for (size_t i = 0; answers && i < count; i++)
        fields_fini(&answer_fields, &answers[i]);
}
