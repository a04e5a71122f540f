/* All memory that can be had: for tests and maps of it, and for jobs that reach further than the
 * pool of global memory. */
#include "device/cuda/gpu.h"

#include <errno.h>

static const uint64_t PLACE_BYTES = UINT64_C(2) << 20;

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
static int give_back(struct cuda_gpu *gpu, const char *why, struct err *err)
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
    if (watch_others(&gpu->watch, &gpu->told))
        return give_back(gpu, "another process uses the GPU and may need its memory", err);
    int rc = cuda_whole_take(gpu, err);
    if (rc)
        return rc;
    gpu->wide_base = gpu->whole;
    if (gpu->base.limits.wide_bytes > MUCH * ALIGNED_BYTES)
        gpu->wide_base = (gpu->whole + ALIGNED_BYTES - 1) / ALIGNED_BYTES * ALIGNED_BYTES;
    if (gpu->wide_base + gpu->base.limits.wide_bytes > gpu->whole + gpu->whole_bytes)
        return give_back(gpu, "the memory is no longer free", err);
    rc = cuda_check(
        gpu, gpu->driver->cuMemsetD32Async(gpu->whole, 0, gpu->whole_bytes / 4, gpu->streams[0]),
        "cuMemsetD32Async", err);
    gpu->whole_cleared = !rc;
    return rc;
}
