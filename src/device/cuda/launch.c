/* One launch: sends jobs to the GPU, one per SM, and brings their samples back. */
#include "device/cuda/gpu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "device/cuda/kernels.h"

enum {
    WARP_THREADS = 32,
    TRIES_MAX = 4, /* launches until every SM has taken its block */
    FLUSH_THREADS = 512,
    FLUSH_BLOCKS_PER_SM = 4,
    SCRUB_THREADS = 1024,
    SCRUB_BYTES = 1 << 20, /* several times any L1 */
    SECTOR_BYTES = 32,
    BLOCK_WORDS = 16, /* words of a histogram that are checked together */
};
_Static_assert(KERNEL_BIN_COUNT % BLOCK_WORDS == 0, "whole blocks");

/* kernels.h repeats these values of device.h, since steps go to the kernels unchanged. */
_Static_assert((int)KERNEL_STEPS_MAX == (int)DEVICE_STEPS_MAX, "steps of a job");
_Static_assert((int)KERNEL_BIN_COUNT == (int)DEVICE_BIN_COUNT, "bins of a histogram");
enum {
    BUFFER_WORDS = (KERNEL_BUFFER_BYTES - KERNEL_JOB_BYTES) / 4,
    SMALL_WORDS = (KERNEL_SMALL_BYTES - KERNEL_JOB_BYTES) / 4,
};
_Static_assert((int)BUFFER_WORDS - KERNEL_BIN_COUNT >= (int)DEVICE_KEEP_ONE, "kept latencies");
_Static_assert((int)BUFFER_WORDS / KERNEL_HISTOGRAMS - KERNEL_BIN_COUNT >= (int)DEVICE_KEEP_SEVERAL,
               "kept latencies, if several steps are timed");
_Static_assert((int)SMALL_WORDS / KERNEL_HISTOGRAMS >= (int)KERNEL_SMALL_BINS, "small histograms");
_Static_assert((SMALL_WORDS - BLOCK_WORDS) * 4 >= (int)DEVICE_KEEP_ONE, "kept sides of a split");
_Static_assert((SMALL_WORDS / KERNEL_HISTOGRAMS - BLOCK_WORDS) * 4 >= (int)DEVICE_KEEP_SEVERAL,
               "kept sides of a split, if several steps are timed");
_Static_assert(DEVICE_AGENTS_MAX == 2, "struct kernel_turn is for two blocks");
_Static_assert((int)KERNEL_WARM == (int)DEVICE_WARM, "kind of a step");
_Static_assert((int)KERNEL_CHASE == (int)DEVICE_CHASE, "kind of a step");
_Static_assert((int)KERNEL_AVERAGE == (int)DEVICE_AVERAGE, "kind of a step");
_Static_assert((int)KERNEL_FILL == (int)DEVICE_FILL, "kind of a step");
_Static_assert((int)KERNEL_GLOBAL_CA == (int)DEVICE_GLOBAL_CA, "path");
_Static_assert((int)KERNEL_GLOBAL_CG == (int)DEVICE_GLOBAL_CG, "path");
_Static_assert((int)KERNEL_READ_ONLY == (int)DEVICE_READ_ONLY, "path");
_Static_assert((int)KERNEL_TEXTURE == (int)DEVICE_TEXTURE, "path");
_Static_assert((int)KERNEL_CONSTANT == (int)DEVICE_CONSTANT, "path");
_Static_assert((int)KERNEL_SHARED == (int)DEVICE_SHARED, "path");
_Static_assert((int)KERNEL_HOST == (int)DEVICE_HOST, "path");
_Static_assert((int)KERNEL_PATH_COUNT == (int)DEVICE_PATH_COUNT, "path");

static uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* A fill bypasses L1, whatever path its array has. */
static enum device_path path_of_step(const struct device_step *step)
{
    return step->kind == DEVICE_FILL ? DEVICE_GLOBAL_CG : step->array.path;
}

