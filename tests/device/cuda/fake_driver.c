/* A stand-in for libcuda.so.1 that executes the chase jobs on the CPU: memory is the host's, and a
 * load takes 1 + (address / 8) % 256 cycles, so that latencies tell which elements were loaded. */
#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/device.h"
#include "fake_kernels.h"

#define EXPORT __attribute__((visibility("default")))

/* FAKE_CUDA_OLDER: the driver of CUDA 11.0. It lacks the newer names of functions, and clusters. */
#ifdef FAKE_CUDA_OLDER
#undef cuDeviceGetUuid
#undef cuEventElapsedTime
enum { FAKE_VERSION = 11000 };
#else
#undef cuDeviceGetUuid
#define cuDeviceGetUuid cuDeviceGetUuid_v2
enum { FAKE_VERSION = CUDA_VERSION };
#endif

enum {
    PLACE_BYTES = 2 << 20,
    SHARED_MAX = 227 * 1024,
    THREADS_PER_SM = 1536,
    CAPABILITY = 99,
    L2_FETCH_LIMIT = 64,
};

/* How long a copy of what is large takes. */
enum { LARGE_US = 500 };

/* FAKE_CUDA_FAULT="cuLaunchKernel:3:700:sticky": the third call of the function fails with error
 * 700, and from then on everything that works on the GPU does. With FAKE_CUDA_FAULTY=1 that is so
 * on GPU 1 only. */
static CUdevice current_device = -1;
static int fault_calls;
static CUresult fault_stuck;

static CUresult fault(const char *function)
{
    static char known[128];
    const char *text = getenv("FAKE_CUDA_FAULT");
    char name[64] = "", sticky[16] = "";
    int call = 0, code = 0;
    const char *faulty = getenv("FAKE_CUDA_FAULTY");
    if (!text || (faulty && atoi(faulty) != current_device))
        text = "";
    if (strcmp(text, known) != 0) {
        snprintf(known, sizeof known, "%s", text);
        fault_calls = 0;
        fault_stuck = CUDA_SUCCESS;
    }
    if (fault_stuck || sscanf(text, "%63[^:]:%d:%d:%15s", name, &call, &code, sticky) < 3)
        return fault_stuck;
    if (strncmp(function, name, strlen(name)) != 0 || ++fault_calls != call)
        return CUDA_SUCCESS;
    fault_stuck = *sticky ? (CUresult)code : CUDA_SUCCESS;
    return (CUresult)code;
}
#define MAY_FAIL                                                                                   \
    do {                                                                                           \
        CUresult failed = fault(__func__);                                                         \
        if (failed)                                                                                \
            return failed;                                                                         \
    } while (0)

EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned grid, unsigned y, unsigned z,
                               unsigned block, unsigned by, unsigned bz, unsigned shared,
                               CUstream stream, void **parameters, void **extra)
{
    const char *name = (const char *)function;
    MAY_FAIL;
    (void)y, (void)z, (void)by, (void)bz, (void)stream, (void)extra;
    if (shared > SHARED_MAX - KERNEL_STATIC_BYTES)
        return CUDA_ERROR_INVALID_VALUE;
    fake_kernels_run(name, grid, block, parameters);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuInit(unsigned flags)
{
    const char *failure = getenv("FAKE_CUDA_INIT");
    fault_calls = 0;
    fake_gpu.textured = false;
    fake_gpu.load_ms = 0;
    fault_stuck = CUDA_SUCCESS;
    (void)flags;
    return failure ? (CUresult)atoi(failure) : CUDA_SUCCESS;
}

EXPORT CUresult cuDriverGetVersion(int *version)
{
    const char *pretended = getenv("FAKE_CUDA_VERSION");
    *version = pretended ? atoi(pretended) : FAKE_VERSION;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGetErrorName(CUresult error, const char **text)
{
    (void)error;
    *text = "CUDA_ERROR_FAKE";
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGetErrorString(CUresult error, const char **text)
{
    (void)error;
    *text = "made up";
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetCount(int *count)
{
    const char *wanted = getenv("FAKE_CUDA_DEVICES");
    *count = wanted ? atoi(wanted) : 1;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    *device = ordinal;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetName(char *name, int length, CUdevice device)
{
    (void)device;
    strncpy(name, "Fake GPU", (size_t)length);
    return CUDA_SUCCESS;
}

static int number_of(const char *name)
{
    const char *text = getenv(name);
    return text ? atoi(text) : 0;
}

/* FAKE_CUDA_NODE="2": as the stand-ins of other nodes have another number, other UUIDs.
 * FAKE_CUDA_TEST=PID, from tests/nothing_left.py: the last four bytes, since processes that use
 * one GPU take turns, and tests that run at once would. */
EXPORT CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    int node = number_of("FAKE_CUDA_NODE"), test = number_of("FAKE_CUDA_TEST");
    for (int i = 0; i < 16; i++)
        uuid->bytes[i] = (char)(0x10 * i + i + (i == 0 ? device : i == 1 ? node : 0));
    for (int i = 12; i < 16; i++)
        uuid->bytes[i] = (char)(uuid->bytes[i] + (test >> 8 * (15 - i)));
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetPCIBusId(char *text, int length, CUdevice device)
{
    snprintf(text, (size_t)length, "FFFF:%02X:00.0", (unsigned)(0x1b + device));
    return CUDA_SUCCESS;
}

/* FAKE_CUDA_CAPABILITY="90:233472": compute capability 9.0, so many bytes of shared memory per SM.
 */
static int capability(void)
{
    const char *text = getenv("FAKE_CUDA_CAPABILITY");
    return text ? atoi(text) : CAPABILITY;
}

static int shared_per_sm(void)
{
    const char *text = getenv("FAKE_CUDA_CAPABILITY");
    const char *colon = text ? strchr(text, ':') : NULL;
    return colon ? atoi(colon + 1) : SHARED_MAX + 1024;
}

/* What a fat binary has for a GPU: the newest machine code of the same major version, and the
 * newest PTX that is not newer than the GPU or the driver. 0: none. */
struct fake_code {
    int machine, ptx;
};

/* One entry of a fat binary, without what is not used; its data follow behind header_bytes. */
struct fatbin_entry {
    uint16_t kind, unused; /* 1: PTX, 2: machine code */
    uint32_t header_bytes;
    uint64_t bytes;
    uint32_t unused2[2];
    uint16_t minor, major; /* of the version of PTX */
    uint32_t arch;
};

static const uint32_t FATBIN_MAGIC = 0xba55ed50;
static struct fake_code loaded;

static struct fake_code look_into(const unsigned char *fatbin)
{
    struct fake_code found = {0};
    struct fatbin_entry entry;
    uint64_t bytes;
    int version = 0, gpu = capability();
    cuDriverGetVersion(&version);
    memcpy(&bytes, fatbin + 8, sizeof bytes);
    const unsigned char *at = fatbin + 16, *end = at + bytes;
    for (; at < end; at += entry.header_bytes + entry.bytes) {
        memcpy(&entry, at, sizeof entry);
        int arch = (int)entry.arch, needed = 1000 * (entry.major + 4) + 10 * entry.minor;
        if (arch > gpu)
            continue;
        if (entry.kind == 1 && arch > found.ptx && version >= needed)
            found.ptx = arch;
        if (entry.kind == 2 && arch / 10 == gpu / 10 && arch > found.machine)
            found.machine = arch;
    }
    return found;
}

EXPORT CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    MAY_FAIL;
    if (memcmp(image, &FATBIN_MAGIC, sizeof FATBIN_MAGIC) == 0) {
        loaded = look_into(image);
        if (!loaded.machine && !loaded.ptx)
            return CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    *module = (CUmodule)(uintptr_t)8;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
    const char *forced = getenv("CUDA_FORCE_PTX_JIT");
    MAY_FAIL;
    (void)function;
    bool jit = !loaded.machine || (forced && atoi(forced));
    *value = attribute == CU_FUNC_ATTRIBUTE_PTX_VERSION ? jit ? loaded.ptx : loaded.machine
             : jit                                      ? capability()
                                                        : loaded.machine;
    return CUDA_SUCCESS;
}

/* FAKE_CUDA_FAULT may let it fail, as it does where there is no such limit. */
EXPORT CUresult cuCtxGetLimit(size_t *value, CUlimit limit)
{
    MAY_FAIL;
    *value = limit == CU_LIMIT_MAX_L2_FETCH_GRANULARITY ? L2_FETCH_LIMIT : 0;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    (void)device;
    switch ((int)attribute) {
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        *value = FAKE_SMS;
        break;
    case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY:
        *value = KERNEL_CONSTANT_BYTES;
        break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
        *value = capability() < 70 ? 0 : SHARED_MAX;
        break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
        *value = 48 * 1024;
        break;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH:
        *value = 1 << 27;
        break;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
        *value = 1 << 20;
        break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
        *value = THREADS_PER_SM;
        break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        *value = capability() / 10;
        break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        *value = capability() % 10;
        break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
        *value = shared_per_sm();
        break;
    case CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH: /* FAKE_CUDA_CLUSTERS="0": there are none */
        *value = getenv("FAKE_CUDA_CLUSTERS") ? atoi(getenv("FAKE_CUDA_CLUSTERS")) : 1;
        break;
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
        return CUDA_ERROR_INVALID_VALUE;
    default:
        *value = 9;
    }
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device)
{
    (void)device;
    *bytes = (size_t)1 << 30;
    return CUDA_SUCCESS;
}

/* FAKE_CUDA_MEMORY="160": so many MiB. */
EXPORT CUresult cuMemGetInfo(size_t *free_bytes, size_t *total)
{
    const char *text = getenv("FAKE_CUDA_MEMORY");
    *free_bytes = *total = (text ? strtoull(text, NULL, 10) : 64) << 20;
    return CUDA_SUCCESS;
}

static void *allocate(size_t bytes)
{
    void *memory = NULL;
    if (posix_memalign(&memory, PLACE_BYTES, bytes))
        return NULL;
    if (bytes <= FAKE_LARGE_BYTES)
        memset(memory, 0xff, bytes); /* what nobody set is caught: no chain leads there */
    return memory;
}

/* How often most of the memory was taken, and given back. */
EXPORT unsigned fake_whole_taken, fake_whole_freed;
static CUdeviceptr whole;
static size_t whole_bytes;

EXPORT CUresult cuMemAlloc(CUdeviceptr *pointer, size_t bytes)
{
    MAY_FAIL;
    size_t free_bytes, total_bytes;
    cuMemGetInfo(&free_bytes, &total_bytes);
    if (whole && whole_bytes + bytes > free_bytes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *pointer = (CUdeviceptr)(uintptr_t)allocate(bytes);
    if (*pointer && bytes > free_bytes / 4 * 3 && bytes <= free_bytes) {
        fake_whole_taken++;
        whole = *pointer;
        whole_bytes = bytes;
    }
    return *pointer ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT CUresult cuMemFree(CUdeviceptr pointer)
{
    fake_whole_freed += pointer && pointer == whole;
    whole = pointer == whole ? 0 : whole;
    free((void *)(uintptr_t)pointer);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemHostAlloc(void **pointer, size_t bytes, unsigned flags)
{
    (void)flags;
    MAY_FAIL;
    *pointer = allocate(bytes);
    return *pointer ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT CUresult cuMemFreeHost(void *pointer)
{
    free(pointer);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemHostGetDevicePointer(CUdeviceptr *device, void *host, unsigned flags)
{
    (void)flags;
    *device = (CUdeviceptr)(uintptr_t)host;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemsetD32Async(CUdeviceptr pointer, unsigned value, size_t count, CUstream stream)
{
    (void)stream;
    if (value && count * sizeof value > PLACE_BYTES)
        return CUDA_SUCCESS; /* it empties L2: nobody reads it */
    for (size_t i = 0; i < count; i++)
        ((uint32_t *)(uintptr_t)pointer)[i] = value;
    return CUDA_SUCCESS;
}

/* A copy is under way until someone waits for it or has asked twice; FAKE_COPYING tells the
 * stand-in for NVML. */
static int queries_left;

EXPORT CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    (void)stream;
    MAY_FAIL;
    if (bytes <= PLACE_BYTES) /* larger ones are streams, whose content nobody reads */
        memcpy((void *)(uintptr_t)to, from, bytes);
    if (bytes >= FAKE_LARGE_BYTES)
        usleep(LARGE_US);
    setenv("FAKE_COPYING", "1", 1);
    queries_left = 3;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    (void)stream;
    MAY_FAIL;
    if (bytes < FAKE_LARGE_BYTES)
        memcpy(to, (const void *)(uintptr_t)from, bytes);
    else
        usleep(LARGE_US);
    return CUDA_SUCCESS;
}

/* FAKE_CUDA_APART="1": SMs cannot reach the memory of other GPUs. */
EXPORT CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    MAY_FAIL;
    *can = device != peer && !getenv("FAKE_CUDA_APART");
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags)
{
    (void)peer, (void)flags;
    MAY_FAIL;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxDisablePeerAccess(CUcontext peer)
{
    (void)peer;
    return CUDA_SUCCESS;
}

/* FAKE_CUDA_WRONG="64": the byte at this offset of copies between GPUs arrives wrong.
 * FAKE_CUDA_HANG="1": they never come back. */
EXPORT CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                                  CUcontext from_context, size_t bytes, CUstream stream)
{
    const char *wrong = getenv("FAKE_CUDA_WRONG");
    (void)stream;
    MAY_FAIL;
    if (to_context == from_context)
        return CUDA_ERROR_INVALID_CONTEXT;
    while (getenv("FAKE_CUDA_HANG"))
        pause();
    if (bytes < FAKE_LARGE_BYTES)
        memcpy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
    if (wrong)
        ((unsigned char *)(uintptr_t)to)[atoi(wrong)] = 0xa5;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    static char names[64][64];
    static int count;
    (void)module;
    strncpy(names[count % 64], name, sizeof names[0] - 1);
    *function = (CUfunction)names[count++ % 64];
    return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleGetGlobal(CUdeviceptr *pointer, size_t *bytes, CUmodule module,
                                  const char *name)
{
    (void)module, (void)name;
    *pointer = (CUdeviceptr)(uintptr_t)fake_gpu.constant_words;
    *bytes = sizeof fake_gpu.constant_words;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuTexObjectCreate(CUtexObject *object, const CUDA_RESOURCE_DESC *resource,
                                  const CUDA_TEXTURE_DESC *texture,
                                  const CUDA_RESOURCE_VIEW_DESC *view)
{
    (void)texture, (void)view;
    fake_gpu.texture_base = resource->res.linear.devPtr;
    *object = 1;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventQuery(CUevent event)
{
    (void)event;
    if (queries_left > 0 && --queries_left)
        return CUDA_ERROR_NOT_READY;
    unsetenv("FAKE_COPYING");
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
    (void)start, (void)end;
    *ms = fake_gpu.load_ms > 0 ? fake_gpu.load_ms : 1;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamSynchronize(CUstream stream)
{
    (void)stream;
    unsetenv("FAKE_COPYING");
    MAY_FAIL;
    return CUDA_SUCCESS;
}

/* FAKE_CONTEXT tells the stand-in for NVML that this process is on the GPU: the first one that it
 * has a context on. */
static int contexts;

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    if (!contexts)
        current_device = device;
    MAY_FAIL;
    contexts++;
    *context = (CUcontext)(uintptr_t)(8 + device);
    setenv("FAKE_CONTEXT", "1", 1);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    (void)device;
    if (--contexts == 0)
        unsetenv("FAKE_CONTEXT");
    return CUDA_SUCCESS;
}

#pragma GCC diagnostic ignored "-Wunused-parameter"

/* Things of which only the existence matters. */
#define FAKE_OBJECT(name, type, argument)                                                          \
    EXPORT CUresult name(type *object, argument unused)                                            \
    {                                                                                              \
        *object = (type)(uintptr_t)8;                                                              \
        return CUDA_SUCCESS;                                                                       \
    }
FAKE_OBJECT(cuStreamCreate, CUstream, unsigned)
FAKE_OBJECT(cuEventCreate, CUevent, unsigned)

#define FAKE_NOTHING(name, type)                                                                   \
    EXPORT CUresult name(type unused)                                                              \
    {                                                                                              \
        return CUDA_SUCCESS;                                                                       \
    }
FAKE_NOTHING(cuCtxSetCurrent, CUcontext)
FAKE_NOTHING(cuModuleUnload, CUmodule)
FAKE_NOTHING(cuStreamDestroy, CUstream)
FAKE_NOTHING(cuEventDestroy, CUevent)
FAKE_NOTHING(cuTexObjectDestroy, CUtexObject)

EXPORT CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventRecord(CUevent event, CUstream stream)
{
    return CUDA_SUCCESS;
}
