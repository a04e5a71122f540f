/* Loads of shared memory: one block, whose warps read the clock of their SM. */
#include "device/shared_load.h"

#include <errno.h>
#include <stdio.h>

#include "device/cuda/gpu.h"
#include "device/cuda/kernels.h"

enum { WARP_LANES = 32 };
_Static_assert((int)SHARED_LOAD_UNROLL == (int)KERNEL_SHARED_UNROLL,
               "loads are repeated in whole loops");
_Static_assert((int)SHARED_LOAD_PLACES == (int)KERNEL_SHARED_PLACES &&
                   (int)SHARED_LOAD_PLACE_BYTES == (int)KERNEL_SHARED_PLACE_BYTES,
               "warps load at the same places");
_Static_assert((int)SHARED_LOAD_WARPS_MAX == (int)KERNEL_SHARED_WARPS, "room for every warp");

static int find_shared_kernel(struct cuda_gpu *gpu, uint32_t width, uint32_t bytes,
                              CUfunction *out_function, struct err *err)
{
    const struct driver *driver = gpu->driver;
    char name[32];
    snprintf(name, sizeof name, "shared_load_%u", width);
    int rc = cuda_find_kernel(gpu, CUDA_KERNELS_SHARED_LOAD, name, out_function, err);
    if (rc)
        return rc;
    return cuda_check(gpu,
                      driver->cuFuncSetAttribute(*out_function,
                                                 CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                 (int)bytes),
                      "cuFuncSetAttribute", err);
}

static uint64_t cycles_of(const struct kernel_shared_result *result, uint32_t warps)
{
    uint64_t cycles[SHARED_LOAD_WARPS_MAX];
    for (uint32_t w = 0; w < warps; w++)
        cycles[w] = result->end[w] - result->begin[w];
    return device_shared_load_median(cycles, warps);
}

int cuda_load_shared(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_shared_load *load = request;
    struct device_shared_load_answer *out_answer = answer;
    struct cuda_gpu *gpu = cuda_of(device);
    CUfunction function = NULL;
    struct kernel_shared_load asked = {.lanes = load->lanes,
                                       .lane_stride_bytes = load->lane_stride_bytes,
                                       .bytes = (uint32_t)device_shared_load_bytes(load),
                                       .repeats = load->loads / SHARED_LOAD_UNROLL};
    int rc = cuda_set_current(gpu, err);
    if (rc)
        return rc;
    rc = find_shared_kernel(gpu, load->width_bytes, asked.bytes, &function, err);
    if (rc)
        return rc;
    rc = staging_grow(gpu, &gpu->results, sizeof(struct kernel_shared_result), err);
    if (rc)
        return rc;
    asked.result = gpu->results.device;
    void *parameters[] = {&asked};
    rc = cuda_launch(gpu, function, 1, load->warps * WARP_LANES, asked.bytes, parameters, err);
    if (rc)
        return rc;
    rc = staging_download(gpu, &gpu->results, sizeof(struct kernel_shared_result), err);
    if (rc)
        return rc;
    rc = cuda_wait(gpu, err);
    if (rc)
        return rc;
    out_answer->cycles = cycles_of(gpu->results.host, load->warps);
    return 0;
}