/* The address of an element: in bytes, in elements of the texture, or as an offset in constant or
 * shared memory. */
static int element_address(const struct cuda_gpu *gpu, const struct wave_job *job, uint32_t step,
                           uint64_t element, uint64_t *out_address, struct err *err)
{
    enum device_path path = path_of_step(&job->job->steps[step]);
    enum memory memory = layout_memory(path);
    uint64_t address =
        job->offset_bytes[memory] + layout_element_bytes(&job->layout, job->job, step, element);
    if (path == DEVICE_TEXTURE &&
        job->offset_bytes[memory] + job->layout.end_bytes[memory] > gpu->texture_bytes)
        return err_set(err, -ENOTSUP, "a texture reaches only %llu bytes",
                       (unsigned long long)gpu->texture_bytes);
    if (path == DEVICE_TEXTURE)
        address /= 4;
    else if (memory == MEMORY_GLOBAL)
        address += job->wide ? gpu->wide_base : gpu->global.base;
    else if (memory == MEMORY_HOST)
        address += gpu->host.base;
    *out_address = address;
    return 0;
}

static uint32_t order_of(const struct device_step *step, const struct layout_step *layout)
{
    if (layout->chain >= 0)
        return KERNEL_CHAINED;
    return step->array.order == DEVICE_RANDOM ? KERNEL_PERMUTED : KERNEL_ASCENDING;
}

static int fill_step(const struct cuda_gpu *gpu, const struct wave_job *job, uint32_t number,
                     struct kernel_step *out_step, struct err *err)
{
    const struct device_step *step = &job->job->steps[number];
    const struct layout_step *layout = &job->layout.steps[number];
    uint64_t unit = path_of_step(step) == DEVICE_TEXTURE ? 4 : 1;
    uint64_t stride = step->array.stride_bytes / unit;
    /* Unsigned arithmetic wraps around, so a negative stride goes downwards. */
    if (step->array.order == DEVICE_DESCENDING && step->kind != DEVICE_FILL)
        stride = -stride;
    struct kernel_step filled = {
        .stride = stride,
        .lane_stride = step->lane_stride_bytes / unit,
        .span = stride * layout->elements,
        .kind = (uint32_t)step->kind,
        .path = (uint32_t)path_of_step(step),
        .order = order_of(step, layout),
        .key = layout_key(&step->array),
        .position = (uint32_t)layout->position,
        .warp = job->job->agents[step->agent].warp,
        .lanes = step->lanes ? step->lanes : 1,
        .loads = (uint32_t)layout->loads,
        .left = (uint32_t)(layout->elements - layout->position),
        .pass = (uint32_t)layout->elements,
        .index = number,
    };
    int rc = element_address(gpu, job, number, layout->first, &filled.first, err);
    if (rc)
        return rc;
    rc = element_address(gpu, job, number, 0, &filled.base, err);
    if (rc)
        return rc;
    *out_step = filled;
    return 0;
}

/* Latencies are timed through L1 only, and what is kept of them leaves room for small histograms.
 */
bool cuda_job_is_small(const struct device_job *job)
{
    uint32_t timed = 0, most = 0;
    for (uint32_t i = 0; i < job->step_count; i++) {
        const struct device_step *step = &job->steps[i];
        enum device_path path = step->array.path;
        bool is_timed = step->kind == DEVICE_CHASE || step->kind == DEVICE_AVERAGE;
        if (path == DEVICE_SHARED || (is_timed && path != DEVICE_GLOBAL_CA &&
                                      path != DEVICE_TEXTURE && path != DEVICE_READ_ONLY))
            return false;
        timed += step->kind == DEVICE_CHASE;
        if (step->kind == DEVICE_CHASE && !step->split_cycles && step->keep > most)
            most = step->keep;
    }
    return most + KERNEL_SMALL_BINS <= SMALL_WORDS / (timed > 1 ? KERNEL_HISTOGRAMS : 1);
}

