/* Bandwidth: kernels in which every thread streams, and copies between host and GPU. */
#include "device/cuda/gpu.h"

#include <errno.h>
#include <stdio.h>

#include "base/mem.h"
#include "device/cuda/kernels.h"

enum {
    THREADS_MAX = 1024,
    UNROLL_DEFAULT = 4, /* leaves registers for as many threads as an SM takes */
    NAME_MAX_BYTES = 48,
    COMBINED_WIDTH = 16, /* of the kernels that compute */
    PLACES_MAX = 8,
    PLACE_PASSES_MIN = 64, /* per place: the time of a launch must not matter */
};
static const uint64_t PLACE_BYTES = UINT64_C(2) << 20;

/* A stream that has been checked, with nothing left to choose. */
struct plan {
    CUfunction function;
    uint32_t blocks, threads, shared_bytes;
    uint64_t footprint_bytes; /* what one pass of the kernel, or of each block, covers */
    uint64_t part_bytes;      /* what a timed pass covers: the footprint, or its beginning */
    uint64_t pass_bytes;      /* bytes counted for one timed pass of all blocks */
    uint32_t passes;
    bool own;              /* each block writes memory of its own */
    CUtexObject texture;   /* that is read, with elements as wide as an access; else 0 */
    CUfunction fill, read; /* if the footprint must be written, or read, before; else NULL */
};

/* The kernels by kind and path: their name, the widths and the accesses in flight that exist. */
struct stream_row {
    enum device_stream_kind kind;
    enum device_path path;
    const char *name;
    uint32_t width_min;
    uint32_t unroll_min, unroll_max; /* powers of two; with widths below 4 only UNROLL_DEFAULT */
};

static const struct stream_row stream_rows[] = {
    {DEVICE_STREAM_READ, DEVICE_GLOBAL_CG, "read_cg", 4, 1, 8},
    {DEVICE_STREAM_READ, DEVICE_GLOBAL_CA, "read_ca", 1, 1, 8},
    {DEVICE_STREAM_READ, DEVICE_SHARED, "read_shared", 1, 1, 8},
    {DEVICE_STREAM_READ, DEVICE_READ_ONLY, "read_nc", 1, 4, 4},
    {DEVICE_STREAM_READ, DEVICE_TEXTURE, "read_texture", 1, 4, 4},
    {DEVICE_STREAM_READ, DEVICE_CONSTANT, "read_constant", 1, 4, 4},
    {DEVICE_STREAM_WRITE, DEVICE_GLOBAL_CG, "write", 4, 1, 8},
    {DEVICE_STREAM_WRITE, DEVICE_GLOBAL_CA, "write_ca", 1, 4, 4},
    {DEVICE_STREAM_WRITE, DEVICE_SHARED, "write_shared", 1, 4, 4},
    {DEVICE_STREAM_COPY, DEVICE_GLOBAL_CG, "copy", 4, 1, 8},
    {DEVICE_STREAM_MUL, DEVICE_GLOBAL_CG, "mul", COMBINED_WIDTH, 1, 2},
    {DEVICE_STREAM_ADD, DEVICE_GLOBAL_CG, "add", COMBINED_WIDTH, 1, 2},
    {DEVICE_STREAM_TRIAD, DEVICE_GLOBAL_CG, "triad", COMBINED_WIDTH, 1, 2},
};

/* Takes the next lower number of accesses in flight that exists. */
static uint32_t choose_unroll(const struct device_stream *stream, const struct stream_row *row)
{
    uint32_t wish = stream->unroll ? stream->unroll : UNROLL_DEFAULT, unroll = row->unroll_max;
    if (stream->width_bytes < 4)
        return UNROLL_DEFAULT;
    while (unroll > wish && unroll > row->unroll_min)
        unroll /= 2;
    return unroll;
}

static int find_stream_kernel(struct cuda_gpu *gpu, const struct device_stream *stream,
                              CUfunction *out_function, struct err *err)
{
    const struct stream_row *row = stream_rows, *end = row + COUNT_OF(stream_rows);
    while (row < end && (row->kind != stream->kind || row->path != stream->path))
        row++;
    if (row == end || stream->width_bytes < row->width_min)
        return err_set(err, -ENOTSUP, "no streaming kernel for this kind, path and width");
    char name[NAME_MAX_BYTES];
    snprintf(name, sizeof name, "stream_%s_%u_%u", row->name, stream->width_bytes,
             choose_unroll(stream, row));
    return cuda_find_kernel(gpu, CUDA_KERNELS_STREAM, name, out_function, err);
}

