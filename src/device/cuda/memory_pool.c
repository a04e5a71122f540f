/* Memory of an open GPU: pinned memory and its counterpart on the GPU; pools of arrays and the
 * chains written into them; and all memory that can be had, for tests and maps of it, and for jobs
 * that reach further than the pool of global memory. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "device/cuda/gpu.h"
#include "device/cuda/kernels.h"

void staging_fini(struct cuda_gpu *gpu, struct staging *staging)
{
    if (staging->host)
        gpu->driver->cuMemFreeHost(staging->host);
    if (staging->device)
        gpu->driver->cuMemFree(staging->device);
    *staging = (struct staging){0};
}

int staging_grow(struct cuda_gpu *gpu, struct staging *staging, size_t size_bytes, struct err *err)
{
    if (size_bytes <= staging->size_bytes)
        return 0;
    /* Pinning memory takes long: batches that grow slowly must not do it every time. */
    if (size_bytes < 2 * staging->size_bytes)
        size_bytes = 2 * staging->size_bytes;
    staging_fini(gpu, staging);
    int rc = cuda_check(gpu, gpu->driver->cuMemHostAlloc(&staging->host, size_bytes, 0),
                        "cuMemHostAlloc", err);
    if (rc)
        goto failed;
    rc = cuda_check(gpu, gpu->driver->cuMemAlloc(&staging->device, size_bytes), "cuMemAlloc", err);
    if (rc)
        goto failed;
    staging->size_bytes = size_bytes;
    return 0;
failed:
    staging_fini(gpu, staging);
    return rc;
}

int staging_upload(struct cuda_gpu *gpu, const struct staging *staging, size_t size_bytes,
                   struct err *err)
{
    return cuda_check(
        gpu,
        gpu->driver->cuMemcpyHtoDAsync(staging->device, staging->host, size_bytes, gpu->streams[0]),
        "cuMemcpyHtoDAsync", err);
}

int staging_download(struct cuda_gpu *gpu, const struct staging *staging, size_t size_bytes,
                     struct err *err)
{
    return cuda_check(
        gpu,
        gpu->driver->cuMemcpyDtoHAsync(staging->host, staging->device, size_bytes, gpu->streams[0]),
        "cuMemcpyDtoHAsync", err);
}

/* The driver's page size for large allocations: with it, TLB effects do not depend on the place. */
static const uint64_t PLACE_BYTES = UINT64_C(2) << 20;

/* Room for one chain per SM at the same time. Host memory has no such minimum: pinning it takes
 * most of a millisecond per MiB. */
static const uint64_t POOL_MIN_BYTES = UINT64_C(512) << 20;
enum { LINK_THREADS = 256, LINK_BLOCKS_MAX = 1024, TEXTURE_WORD_BYTES = 4 };

static uint64_t round_up(uint64_t value, uint64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

static int create_texture(struct cuda_gpu *gpu, const struct memory_pool *pool, struct err *err)
{
    int width;
    int rc = cuda_attribute(gpu, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH, &width, err);
    if (rc)
        return rc;
    uint64_t reach = (uint64_t)width * TEXTURE_WORD_BYTES;
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_LINEAR};
    resource.res.linear.devPtr = pool->base;
    resource.res.linear.format = CU_AD_FORMAT_UNSIGNED_INT32;
    resource.res.linear.numChannels = 1;
    resource.res.linear.sizeInBytes = reach < pool->size_bytes ? reach : pool->size_bytes;
    const CUDA_TEXTURE_DESC texture = {.flags = CU_TRSF_READ_AS_INTEGER};
    rc = cuda_check(gpu, gpu->driver->cuTexObjectCreate(&gpu->texture, &resource, &texture, NULL),
                    "cuTexObjectCreate", err);
    if (rc)
        return rc;
    gpu->texture_bytes = resource.res.linear.sizeInBytes;
    return 0;
}