/* Shares the words of the buffer among the timed steps. Up to two steps keep theirs until the job
 * ends. With more steps, the words of a step are copied out (through L1) before the step after the
 * next needs them. */
static void assign_buffers(struct kernel_job *job, const struct device_job *asked)
{
    uint32_t timed = 0, number = 0;
    for (uint32_t i = 0; i < job->step_count; i++)
        timed += job->steps[i].kind == KERNEL_CHASE;
    uint32_t buffers = min_u32(timed, KERNEL_HISTOGRAMS);
    for (uint32_t i = 0; i < job->step_count; i++) {
        struct kernel_step *step = &job->steps[i];
        if (step->kind != KERNEL_CHASE)
            continue;
        uint32_t words = (cuda_job_is_small(asked) ? SMALL_WORDS : BUFFER_WORDS) / buffers;
        step->keep = min_u32(asked->steps[step->index].keep, step->loads);
        step->split = asked->steps[step->index].split_cycles;
        step->bins = step->split ? BLOCK_WORDS
                                 : min_u32((words - step->keep) / BLOCK_WORDS * BLOCK_WORDS,
                                           KERNEL_BIN_COUNT);
        step->bins_at = number % buffers * words;
        step->keep_at = step->bins_at + step->bins;
        step->copied_late = number + buffers >= timed;
        number++;
    }
}

static bool is_second(const struct block *block)
{
    return block->paired && block->sm == block->job->sms[1];
}

static int fill_job(const struct cuda_gpu *gpu, const struct block *block, size_t number,
                    struct kernel_job *out_job, struct err *err)
{
    const struct device_job *job = block->job->job;
    *out_job = (struct kernel_job){0};
    for (uint32_t i = 0; i < job->step_count; i++) {
        if (block->job->sms[job->steps[i].agent] != block->sm)
            continue;
        int rc = fill_step(gpu, block->job, i, &out_job->steps[out_job->step_count++], err);
        if (rc)
            return rc;
    }
    assign_buffers(out_job, job);
    out_job->result = gpu->results.device + number * sizeof(struct kernel_result);
    out_job->image_bytes = (uint32_t)block->job->layout.end_bytes[MEMORY_SHARED];
    if (block->paired)
        out_job->turn =
            gpu->turns.device + (number - is_second(block)) * sizeof(struct kernel_turn);
    return 0;
}

/* The initial content of the shared arrays that hold chains. */
static int upload_images(struct cuda_gpu *gpu, const struct block *blocks, size_t count,
                         struct kernel_job *jobs, struct err *err)
{
    size_t total = 0, at = 0;
    for (size_t i = 0; i < count; i++)
        if (layout_has_chains(&blocks[i].job->layout, MEMORY_SHARED))
            total += jobs[i].image_bytes;
    if (!total)
        return 0;
    int rc = staging_grow(gpu, &gpu->images, total, err);
    if (rc)
        return rc;
    memset(gpu->images.host, 0, total);
    for (size_t i = 0; i < count; i++) {
        if (!layout_has_chains(&blocks[i].job->layout, MEMORY_SHARED))
            continue;
        uint32_t *words = (uint32_t *)((char *)gpu->images.host + at);
        layout_image(&blocks[i].job->layout, MEMORY_SHARED, words);
        jobs[i].image = gpu->images.device + at;
        at += jobs[i].image_bytes;
    }
    return staging_upload(gpu, &gpu->images, total, err);
}

/* Bytes of the histogram and the kept latencies, rounded up so that no two steps share a sector. */
static size_t step_output_bytes(const struct kernel_step *step)
{
    size_t bytes = step->kind == KERNEL_CHASE ? (step->bins + step->keep) * 4 : 0;
    return (bytes + SECTOR_BYTES - 1) / SECTOR_BYTES * SECTOR_BYTES;
}

