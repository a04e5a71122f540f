/* Driver calls for an open GPU that all files of the backend use. */
#include "device/cuda/gpu.h"

#include "base/str.h"

int cuda_check(const struct cuda_gpu *gpu, CUresult result, const char *what, struct err *err)
{
    return driver_check(gpu->driver, result, what, err);
}

int cuda_attribute(const struct cuda_gpu *gpu, CUdevice_attribute attribute, int *out_value,
                   struct err *err)
{
    int value = 0;
    int rc = cuda_check(gpu, gpu->driver->cuDeviceGetAttribute(&value, attribute, gpu->device),
                        "cuDeviceGetAttribute", err);
    if (rc)
        return rc;
    *out_value = value;
    return 0;
}

int cuda_capability(const struct cuda_gpu *gpu, int *out_major, int *out_minor, struct err *err)
{
    int rc = cuda_attribute(gpu, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, out_major, err);
    if (rc)
        return rc;
    return cuda_attribute(gpu, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, out_minor, err);
}

int cuda_l2_fetch_limit(const struct cuda_gpu *gpu, uint32_t *out_bytes, struct err *err)
{
    size_t bytes = 0;
    int rc = cuda_set_current(gpu, err);
    if (rc)
        return rc;
    rc = cuda_check(gpu, gpu->driver->cuCtxGetLimit(&bytes, CU_LIMIT_MAX_L2_FETCH_GRANULARITY),
                    "cuCtxGetLimit", err);
    if (rc)
        return rc;
    *out_bytes = (uint32_t)bytes;
    return 0;
}

int cuda_set_current(const struct cuda_gpu *gpu, struct err *err)
{
    return cuda_check(gpu, gpu->driver->cuCtxSetCurrent(gpu->context), "cuCtxSetCurrent", err);
}

int cuda_load_kernels(struct cuda_gpu *gpu, enum cuda_kernels file, struct err *err)
{
#define FILE_NAME(name, file, argument) [CUDA_KERNELS_##name] = "loading the " #file " kernels",
    static const char *const loading[] = {CUDA_KERNELS(FILE_NAME, )};
#undef FILE_NAME
    if (gpu->modules[file])
        return 0;
    return cuda_check(
        gpu, gpu->driver->cuModuleLoadData(&gpu->modules[file], gpu->flavour->fatbins[file]),
        loading[file], err);
}

int cuda_find_kernel(struct cuda_gpu *gpu, enum cuda_kernels file, const char *name,
                     CUfunction *out_function, struct err *err)
{
    int rc = cuda_load_kernels(gpu, file, err);
    if (rc)
        return rc;
    return cuda_check(gpu, gpu->driver->cuModuleGetFunction(out_function, gpu->modules[file], name),
                      name, err);
}

int cuda_elapsed(const struct cuda_gpu *gpu, CUevent from, CUevent to, uint64_t *out_ns,
                 struct err *err)
{
    float ms = 0;
    int rc =
        cuda_check(gpu, gpu->driver->cuEventElapsedTime(&ms, from, to), "cuEventElapsedTime", err);
    *out_ns = (uint64_t)((double)ms * 1e6 + 0.5);
    return rc;
}

int cuda_record(const struct cuda_gpu *gpu, CUevent event, CUstream stream, struct err *err)
{
    return cuda_check(gpu, gpu->driver->cuEventRecord(event, stream), "cuEventRecord", err);
}

int cuda_launch(const struct cuda_gpu *gpu, CUfunction function, uint32_t blocks, uint32_t threads,
                uint32_t shared_bytes, void **parameters, struct err *err)
{
    return cuda_check(gpu,
                      gpu->driver->cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1,
                                                  shared_bytes, gpu->streams[0], parameters, NULL),
                      "cuLaunchKernel", err);
}

int cuda_wait(struct cuda_gpu *gpu, struct err *err)
{
    watch_poll(&gpu->watch, &gpu->nvml_gpu); /* poll while the launched work is running */
    return cuda_check(gpu, gpu->driver->cuStreamSynchronize(gpu->streams[0]), "cuStreamSynchronize",
                      err);
}

/* Apart from the name of any other turn: hashes of equal texts only are equal. */
static uint64_t cuda_name(const char *uuid, uint64_t what)
{
    return str_hash(uuid) ^ what;
}

uint64_t cuda_turn_name(const char *uuid)
{
    return cuda_name(uuid, UINT64_C(0x6770752f7475726e));
}

uint64_t cuda_coming_name(const char *uuid)
{
    return cuda_name(uuid, UINT64_C(0x6770752f636f6d65));
}

uint64_t cuda_visit_name(const char *uuid)
{
    return cuda_name(uuid, UINT64_C(0x6770752f76697374));
}

uint64_t cuda_share_name(const char *uuid)
{
    return cuda_name(uuid, UINT64_C(0x6770752f686f7374));
}

void cuda_take_turn(struct turn *turn, const char *uuid)
{
    while (!turn_take(turn, TURN_LINK_MS) && flag_is_up(cuda_visit_name(uuid)))
        turn->impatient = false;
}