/* Numbers that are computed must be known: no word of the memory may become 0xffffffff (gpu.h). */
static int find_preparation(struct cuda_gpu *gpu, const struct device_stream *stream,
                            struct plan *plan, struct err *err)
{
    int rc = 0;
    if (stream->kind > DEVICE_STREAM_BIDIR)
        rc = cuda_find_kernel(gpu, CUDA_KERNELS_STREAM, "stream_write_16_4", &plan->fill, err);
    if (!rc && plan->part_bytes < plan->footprint_bytes)
        rc = cuda_find_kernel(gpu, CUDA_KERNELS_STREAM, "stream_read_cg_16_4", &plan->read, err);
    return rc;
}

/* Shared memory beyond 48 KiB must be requested; a carve-out of 0 % leaves the rest to L1. Several
 * blocks on an SM need it all. */
static int set_shared(struct cuda_gpu *gpu, const struct plan *plan, struct err *err)
{
    const struct driver *driver = gpu->driver;
    int rc = cuda_check(gpu,
                        driver->cuFuncSetAttribute(
                            plan->function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                            plan->shared_bytes && plan->blocks > gpu->base.limits.sm_count
                                ? CU_SHAREDMEM_CARVEOUT_MAX_SHARED
                                : CU_SHAREDMEM_CARVEOUT_MAX_L1),
                        "cuFuncSetAttribute", err);
    if (rc || !plan->shared_bytes)
        return rc;
    return cuda_check(gpu,
                      driver->cuFuncSetAttribute(plan->function,
                                                 CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                 (int)plan->shared_bytes),
                      "cuFuncSetAttribute", err);
}

static int make_plan(struct cuda_gpu *gpu, const struct device_stream *stream,
                     struct plan *out_plan, struct err *err)
{
    struct plan plan = {.threads = stream->threads};
    uint32_t sms = gpu->base.limits.sm_count;
    bool per_block = stream->path != DEVICE_GLOBAL_CG;
    int rc = find_stream_kernel(gpu, stream, &plan.function, err);
    if (rc)
        return rc;
    if (plan.threads > THREADS_MAX)
        return err_set(err, -EINVAL, "%u threads: a block has at most %d", plan.threads,
                       THREADS_MAX);
    uint32_t unit = (device_stream_arrays(stream->kind) > 2 ? 3 : 2) * stream->width_bytes;
    plan.footprint_bytes = stream->footprint_bytes / unit * unit;
    plan.part_bytes = stream->total_bytes < stream->footprint_bytes
                          ? stream->total_bytes / unit * unit
                          : plan.footprint_bytes;
    if (!plan.part_bytes)
        return err_set(err, -EINVAL, "the footprint is smaller than one access");
    if (stream->path == DEVICE_SHARED) {
        if (plan.footprint_bytes > gpu->base.limits.shared_array_bytes)
            return err_set(err, -EINVAL, "a block does not have that much shared memory");
        plan.shared_bytes = (uint32_t)plan.footprint_bytes;
    }
    if (stream->path == DEVICE_CONSTANT && plan.footprint_bytes > KERNEL_STREAM_CONSTANT_BYTES)
        return err_set(err, -EINVAL, "streams read only %d B of constants",
                       KERNEL_STREAM_CONSTANT_BYTES);
    plan.own = stream->kind == DEVICE_STREAM_WRITE && stream->path == DEVICE_GLOBAL_CA;
    uint32_t full = gpu->base.limits.threads_per_sm / plan.threads;
    plan.blocks = stream->blocks ? stream->blocks : per_block || !full ? sms : sms * full;
    plan.pass_bytes = plan.part_bytes * (per_block ? plan.blocks : 1);
    if (stream->path == DEVICE_CONSTANT) /* every thread loads all of them */
        plan.pass_bytes *= plan.threads;
    uint64_t passes = stream->total_bytes / plan.pass_bytes;
    plan.passes = passes < 1 ? 1 : passes > UINT32_MAX ? UINT32_MAX : (uint32_t)passes;
    rc = set_shared(gpu, &plan, err);
    if (rc)
        return rc;
    rc = find_preparation(gpu, stream, &plan, err);
    if (rc)
        return rc;
    *out_plan = plan;
    return 0;
}