/* Gives every timed step its own output, and returns the bytes of all. */
static int assign_outputs(struct cuda_gpu *gpu, struct kernel_job *jobs, size_t count,
                          size_t *out_bytes, struct err *err)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        for (uint32_t s = 0; s < jobs[i].step_count; s++)
            bytes += step_output_bytes(&jobs[i].steps[s]);
    int rc = staging_grow(gpu, &gpu->outputs, bytes, err);
    if (rc)
        return rc;
    CUdeviceptr at = gpu->outputs.device;
    for (size_t i = 0; i < count; i++) {
        for (uint32_t s = 0; s < jobs[i].step_count; s++) {
            jobs[i].steps[s].output = at;
            at += step_output_bytes(&jobs[i].steps[s]);
        }
    }
    *out_bytes = bytes;
    return 0;
}

static int prepare_launch(struct cuda_gpu *gpu, const struct launch_shape *shape,
                          const struct block *blocks, size_t count, size_t *out_output_bytes,
                          struct err *err)
{
    int rc = staging_grow(gpu, &gpu->jobs, count * sizeof(struct kernel_job), err);
    if (rc)
        return rc;
    rc = staging_grow(gpu, &gpu->results, count * sizeof(struct kernel_result), err);
    if (rc)
        return rc;
    rc = staging_grow(gpu, &gpu->claims, gpu->sm_id_count * sizeof(int32_t), err);
    if (rc)
        return rc;
    rc = staging_grow(gpu, &gpu->turns, count * sizeof(struct kernel_turn), err);
    if (rc)
        return rc;
    struct kernel_job *jobs = gpu->jobs.host;
    for (size_t i = 0; i < count; i++) {
        rc = fill_job(gpu, &blocks[i], i, &jobs[i], err);
        if (rc)
            return rc;
        jobs[i].threads = shape->warps * WARP_THREADS;
    }
    rc = assign_outputs(gpu, jobs, count, out_output_bytes, err);
    if (rc)
        return rc;
    rc = upload_images(gpu, blocks, count, jobs, err);
    if (rc)
        return rc;
    rc = staging_upload(gpu, &gpu->jobs, count * sizeof *jobs, err);
    if (rc)
        return rc;
    memset(gpu->results.host, 0, count * sizeof(struct kernel_result));
    return staging_upload(gpu, &gpu->results, count * sizeof(struct kernel_result), err);
}

/* Assigns the jobs that have not run to their SMs. Of two paired blocks, either both have run or
 * neither. */
static void assign_open_jobs(struct cuda_gpu *gpu, const struct block *blocks, size_t count)
{
    int32_t *claims = gpu->claims.host;
    const struct kernel_result *results = gpu->results.host;
    for (uint32_t i = 0; i < gpu->sm_id_count; i++)
        claims[i] = -1;
    for (size_t i = 0; i < count; i++)
        if (!results[i].done)
            claims[gpu->sm_ids[blocks[i].sm]] = (int32_t)i;
}

static size_t count_open_jobs(const struct cuda_gpu *gpu, size_t count)
{
    const struct kernel_result *results = gpu->results.host;
    size_t open = 0;
    for (size_t i = 0; i < count; i++)
        open += !results[i].done;
    return open;
}

static CUfunction choose_kernel(const struct cuda_gpu *gpu, uint32_t path_mask)
{
    for (int path = 0; path < DEVICE_PATH_COUNT; path++)
        if (path_mask == 1u << path)
            return gpu->chase[path];
    return gpu->chase_mixed;
}

/* The first launch has one block per SM, since a late block on an SM that is measuring would
 * disturb it. Later launches have more, because an SM was left out. */
