/* Batches: waves of jobs that can run together, each on an SM of its own. */
#include "device/cuda/gpu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu_cache.h"
#include "base/mem.h"
#include "device/cuda/kernels.h"

enum { WARPS_MAX = 32 };

struct wave {
    struct cuda_gpu *gpu;
    struct launch_shape shape;
    bool cold_l2;
    uint32_t room; /* jobs at once */
    struct wave_job *jobs;
    size_t job_count;
    struct block *blocks; /* up to two of each job */
    bool *taken;          /* by SM */
};

static struct launch_shape shape_of(const struct device_job *job)
{
    struct launch_shape shape = {.warps = 1,
                                 .shared_bytes = cuda_job_is_small(job) ? KERNEL_SMALL_BYTES
                                                                        : KERNEL_BUFFER_BYTES};
    uint64_t shared = 0;
    for (uint32_t i = 0; i < job->agent_count; i++)
        if (job->agents[i].warp + 1 > shape.warps)
            shape.warps = job->agents[i].warp + 1;
    for (uint32_t i = 0; i < job->step_count; i++) {
        const struct device_step *step = &job->steps[i];
        /* A fill uses all warps that a block can have, and bypasses L1 whatever its path is. */
        if (step->kind == DEVICE_FILL)
            shape.warps = WARPS_MAX;
        shape.path_mask |= 1u << (step->kind == DEVICE_FILL ? DEVICE_GLOBAL_CG : step->array.path);
        if (step->array.path == DEVICE_SHARED && device_step_end_bytes(step) > shared)
            shared = device_step_end_bytes(step);
    }
    shape.shared_bytes += (uint32_t)((shared + 3) / 4 * 4);
    /* The wish is the whole shared memory of a block, as the carve-out is. */
    if (job->shared_bytes > shape.shared_bytes + KERNEL_STATIC_BYTES)
        shape.shared_bytes = (uint32_t)job->shared_bytes - KERNEL_STATIC_BYTES;
    return shape;
}

static bool same_shape(const struct launch_shape *a, const struct launch_shape *b)
{
    return a->warps == b->warps && a->path_mask == b->path_mask &&
           a->shared_bytes == b->shared_bytes;
}

/* The first SM from `from` on that is free and not `other`; -1 when there is none. */
static int32_t free_sm(const struct wave *wave, uint32_t from, int32_t other)
{
    uint32_t sms = wave->gpu->base.limits.sm_count;
    for (uint32_t i = 0; i < sms; i++) {
        uint32_t sm = (from + i) % sms;
        if (!wave->taken[sm] && (int32_t)sm != other)
            return (int32_t)sm;
    }
    return -1;
}

/* Chooses the job's SMs; spreads them evenly when fewer jobs run at once. False when one of them is
 * taken in this wave. */
static bool choose_sms(const struct wave *wave, const struct device_job *job, uint32_t *out_sms)
{
    uint64_t sms = wave->gpu->base.limits.sm_count;
    int32_t first = job->agents[0].sm;
    if (first < 0)
        first = free_sm(wave, (uint32_t)(wave->job_count * sms / wave->room), -1);
    if (first < 0 || wave->taken[first])
        return false;
    int32_t second = first;
    if (job->agent_count > 1 && job->agents[1].sm == DEVICE_SM_OTHER)
        second = free_sm(wave, (uint32_t)first + 1, first);
    else if (job->agent_count > 1 && job->agents[1].sm >= 0)
        second = job->agents[1].sm;
    if (second < 0 || wave->taken[second])
        return false;
    out_sms[0] = (uint32_t)first;
    out_sms[1] = (uint32_t)second;
    return true;
}

/* All jobs share one constant bank: chains in it must be the same as the first job's. */
static bool fits_constants(const struct wave *wave, const struct layout *layout)
{
    return !wave->job_count || layout_same(&wave->jobs[0].layout, layout, MEMORY_CONSTANT);
}

static int place_in_pools(struct wave *wave, struct wave_job *job, struct err *err)
{
    struct cuda_gpu *gpu = wave->gpu;
    bool first = wave->job_count == 0;
    int rc = 0;
    job->wide = cuda_wide_serves(gpu, job->job, &job->layout);
    if (job->wide && layout_has_chains(&job->layout, MEMORY_GLOBAL))
        return err_set(err, -ENOTSUP, "no chains beyond the pool of global memory");
    if (job->wide)
        rc = cuda_wide_reserve(gpu, err);
    else if (job->layout.end_bytes[MEMORY_GLOBAL])
        rc = memory_pool_place(gpu, &gpu->global, &job->layout, first,
                               &job->offset_bytes[MEMORY_GLOBAL], err);
    if (rc || !job->layout.end_bytes[MEMORY_HOST])
        return rc;
    return memory_pool_place(gpu, &gpu->host, &job->layout, first, &job->offset_bytes[MEMORY_HOST],
                             err);
}

/* 0: the job is in the wave; 1: it must wait for another wave; negative: it cannot run at all. */
static int admit(struct wave *wave, const struct device_job *job, struct device_answer *answer,
                 struct err *err)
{
    struct launch_shape shape = shape_of(job);
    struct wave_job *placed = &wave->jobs[wave->job_count];
    *placed = (struct wave_job){.job = job, .answer = answer};
    if (wave->job_count && (!same_shape(&shape, &wave->shape) || job->cold_l2 != wave->cold_l2))
        return 1;
    if (!choose_sms(wave, job, placed->sms))
        return wave->job_count ? 1 : err_set(err, -EINVAL, "no such SM");
    int rc = layout_init(&placed->layout, job, err);
    if (rc)
        return rc;
    rc = fits_constants(wave, &placed->layout) ? place_in_pools(wave, placed, err) : 1;
    if (rc)
        return rc;
    shape.paired = wave->shape.paired || placed->sms[0] != placed->sms[1];
    wave->shape = shape;
    wave->cold_l2 = job->cold_l2;
    wave->taken[placed->sms[0]] = wave->taken[placed->sms[1]] = true;
    wave->job_count++;
    return 0;
}