static int pool_allocate(struct cuda_gpu *gpu, struct memory_pool *pool, uint64_t size_bytes,
                         struct err *err)
{
    const struct driver *driver = gpu->driver;
    int rc;
    if (pool->memory == MEMORY_HOST) {
        rc = cuda_check(gpu,
                        driver->cuMemHostAlloc(&pool->host, size_bytes, CU_MEMHOSTALLOC_DEVICEMAP),
                        "cuMemHostAlloc", err);
        if (rc)
            return rc;
        memset(pool->host, 0, size_bytes);
        rc = cuda_check(gpu, driver->cuMemHostGetDevicePointer(&pool->base, pool->host, 0),
                        "cuMemHostGetDevicePointer", err);
        pool->size_bytes = size_bytes;
        return rc;
    }
    rc = cuda_check(gpu, driver->cuMemAlloc(&pool->base, size_bytes), "cuMemAlloc", err);
    if (rc)
        return rc;
    pool->size_bytes = size_bytes;
    rc = cuda_check(gpu, driver->cuMemsetD32Async(pool->base, 0, size_bytes / 4, gpu->streams[0]),
                    "cuMemsetD32Async", err);
    return rc ? rc : create_texture(gpu, pool, err);
}

static void pool_release(struct cuda_gpu *gpu, struct memory_pool *pool)
{
    if (pool->memory == MEMORY_GLOBAL && gpu->texture) {
        gpu->driver->cuTexObjectDestroy(gpu->texture);
        gpu->texture = 0;
        gpu->texture_bytes = 0;
    }
    if (pool->host)
        gpu->driver->cuMemFreeHost(pool->host);
    else if (pool->base)
        gpu->driver->cuMemFree(pool->base);
    pool->host = NULL;
    pool->base = 0;
    pool->size_bytes = 0;
    memory_pool_forget(pool);
}

int memory_pool_reserve(struct cuda_gpu *gpu, struct memory_pool *pool, uint64_t size_bytes,
                        struct err *err)
{
    if (size_bytes <= pool->size_bytes)
        return 0;
    if (size_bytes > pool->limit_bytes)
        return err_set(err, -ENOSPC, "arrays need %llu bytes, the limit is %llu",
                       (unsigned long long)size_bytes, (unsigned long long)pool->limit_bytes);
    pool_release(gpu, pool);
    uint64_t wanted = round_up(size_bytes, PLACE_BYTES);
    if (pool->memory == MEMORY_GLOBAL && wanted < POOL_MIN_BYTES)
        wanted = POOL_MIN_BYTES;
    if (wanted > pool->limit_bytes)
        wanted = pool->limit_bytes;
    int rc = pool_allocate(gpu, pool, wanted, err);
    if (rc)
        pool_release(gpu, pool);
    return rc;
}

void memory_pool_forget(struct memory_pool *pool)
{
    pool->used_bytes = 0;
    pool->region_count = 0;
}

void memory_pool_fini(struct cuda_gpu *gpu, struct memory_pool *pool)
{
    pool_release(gpu, pool);
    free(pool->regions);
    *pool = (struct memory_pool){.memory = pool->memory};
}

static int pool_link_chain(struct cuda_gpu *gpu, const struct memory_pool *pool, uint64_t offset,
                           const struct layout_chain *chain, struct err *err)
{
    bool pointers = layout_word_bytes(chain->array.path) == 8;
    struct kernel_link link = {
        .base = pool->base + offset + chain->array.offset_bytes + chain->slot_bytes,
        .stride = chain->array.stride_bytes,
        .origin = pointers ? 0 : pool->base,
        .count = (uint32_t)chain->count,
        .permuted = chain->array.order == DEVICE_RANDOM,
        .key = layout_key(&chain->array),
        .shift = pointers ? 0 : 2,
        .wide = pointers,
    };
    uint64_t blocks = (chain->count + LINK_THREADS - 1) / LINK_THREADS;
    void *parameters[] = {&link};
    return cuda_launch(gpu, gpu->link_chain,
                       blocks < LINK_BLOCKS_MAX ? (uint32_t)blocks : LINK_BLOCKS_MAX, LINK_THREADS,
                       0, parameters, err);
}