static int try_launch(struct cuda_gpu *gpu, const struct launch_shape *shape, uint32_t attempt,
                      size_t count, struct err *err)
{
    uint32_t claim_count = gpu->sm_id_count;
    unsigned long long texture = gpu->texture;
    void *parameters[] = {&gpu->jobs.device, &gpu->claims.device, &claim_count, &texture};
    int rc = staging_upload(gpu, &gpu->claims, claim_count * sizeof(int32_t), err);
    if (rc)
        return rc;
    if (shape->paired)
        rc = cuda_check(gpu,
                        gpu->driver->cuMemsetD32Async(gpu->turns.device, 0,
                                                      count * sizeof(struct kernel_turn) / 4,
                                                      gpu->streams[0]),
                        "cuMemsetD32Async", err);
    if (rc)
        return rc;
    rc = cuda_launch(gpu, choose_kernel(gpu, shape->path_mask), gpu->base.limits.sm_count * attempt,
                     shape->warps * WARP_THREADS, shape->shared_bytes, parameters, err);
    if (rc)
        return rc;
    rc = staging_download(gpu, &gpu->results, count * sizeof(struct kernel_result), err);
    if (rc)
        return rc;
    return cuda_wait(gpu, err);
}

/* Lists the bins that are not empty (most are) and returns their number. */
static uint32_t list_bins(const uint32_t *counts, uint32_t count, struct device_bin *out_bins)
{
    uint32_t number = 0;
    for (uint32_t first = 0; first < count; first += BLOCK_WORDS) {
        uint32_t any = 0;
        for (uint32_t bin = first; bin < first + BLOCK_WORDS; bin++)
            any |= counts[bin];
        for (uint32_t bin = first; any && bin < first + BLOCK_WORDS; bin++)
            if (counts[bin])
                out_bins[number++] = (struct device_bin){(uint16_t)bin, counts[bin]};
    }
    return number;
}

static struct device_sample take_sample(const struct kernel_step *step, const uint32_t *output,
                                        const struct kernel_result *result)
{
    struct device_sample sample = {
        .step = step->index,
        .loads = step->loads,
        .total_cycles = result->cycles[step->index],
        .elapsed_ns = result->elapsed_ns[step->index],
    };
    if (step->kind == KERNEL_CHASE) {
        struct device_bin bins[KERNEL_BIN_COUNT];
        sample.bin_count = list_bins(output, step->bins, bins);
        sample.bins = mem_array(sample.bin_count, sizeof *sample.bins);
        sample.kept = mem_array(step->keep, sizeof *sample.kept);
        memcpy(sample.bins, bins, sample.bin_count * sizeof *sample.bins);
        sample.kept_count = step->keep;
        memcpy(sample.kept, output + step->bins, step->keep * sizeof *sample.kept);
    }
    return sample;
}

/* The samples of a job's second block belong between those of its first. */
static void sort_samples(struct device_answer *answer)
{
    for (uint32_t i = 1; i < answer->sample_count; i++)
        for (uint32_t k = i; k && answer->samples[k - 1].step > answer->samples[k].step; k--) {
            struct device_sample later = answer->samples[k - 1];
            answer->samples[k - 1] = answer->samples[k];
            answer->samples[k] = later;
        }
}

static int take_samples(struct cuda_gpu *gpu, const struct block *block, size_t number,
                        struct err *err)
{
    const struct kernel_job *job = (const struct kernel_job *)gpu->jobs.host + number;
    const struct kernel_result *result = (const struct kernel_result *)gpu->results.host + number;
    struct device_answer *answer = block->job->answer;
    if (result->sm_id != gpu->sm_ids[block->sm])
        return err_set(err, -EIO, "a job for SM %u ran on another SM", block->sm);
    for (uint32_t i = 0; i < job->step_count; i++) {
        if (job->steps[i].kind == KERNEL_WARM || job->steps[i].kind == KERNEL_FILL)
            continue;
        struct device_sample *sample = &answer->samples[answer->sample_count];
        const char *output = (const char *)gpu->outputs.host;
        if (job->steps[i].kind == KERNEL_CHASE)
            output += job->steps[i].output - gpu->outputs.device;
        *sample = take_sample(&job->steps[i], (const uint32_t *)output, result);
        sample->sm = (int32_t)block->sm;
        answer->sample_count++;
    }
    sort_samples(answer);
    return 0;
}

