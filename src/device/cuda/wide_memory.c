/* All memory that can be had, for jobs that reach further than the pool of global memory. */
#include "device/cuda/gpu.h"

#include <errno.h>

static const uint64_t PLACE_BYTES = UINT64_C(2) << 20;

/* If there is much memory, it begins at a multiple of what the sets of a TLB cover once, so that
 * neighbouring pages fill them alike in every run (Hopper: 256 sets of 32 MiB). */
static const uint64_t ALIGNED_BYTES = UINT64_C(8) << 30;
enum { MUCH = 8, POOL_SHARE = 8 };

/* What the driver and this program need besides, as a share. */
static const double LEFT_SHARE = 1.0 / 32;

uint64_t cuda_wide_limit(uint64_t free_bytes, uint64_t pool_bytes)
{
    uint64_t bytes = (uint64_t)((1 - LEFT_SHARE) * (double)free_bytes);
    /* A pool of little memory seldom grows to its limit. If it did, less can be had: -EBUSY. */
    if (pool_bytes > free_bytes / POOL_SHARE)
        pool_bytes = free_bytes / POOL_SHARE;
    bytes = bytes > pool_bytes ? (bytes - pool_bytes) / PLACE_BYTES * PLACE_BYTES : 0;
    return bytes > (MUCH + 1) * ALIGNED_BYTES ? bytes - ALIGNED_BYTES : bytes;
}

bool cuda_wide_needed(const struct cuda_gpu *gpu, const struct layout *layout)
{
    return layout->end_bytes[MEMORY_GLOBAL] > gpu->base.limits.global_bytes;
}

int cuda_wide_reserve(struct cuda_gpu *gpu, struct err *err)
{
    uint64_t bytes = gpu->base.limits.wide_bytes;
    bool aligned = bytes > MUCH * ALIGNED_BYTES;
    if (gpu->wide)
        return 0;
    bytes += aligned ? ALIGNED_BYTES : 0;
    if (watch_others(&gpu->watch, &gpu->told))
        return err_set(err, -EBUSY, "another process uses the GPU and may need its memory");
    int rc = cuda_check(gpu, gpu->driver->cuMemAlloc(&gpu->wide, bytes), "cuMemAlloc", err);
    if (rc) {
        gpu->wide = 0;
        return rc == -ENOSPC ? err_set(err, -EBUSY, "the memory is no longer free") : rc;
    }
    gpu->wide_base = gpu->wide;
    if (aligned)
        gpu->wide_base = (gpu->wide + ALIGNED_BYTES - 1) / ALIGNED_BYTES * ALIGNED_BYTES;
    return cuda_check(gpu, gpu->driver->cuMemsetD32Async(gpu->wide, 0, bytes / 4, gpu->streams[0]),
                      "cuMemsetD32Async", err);
}

void cuda_wide_release(struct cuda_gpu *gpu)
{
    if (gpu->wide)
        gpu->driver->cuMemFree(gpu->wide);
    gpu->wide = 0;
}

/* The next requests are for something else: they may need the memory. */
void cuda_mark(struct device *device, const char *what)
{
    struct cuda_gpu *gpu = cuda_of(device);
    (void)what;
    if (gpu->wide && !gpu->lost && gpu->driver->cuCtxSetCurrent(gpu->context) == CUDA_SUCCESS)
        cuda_wide_release(gpu);
}