static int launch_passes(struct cuda_gpu *gpu, const struct plan *plan, uint64_t place,
                         uint32_t passes, struct err *err)
{
    uint64_t base = plan->texture ? plan->texture : gpu->global.base + place;
    uint64_t bytes = plan->part_bytes;
    uint64_t sink = gpu->results.device;
    void *parameters[] = {&base, &bytes, &passes, &sink};
    return cuda_launch(gpu, plan->function, plan->blocks, plan->threads, plan->shared_bytes,
                       parameters, err);
}

static int read_elapsed(struct cuda_gpu *gpu, uint64_t *out_ns, struct err *err)
{
    int rc = cuda_wait(gpu, err);
    return rc ? rc : cuda_elapsed(gpu, gpu->events[0], gpu->events[1], out_ns, err);
}

/* All SMs pass over the whole footprint. */
static int launch_whole(struct cuda_gpu *gpu, CUfunction function, uint64_t footprint_bytes,
                        uint64_t place, struct err *err)
{
    struct plan plan = {.function = function,
                        .blocks = gpu->base.limits.sm_count,
                        .threads = THREADS_MAX,
                        .part_bytes = footprint_bytes};
    return launch_passes(gpu, &plan, place, 1, err);
}

/* One untimed pass fills TLBs, L2 and L1 first. If only a part is timed, the whole footprint is
 * read: what is larger than L2 leaves none of its beginning there. */
static int prepare_stream(struct cuda_gpu *gpu, const struct plan *plan, uint64_t place,
                          struct err *err)
{
    int rc = 0;
    if (plan->fill)
        rc = launch_whole(gpu, plan->fill, plan->footprint_bytes, place, err);
    if (rc)
        return rc;
    return plan->read ? launch_whole(gpu, plan->read, plan->footprint_bytes, place, err)
                      : launch_passes(gpu, plan, place, 1, err);
}

static int time_passes(struct cuda_gpu *gpu, const struct plan *plan, uint64_t place,
                       uint32_t passes, uint64_t *out_ns, struct err *err)
{
    int rc = prepare_stream(gpu, plan, place, err);
    if (rc)
        return rc;
    rc = cuda_record(gpu, gpu->events[0], gpu->streams[0], err);
    if (rc)
        return rc;
    rc = launch_passes(gpu, plan, place, passes, err);
    if (rc)
        return rc;
    rc = cuda_record(gpu, gpu->events[1], gpu->streams[0], err);
    if (rc)
        return rc;
    return read_elapsed(gpu, out_ns, err);
}

/* The bandwidth of L2 depends by some per cent on where an array lies (seen on Hopper). So a small
 * array is streamed at several places, and the answer is the sum over all of them. */
static uint32_t count_places(const struct cuda_gpu *gpu, const struct device_stream *stream,
                             const struct plan *plan)
{
    uint64_t room = gpu->global.size_bytes / plan->footprint_bytes;
    uint32_t places = plan->passes / PLACE_PASSES_MIN;
    places = places < PLACES_MAX ? places : PLACES_MAX;
    return stream->path != DEVICE_GLOBAL_CG || !places || room < places ? 1 : places;
}

/* Successive calls go through the whole memory in steps of whole pages. */
static uint64_t next_place(struct cuda_gpu *gpu, const struct plan *plan)
{
    uint64_t room = (gpu->global.size_bytes - plan->footprint_bytes) / PLACE_BYTES + 1;
    uint64_t pages = plan->footprint_bytes / PLACE_BYTES + 1;
    return gpu->places_used++ * pages % room * PLACE_BYTES;
}

/* A texture of the whole footprint, with elements as wide as an access. */
static int create_stream_texture(struct cuda_gpu *gpu, const struct device_stream *stream,
                                 struct plan *plan, struct err *err)
{
    const uint32_t width = stream->width_bytes;
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_LINEAR};
    resource.res.linear.devPtr = gpu->global.base;
    resource.res.linear.format = width == 1   ? CU_AD_FORMAT_UNSIGNED_INT8
                                 : width == 2 ? CU_AD_FORMAT_UNSIGNED_INT16
                                              : CU_AD_FORMAT_UNSIGNED_INT32;
    resource.res.linear.numChannels = width > 4 ? width / 4 : 1;
    resource.res.linear.sizeInBytes = plan->footprint_bytes;
    const CUDA_TEXTURE_DESC texture = {.flags = CU_TRSF_READ_AS_INTEGER};
    return cuda_check(gpu,
                      gpu->driver->cuTexObjectCreate(&plan->texture, &resource, &texture, NULL),
                      "cuTexObjectCreate", err);
}

