/* Pinned memory and its counterpart on the GPU. */
#include "device/cuda/gpu.h"

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