static int upload_constants(struct wave *wave, struct err *err)
{
    struct cuda_gpu *gpu = wave->gpu;
    if (!layout_has_chains(&wave->jobs[0].layout, MEMORY_CONSTANT))
        return 0;
    int rc = staging_grow(gpu, &gpu->constants, KERNEL_CONSTANT_BYTES, err);
    if (rc)
        return rc;
    memset(gpu->constants.host, 0, KERNEL_CONSTANT_BYTES);
    layout_image(&wave->jobs[0].layout, MEMORY_CONSTANT, gpu->constants.host);
    return cuda_check(gpu,
                      gpu->driver->cuMemcpyHtoDAsync(gpu->constant_bank, gpu->constants.host,
                                                     KERNEL_CONSTANT_BYTES, gpu->streams[0]),
                      "cuMemcpyHtoDAsync", err);
}

static size_t list_blocks(const struct wave *wave)
{
    size_t count = 0;
    for (size_t i = 0; i < wave->job_count; i++) {
        struct wave_job *job = &wave->jobs[i];
        bool paired = job->sms[0] != job->sms[1];
        for (uint32_t agent = 0; agent <= paired; agent++)
            wave->blocks[count++] =
                (struct block){.job = job, .sm = job->sms[agent], .paired = paired};
    }
    return count;
}

/* What the host's caches hold of its memory depends on what was done with it before: writing the
 * chains, copies, other programs. Loads of the GPU are then some per cent faster or slower. */
static int evict_host_memory(const struct wave *wave, struct err *err)
{
    bool waited = false; /* until the GPU has written the chains, or it would do so afterwards */
    for (size_t i = 0; i < wave->job_count; i++) {
        const struct wave_job *job = &wave->jobs[i];
        for (uint32_t k = 0; k < job->job->step_count; k++) {
            const struct device_array *array = &job->job->steps[k].array;
            if (layout_memory(array->path) != MEMORY_HOST)
                continue;
            int rc = waited ? 0 : cuda_wait(wave->gpu, err);
            if (rc)
                return rc;
            waited = true;
            cpu_cache_evict((const char *)wave->gpu->host.host + job->offset_bytes[MEMORY_HOST] +
                                array->offset_bytes,
                            array->size_bytes, array->stride_bytes);
        }
    }
    return 0;
}

static int run_wave(struct wave *wave, struct err *err)
{
    struct cuda_gpu *gpu = wave->gpu;
    int rc = upload_constants(wave, err);
    if (!rc)
        rc = evict_host_memory(wave, err);
    if (rc)
        return rc;
    if (gpu->textured)
        rc = cuda_launch_scrub_l1(gpu, err);
    if (rc)
        return rc;
    gpu->textured = wave->shape.path_mask & 1u << DEVICE_TEXTURE;
    if (wave->cold_l2)
        rc = cuda_launch_flush_l2(gpu, err);
    if (rc)
        return rc;
    rc = cuda_launch_blocks(gpu, &wave->shape, wave->blocks, list_blocks(wave), err);
    if (rc)
        return rc;
    return cuda_wait(gpu, err);
}

static void clear_wave(struct wave *wave)
{
    wave->job_count = 0;
    wave->shape.paired = false;
    memset(wave->taken, 0, wave->gpu->base.limits.sm_count * sizeof *wave->taken);
}

/* Starts with the first job that is left, and adds all others that can run beside it. */
static int build_wave(struct wave *wave, const struct device_batch *batch,
                      struct device_answer *answers, bool *done, size_t first, struct err *err)
{
    for (size_t i = first; i < batch->job_count && wave->job_count < wave->room; i++) {
        if (done[i])
            continue;
        int rc = admit(wave, &batch->jobs[i], &answers[i], err);
        if (rc < 0) {
            err_prefix(err, "job %zu", i);
            return rc;
        }
        done[i] = rc == 0;
    }
    return 0;
}

static int run_waves(struct wave *wave, const struct device_batch *batch,
                     struct device_answer *answers, bool *done, struct err *err)
{
    for (size_t first = 0; first < batch->job_count; first++) {
        if (done[first])
            continue;
        int rc = build_wave(wave, batch, answers, done, first, err);
        if (!rc)
            rc = run_wave(wave, err);
        clear_wave(wave);
        if (rc)
            return rc;
    }
    return 0;
}

int cuda_run_batch(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_batch *batch = request;
    struct device_answer *answers = answer;
    struct cuda_gpu *gpu = cuda_of(device);
    uint32_t sms = gpu->base.limits.sm_count;
    struct wave wave = {.gpu = gpu,
                        .room = batch->at_once && batch->at_once < sms ? batch->at_once : sms};
    wave.jobs = mem_array(wave.room, sizeof *wave.jobs);
    wave.blocks = mem_array(DEVICE_AGENTS_MAX * (size_t)wave.room, sizeof *wave.blocks);
    wave.taken = mem_array(sms, sizeof *wave.taken);
    bool *done = mem_array(batch->job_count, sizeof *done);
    int rc = cuda_set_current(gpu, err);
    if (!rc)
        rc = run_waves(&wave, batch, answers, done, err);
    if (rc)
        device_answers_fini(answers, batch->job_count);
    free(done);
    free(wave.taken);
    free(wave.blocks);
    free(wave.jobs);
    return rc;
}