static bool region_fits(const struct memory_pool *pool, const struct memory_pool_region *region,
                        const struct layout *layout)
{
    uint32_t wanted = 0;
    for (uint32_t i = 0; i < layout->chain_count; i++) {
        bool found = layout_memory(layout->chains[i].array.path) != pool->memory;
        wanted += !found;
        for (uint32_t j = 0; !found && j < region->chain_count; j++)
            found = layout_same_chain(&region->chains[j], &layout->chains[i]);
        if (!found)
            return false;
    }
    return wanted == region->chain_count && region->size_bytes >= layout->end_bytes[pool->memory];
}

static int write_region(struct cuda_gpu *gpu, struct memory_pool *pool, const struct layout *layout,
                        struct err *err)
{
    pool->regions = mem_grow(pool->regions, &pool->region_capacity, pool->region_count + 1,
                             sizeof *pool->regions);
    struct memory_pool_region region = {.offset_bytes = pool->used_bytes,
                                        .size_bytes = layout->end_bytes[pool->memory]};
    for (uint32_t i = 0; i < layout->chain_count; i++) {
        const struct layout_chain *chain = &layout->chains[i];
        if (layout_memory(chain->array.path) != pool->memory)
            continue;
        int rc = pool_link_chain(gpu, pool, region.offset_bytes, chain, err);
        if (rc)
            return rc;
        region.chains[region.chain_count++] = *chain;
    }
    pool->used_bytes += round_up(region.size_bytes, PLACE_BYTES);
    pool->regions[pool->region_count++] = region;
    return 0;
}

int memory_pool_place(struct cuda_gpu *gpu, struct memory_pool *pool, const struct layout *layout,
                      bool may_forget, uint64_t *out_offset, struct err *err)
{
    uint64_t end = layout->end_bytes[pool->memory];
    bool plain = !layout_has_chains(layout, pool->memory);
    /* The content does not matter to arrays without chains: they may lie over anything. */
    for (size_t i = 0; !plain && i < pool->region_count; i++)
        if (region_fits(pool, &pool->regions[i], layout)) {
            *out_offset = pool->regions[i].offset_bytes;
            return 0;
        }
    /* The first job of a wave makes room for a place like its own on every SM. */
    uint64_t places = may_forget ? gpu->base.limits.sm_count : 1;
    uint64_t needed = plain ? end : pool->used_bytes + places * round_up(end, PLACE_BYTES);
    if (needed > pool->size_bytes) {
        if (!may_forget)
            return 1;
        memory_pool_forget(pool);
        int rc = memory_pool_reserve(gpu, pool, end, err);
        if (rc)
            return rc;
    }
    uint64_t offset = plain ? 0 : pool->used_bytes;
    int rc = plain ? 0 : write_region(gpu, pool, layout, err);
    if (rc)
        return rc;
    *out_offset = offset;
    return 0;
}

/* If there is much memory, it begins at a multiple of what the sets of a TLB cover once, so that
 * neighbouring pages fill them alike in every run (Hopper: 256 sets of 32 MiB). */
static const uint64_t ALIGNED_BYTES = UINT64_C(8) << 30;
enum { MUCH = 8, POOL_SHARE = 8 };

/* What the driver and this program need besides, as a share: when it is taken, and as known when
 * the device is opened. */
static const double WHOLE_LEFT_SHARE = 1.0 / 64, LEFT_SHARE = 1.0 / 32;

