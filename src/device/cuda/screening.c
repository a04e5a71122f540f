/* A path of the screen on a GPU: its kernel, what that reads, and its launches, with one block per
 * SM and the same program in all warps. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/sort.h"
#include "device/cuda/kernels.h"
#include "device/cuda/screening.h"
#include "device/screen_program.h"

enum {
    SHARED_BYTES_LEFT = 8192, /* for what a kernel declares itself */
    CHUNK_BYTES = 4 * SCREEN_CHUNK_WORDS,
    /* L1 holds as much as shared memory could have, since Volta they are the same memory; before,
     * at least this. */
    UNIFIED_SINCE = 70,
    L1_BYTES_BEFORE = 16384,
};

/* What a path reads. */
static const struct screen_reads {
    bool chunks, constants, texture;
    bool plain;            /* not inverted in every second launch: its results would be others */
    bool by_l1;            /* which has all memory of the SM that is not shared memory */
    uint32_t shared_bytes; /* that its block needs */
} reads[DEVICE_SCREEN_COUNT] = {
    [DEVICE_SCREEN_L1] = {.chunks = true, .by_l1 = true},
    [DEVICE_SCREEN_L2] = {.chunks = true},
    [DEVICE_SCREEN_CONSTANT] = {.constants = true},
    [DEVICE_SCREEN_TEXTURE] = {.chunks = true, .texture = true, .plain = true, .by_l1 = true},
    [DEVICE_SCREEN_BULK] = {.chunks = true, .shared_bytes = 16 * CHUNK_BYTES},
    [DEVICE_SCREEN_CLUSTER] = {.shared_bytes = 32 * CHUNK_BYTES},
};

/* Chunks, and one more for each warp. */
static int screening_find_chunks(struct screening *screening, struct err *err)
{
    struct cuda_gpu *gpu = screening->gpu;
    uint32_t warps = gpu->base.limits.sm_count * screening->warps;
    screening->chunks = SCREEN_CHUNKS;
    int rc = cuda_check(
        gpu,
        gpu->driver->cuMemAlloc(&screening->data, (SCREEN_CHUNKS + (uint64_t)warps) * CHUNK_BYTES),
        "cuMemAlloc", err);
    screening->filled = screening->data;
    return rc;
}

static int screening_find_constants(struct screening *screening, struct err *err)
{
    struct cuda_gpu *gpu = screening->gpu;
    size_t bytes = 0;
    screening->chunks = SCREEN_CONSTANT_CHUNKS;
    return cuda_check(gpu,
                      gpu->driver->cuModuleGetGlobal(&screening->filled, &bytes,
                                                     gpu->modules[CUDA_KERNELS_SCREEN],
                                                     "screen_constants"),
                      "cuModuleGetGlobal", err);
}

/* The first chunks, as texels of four numbers from 0 to 1, with values between them. */
static int screening_find_texture(struct screening *screening, struct err *err)
{
    struct cuda_gpu *gpu = screening->gpu;
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_PITCH2D};
    resource.res.pitch2D.devPtr = screening->data;
    resource.res.pitch2D.format = CU_AD_FORMAT_UNSIGNED_INT8;
    resource.res.pitch2D.numChannels = 4;
    resource.res.pitch2D.width = resource.res.pitch2D.height = SCREEN_TEXELS;
    resource.res.pitch2D.pitchInBytes = 4 * SCREEN_TEXELS;
    const CUDA_TEXTURE_DESC texture = {.addressMode = {CU_TR_ADDRESS_MODE_CLAMP,
                                                       CU_TR_ADDRESS_MODE_CLAMP,
                                                       CU_TR_ADDRESS_MODE_CLAMP},
                                       .filterMode = CU_TR_FILTER_MODE_LINEAR};
    return cuda_check(
        gpu, gpu->driver->cuTexObjectCreate(&screening->texture, &resource, &texture, NULL),
        "cuTexObjectCreate", err);
}

static int screening_find_reads(struct screening *screening, struct err *err)
{
    const struct screen_reads *what = &reads[screening->path];
    if (!what->chunks && !what->constants)
        return 0;
    int rc =
        cuda_find_kernel(screening->gpu, CUDA_KERNELS_SCREEN, "screen_fill", &screening->fill, err);
    if (!rc)
        rc = what->chunks ? screening_find_chunks(screening, err)
                          : screening_find_constants(screening, err);
    return rc || !what->texture ? rc : screening_find_texture(screening, err);
}

/* A block takes most of its SM's shared memory, so that an SM holds only one; where L1 needs it, a
 * block has so many warps that blocks do not share an SM while another one is free. */
static int screening_find_shared(struct screening *screening, struct err *err)
{
    struct cuda_gpu *gpu = screening->gpu;
    if (reads[screening->path].by_l1)
        return cuda_check(gpu,
                          gpu->driver->cuFuncSetAttribute(
                              screening->kernel, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                              CU_SHAREDMEM_CARVEOUT_MAX_L1),
                          "cuFuncSetAttribute", err);
    screening->shared_bytes = (uint32_t)gpu->base.limits.shared_bytes_max - SHARED_BYTES_LEFT;
    if (screening->shared_bytes < reads[screening->path].shared_bytes)
        return err_set(err, -ENOTSUP, "%s: too little shared memory",
                       device_screen_names[screening->path]);
    return cuda_check(gpu,
                      gpu->driver->cuFuncSetAttribute(
                          screening->kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                          (int)screening->shared_bytes),
                      "cuFuncSetAttribute", err);
}