static int time_places(struct cuda_gpu *gpu, const struct device_stream *stream,
                       const struct plan *plan, struct device_stream_answer *out_answer,
                       struct err *err)
{
    struct device_stream_answer answer = {0};
    uint32_t places = count_places(gpu, stream, plan), passes = plan->passes / places;
    for (uint32_t i = 0; i < places; i++) {
        uint64_t ns = 0;
        int rc = time_passes(gpu, plan, places > 1 ? next_place(gpu, plan) : 0, passes, &ns, err);
        if (rc)
            return rc;
        answer.elapsed_ns += ns;
        answer.bytes += plan->pass_bytes * passes;
    }
    *out_answer = answer;
    return 0;
}

static int stream_kernel(struct cuda_gpu *gpu, const struct device_stream *stream,
                         struct device_stream_answer *out_answer, struct err *err)
{
    struct plan plan = {0};
    int rc = make_plan(gpu, stream, &plan, err);
    if (rc)
        return rc;
    rc = memory_pool_reserve(gpu, &gpu->global, plan.footprint_bytes * (plan.own ? plan.blocks : 1),
                             err);
    if (rc)
        return rc;
    if (stream->kind != DEVICE_STREAM_READ)
        memory_pool_forget(&gpu->global);
    rc = staging_grow(gpu, &gpu->results, sizeof(uint32_t), err);
    if (rc)
        return rc;
    if (stream->path == DEVICE_TEXTURE)
        rc = create_stream_texture(gpu, stream, &plan, err);
    if (rc)
        return rc;
    rc = time_places(gpu, stream, &plan, out_answer, err);
    if (plan.texture) {
        gpu->driver->cuTexObjectDestroy(plan.texture);
        gpu->textured = true;
    }
    return rc;
}

/* Queues `passes` copies to the GPU on one stream, from the GPU on the other, or both. With both,
 * each stream has its own half of both memories. */
static int queue_copies(struct cuda_gpu *gpu, enum device_stream_kind kind, uint64_t bytes,
                        uint64_t passes, struct err *err)
{
    const struct driver *driver = gpu->driver;
    bool both = kind == DEVICE_STREAM_BIDIR;
    uint64_t second = both ? bytes : 0;
    CUstream from_stream = gpu->streams[both];
    int rc = 0;
    for (uint64_t i = 0; i < passes; i++) {
        if (kind != DEVICE_STREAM_D2H)
            rc = cuda_check(
                gpu,
                driver->cuMemcpyHtoDAsync(gpu->global.base, gpu->host.host, bytes, gpu->streams[0]),
                "cuMemcpyHtoDAsync", err);
        if (rc)
            return rc;
        if (kind != DEVICE_STREAM_H2D)
            rc =
                cuda_check(gpu,
                           driver->cuMemcpyDtoHAsync((char *)gpu->host.host + second,
                                                     gpu->global.base + second, bytes, from_stream),
                           "cuMemcpyDtoHAsync", err);
        if (rc)
            return rc;
    }
    return 0;
}

/* The events enclose both streams: the second stream waits for the first event, and the last event
 * waits for the second stream. */
static int time_copies(struct cuda_gpu *gpu, enum device_stream_kind kind, uint64_t bytes,
                       uint64_t passes, uint64_t *out_ns, struct err *err)
{
    const struct driver *driver = gpu->driver;
    int rc = cuda_record(gpu, gpu->events[0], gpu->streams[0], err);
    if (rc)
        return rc;
    rc = cuda_check(gpu, driver->cuStreamWaitEvent(gpu->streams[1], gpu->events[0], 0),
                    "cuStreamWaitEvent", err);
    if (rc)
        return rc;
    rc = queue_copies(gpu, kind, bytes, passes, err);
    if (rc)
        return rc;
    rc = cuda_record(gpu, gpu->events[2], gpu->streams[1], err);
    if (rc)
        return rc;
    rc = cuda_check(gpu, driver->cuStreamWaitEvent(gpu->streams[0], gpu->events[2], 0),
                    "cuStreamWaitEvent", err);
    if (rc)
        return rc;
    rc = cuda_record(gpu, gpu->events[1], gpu->streams[0], err);
    if (rc)
        return rc;
    return read_elapsed(gpu, out_ns, err);
}