uint64_t cuda_wide_limit(uint64_t free_bytes, uint64_t pool_bytes)
{
    uint64_t bytes = (uint64_t)((1 - LEFT_SHARE) * (double)free_bytes);
    /* A pool of little memory seldom grows to its limit. If it did, less can be had: -EBUSY. */
    if (pool_bytes > free_bytes / POOL_SHARE)
        pool_bytes = free_bytes / POOL_SHARE;
    bytes = bytes > pool_bytes ? (bytes - pool_bytes) / PLACE_BYTES * PLACE_BYTES : 0;
    return bytes > (MUCH + 1) * ALIGNED_BYTES ? bytes - ALIGNED_BYTES : bytes;
}

bool cuda_wide_serves(const struct cuda_gpu *gpu, const struct device_job *job,
                      const struct layout *layout)
{
    uint64_t end = layout->end_bytes[MEMORY_GLOBAL];
    if (end > gpu->base.limits.global_bytes)
        return true;
    if (!gpu->whole || end <= gpu->global.size_bytes)
        return false;
    for (uint32_t i = 0; i < job->step_count; i++)
        if (!device_step_may_be_wide(&job->steps[i]))
            return false;
    return true;
}

int cuda_whole_take(struct cuda_gpu *gpu, struct err *err)
{
    size_t free_bytes = 0, total_bytes = 0;
    gpu->whole_cleared = false; /* the caller writes to it */
    if (gpu->whole)
        return 0;
    int rc =
        cuda_check(gpu, gpu->driver->cuMemGetInfo(&free_bytes, &total_bytes), "cuMemGetInfo", err);
    if (rc)
        return rc;
    /* If an allocation fails, a little less is tried, down to half of what is free. */
    for (double share = 1 - WHOLE_LEFT_SHARE; share >= 0.5; share -= WHOLE_LEFT_SHARE) {
        uint64_t bytes = (uint64_t)(share * (double)free_bytes) / PLACE_BYTES * PLACE_BYTES;
        if (!bytes)
            break;
        rc = cuda_check(gpu, gpu->driver->cuMemAlloc(&gpu->whole, bytes), "cuMemAlloc", err);
        if (!rc) {
            gpu->whole_bytes = bytes;
            gpu->whole_free_bytes = free_bytes;
        } else {
            gpu->whole = 0;
        }
        if (rc != -ENOSPC)
            return rc;
    }
    return err_set(err, -ENOSPC, "not even half of the %zu bytes of free memory can be allocated",
                   free_bytes);
}

/* Another process needs memory, or has some already: it gets back what was taken. The driver then
 * clears that, but a GPU in use is not measured well anyway. */
static int give_whole_back(struct cuda_gpu *gpu, const char *why, struct err *err)
{
    if (gpu->whole)
        gpu->driver->cuMemFree(gpu->whole);
    gpu->whole = 0;
    gpu->whole_bytes = 0;
    return err_set(err, -EBUSY, "%s", why);
}

int cuda_wide_reserve(struct cuda_gpu *gpu, struct err *err)
{
    if (gpu->whole && gpu->whole_cleared)
        return 0;
    if (watch_others(&gpu->watch, &gpu->nvml_gpu))
        return give_whole_back(gpu, "another process uses the GPU and may need its memory", err);
    int rc = cuda_whole_take(gpu, err);
    if (rc)
        return rc;
    gpu->wide_base = gpu->whole;
    if (gpu->base.limits.wide_bytes > MUCH * ALIGNED_BYTES)
        gpu->wide_base = (gpu->whole + ALIGNED_BYTES - 1) / ALIGNED_BYTES * ALIGNED_BYTES;
    if (gpu->wide_base + gpu->base.limits.wide_bytes > gpu->whole + gpu->whole_bytes)
        return give_whole_back(gpu, "the memory is no longer free", err);
    rc = cuda_check(
        gpu, gpu->driver->cuMemsetD32Async(gpu->whole, 0, gpu->whole_bytes / 4, gpu->streams[0]),
        "cuMemsetD32Async", err);
    gpu->whole_cleared = !rc;
    return rc;
}