static uint32_t l1_chunks_of(const struct cuda_gpu *gpu, int capability)
{
    uint64_t bytes =
        capability < UNIFIED_SINCE ? L1_BYTES_BEFORE : gpu->base.limits.shared_bytes_max;
    return bytes / CHUNK_BYTES < SCREEN_STEPS_L1 ? (uint32_t)(bytes / CHUNK_BYTES)
                                                 : (uint32_t)SCREEN_STEPS_L1;
}

int screening_begin(struct screening *screening, struct cuda_gpu *gpu, enum device_screen_path path,
                    struct err *err)
{
    char name[32];
    int major = 0, minor = 0;
    int rc = cuda_capability(gpu, &major, &minor, err);
    int capability = 10 * major + minor;
    *screening = (struct screening){.gpu = gpu, .path = path};
    if (rc)
        return rc;
    bool paired = path != DEVICE_SCREEN_CLUSTER || gpu->base.limits.sm_count % 2 == 0;
    if (!device_screen_exists(path, capability) || !paired)
        return err_set(err, -ENOTSUP,
                       "%s: not on GPUs of compute capability %d.%d, or of an odd number of SMs",
                       device_screen_names[path], major, minor);
    screening->warps = device_screen_rows[path].warps;
    screening->l1_chunks = l1_chunks_of(gpu, capability);
    screening->code = flavour_code(gpu->flavour, CUDA_KERNELS_SCREEN, capability);
    snprintf(name, sizeof name, "screen_%s", device_screen_names[path]);
    rc = cuda_find_kernel(gpu, CUDA_KERNELS_SCREEN, name, &screening->kernel, err);
    if (!rc)
        rc = screening_find_shared(screening, err);
    if (!rc)
        rc = screening_find_reads(screening, err);
    if (rc)
        screening_end(screening);
    return rc;
}

void screening_end(struct screening *screening)
{
    const struct driver *driver = screening->gpu->driver;
    if (screening->gpu->lost)
        return;
    if (screening->texture)
        driver->cuTexObjectDestroy(screening->texture);
    if (screening->data)
        driver->cuMemFree(screening->data);
    screening->texture = 0;
    screening->data = 0;
}

int screening_launch(const struct screening *screening, const struct screening_launch *launch,
                     struct err *err)
{
    struct cuda_gpu *gpu = screening->gpu;
    const struct device_screen_row *row = &device_screen_rows[screening->path];
    uint32_t sms = gpu->base.limits.sm_count;
    bool inverted = launch->number % 2 && !reads[screening->path].plain;
    struct kernel_screen parameters = {
        .results =
            gpu->results.device + (uint64_t)launch->slot * sms * sizeof(struct kernel_check_result),
        .data = screening->filled,
        .texture = screening->texture,
        .trace = launch->trace,
        .trace_sm = launch->trace_sm,
        .trace_warp = launch->trace_warp,
        .periods = launch->periods,
        .launch = launch->number,
        .set = launch->set,
        .period_words = row->steps * row->taken,
        .chunks = screening->chunks,
        .l1_chunks = screening->l1_chunks,
        .inverted = inverted ? UINT32_MAX : 0};
    if (screening->flip)
        parameters.flip = *screening->flip;
    void *pointers[] = {&parameters};
    int rc = 0;
    if (screening->fill)
        rc = cuda_launch(gpu, screening->fill, sms, 1024, 0, pointers, err);
    if (rc)
        return rc;
    return cuda_launch(gpu, screening->kernel, sms, screening->warps * CHECK_LANES,
                       screening->shared_bytes, pointers, err);
}

static uint64_t most_frequent_of(uint64_t *hashes, size_t count)
{
    uint64_t found = 0;
    sort_stable(hashes, count, sizeof *hashes, sort_by_u64);
    for (size_t i = 0, same = 0, most = 0; i < count; i++) {
        same = i && hashes[i] == hashes[i - 1] ? same + 1 : 1;
        found = same > most ? hashes[i] : found;
        most = same > most ? same : most;
    }
    return found;
}

uint64_t screening_most_frequent(const struct screening *screening,
                                 const struct kernel_check_result *results)
{
    size_t sms = screening->gpu->base.limits.sm_count, warps = screening->warps;
    size_t count = 0, as_first = 0;
    uint64_t *hashes = mem_array(sms * warps, sizeof *hashes), first = results[0].hashes[0];
    for (size_t i = 0; i < sms; i++)
        for (size_t w = 0; w < warps; w++) {
            hashes[count++] = results[i].hashes[w];
            as_first += results[i].hashes[w] == first;
        }
    /* As a rule all are right. */
    uint64_t found = 2 * as_first > count ? first : most_frequent_of(hashes, count);
    free(hashes);
    return found;
}