static int stream_copies(struct cuda_gpu *gpu, const struct device_stream *stream,
                         struct device_stream_answer *out_answer, struct err *err)
{
    uint64_t directions = stream->kind == DEVICE_STREAM_BIDIR ? 2 : 1;
    uint64_t bytes = stream->footprint_bytes;
    if (bytes > gpu->base.limits.host_bytes / directions)
        bytes = gpu->base.limits.host_bytes / directions;
    if (!bytes)
        return err_set(err, -EINVAL, "the footprint is empty");
    uint64_t passes = stream->total_bytes / (bytes * directions);
    passes = passes ? passes : 1;
    uint64_t ns = 0;
    int rc = memory_pool_reserve(gpu, &gpu->host, bytes * directions, err);
    if (rc)
        return rc;
    rc = memory_pool_reserve(gpu, &gpu->global, bytes * directions, err);
    if (rc)
        return rc;
    memory_pool_forget(&gpu->global);
    memory_pool_forget(&gpu->host);
    rc = time_copies(gpu, stream->kind, bytes, 1, &ns, err);
    if (rc)
        return rc;
    rc = time_copies(gpu, stream->kind, bytes, passes, &ns, err);
    if (rc)
        return rc;
    *out_answer = (struct device_stream_answer){bytes * directions * passes, ns};
    return 0;
}

/* One reading; it counts only if the copies were still running afterwards. */
static int look_at_link(struct cuda_gpu *gpu, struct link_seen *seen)
{
    static const struct nvml_question rows[] = {
        {NVML_SHAPE_NUMBER, "nvmlDeviceGetCurrPcieLinkGeneration"},
        {NVML_SHAPE_NUMBER, "nvmlDeviceGetCurrPcieLinkWidth"},
    };
    const struct nvml_value generation = nvml_read(&gpu->nvml_gpu, &rows[0]);
    const struct nvml_value width = nvml_read(&gpu->nvml_gpu, &rows[1]);
    if (gpu->driver->cuEventQuery(gpu->events[0]) != CUDA_ERROR_NOT_READY)
        return 0;
    if (generation.result == NVML_OK && generation.number > seen->generation)
        seen->generation = (uint32_t)generation.number;
    if (width.result == NVML_OK && width.number > seen->width)
        seen->width = (uint32_t)width.number;
    return 1;
}

int cuda_watch_link(struct cuda_gpu *gpu, struct link_seen *out_seen, struct err *err)
{
    enum { ROUNDS = 8, PASSES = 4, LOOKS = 4 };
    struct link_seen seen = {0};
    uint64_t bytes = gpu->base.limits.host_bytes / 2;
    int looks = 0;
    if (!gpu->nvml_gpu.handle)
        return err_set(err, -ENODATA, "NVML does not know this GPU");
    int rc = cuda_set_current(gpu, err);
    if (rc)
        return rc;
    rc = memory_pool_reserve(gpu, &gpu->host, bytes, err);
    if (rc)
        return rc;
    rc = memory_pool_reserve(gpu, &gpu->global, bytes, err);
    if (rc)
        return rc;
    memory_pool_forget(&gpu->global);
    for (int round = 0; round < ROUNDS && looks < LOOKS; round++) {
        rc = queue_copies(gpu, DEVICE_STREAM_H2D, bytes, PASSES, err);
        if (rc)
            return rc;
        rc = cuda_record(gpu, gpu->events[0], gpu->streams[0], err);
        if (rc)
            return rc;
        while (looks < LOOKS && look_at_link(gpu, &seen))
            looks++;
        rc = cuda_wait(gpu, err);
        if (rc)
            return rc;
    }
    if (!looks)
        return err_set(err, -ENODATA, "no answer came while a copy ran");
    *out_seen = seen;
    return 0;
}

int cuda_run_stream(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_stream *stream = request;
    struct device_stream_answer *out_answer = answer;
    struct cuda_gpu *gpu = cuda_of(device);
    int rc = cuda_set_current(gpu, err);
    if (rc)
        return rc;
    if (device_stream_uses_host(stream->kind))
        return stream_copies(gpu, stream, out_answer, err);
    return stream_kernel(gpu, stream, out_answer, err);
}