int cuda_launch_blocks(struct cuda_gpu *gpu, const struct launch_shape *shape,
                       const struct block *blocks, size_t count, struct err *err)
{
    size_t output_bytes = 0, open = count;
    int rc = prepare_launch(gpu, shape, blocks, count, &output_bytes, err);
    if (rc)
        return rc;
    for (uint32_t attempt = 1; open && attempt <= TRIES_MAX; attempt++) {
        assign_open_jobs(gpu, blocks, count);
        rc = try_launch(gpu, shape, attempt, count, err);
        if (rc)
            return rc;
        open = count_open_jobs(gpu, count);
    }
    if (open)
        return err_set(err, -EBUSY, "%zu of %zu SMs took no block in %d launches", open, count,
                       TRIES_MAX);
    if (output_bytes) {
        rc = staging_download(gpu, &gpu->outputs, output_bytes, err);
        if (rc)
            return rc;
        rc = cuda_wait(gpu, err);
        if (rc)
            return rc;
    }
    for (size_t i = 0; i < count; i++) {
        rc = take_samples(gpu, &blocks[i], i, err);
        if (rc)
            return rc;
    }
    return 0;
}

static uint64_t flush_bytes(const struct cuda_gpu *gpu)
{
    return 2 * gpu->l2_bytes > SCRUB_BYTES ? 2 * gpu->l2_bytes : SCRUB_BYTES;
}

/* The memory is written once: loads of memory that was never written may need no place in L2. */
static int allocate_flush(struct cuda_gpu *gpu, struct err *err)
{
    uint64_t bytes = flush_bytes(gpu);
    if (gpu->flush)
        return 0;
    int rc = cuda_check(gpu, gpu->driver->cuMemAlloc(&gpu->flush, bytes), "cuMemAlloc", err);
    if (rc)
        return rc;
    return cuda_check(
        gpu,
        gpu->driver->cuMemsetD32Async(gpu->flush, KERNEL_WRITTEN_WORD, bytes / 4, gpu->streams[0]),
        "cuMemsetD32Async", err);
}

/* CUDA has no call that flushes L2; loading twice its size of other memory evicts everything. */
int cuda_launch_flush_l2(struct cuda_gpu *gpu, struct err *err)
{
    int rc = allocate_flush(gpu, err);
    if (rc)
        return rc;
    uint64_t stride = SECTOR_BYTES, count = flush_bytes(gpu) / stride;
    void *parameters[] = {&gpu->flush, &stride, &count};
    return cuda_launch(gpu, gpu->flush_l2, gpu->base.limits.sm_count * FLUSH_BLOCKS_PER_SM,
                       FLUSH_THREADS, 0, parameters, err);
}

/* On Hopper, lines that a texture brought into L1 outlast the kernel and keep the lines of other
 * paths out for long; no fence helps. Each block takes all shared memory of an SM, so that L1 loses
 * most of its array and what is in it; loads replace the rest. Twice as many blocks as SMs, so that
 * no SM is left out. */
int cuda_launch_scrub_l1(struct cuda_gpu *gpu, struct err *err)
{
    int rc = allocate_flush(gpu, err);
    if (rc)
        return rc;
    uint64_t stride = SECTOR_BYTES, count = SCRUB_BYTES / stride;
    void *parameters[] = {&gpu->flush, &stride, &count};
    return cuda_launch(gpu, gpu->scrub_l1, 2 * gpu->base.limits.sm_count, SCRUB_THREADS,
                       (uint32_t)gpu->base.limits.shared_bytes_max - KERNEL_STATIC_BYTES,
                       parameters, err);
}
