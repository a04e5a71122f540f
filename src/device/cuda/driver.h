/* The CUDA driver, loaded at run time: a table of its functions and the translation of its errors.
 */
#ifndef GPUMEMTOPO_DEVICE_CUDA_DRIVER_H
#define GPUMEMTOPO_DEVICE_CUDA_DRIVER_H

#include <cuda.h>

#include "base/err.h"

/* cuda.h maps plain names to the versioned symbols (cuMemAlloc to cuMemAlloc_v2); fields and the
 * strings looked up follow it. What the driver of CUDA 11.0 does not have yet is optional, and NULL
 * without it, or has an older name, which does the same. Only cuDeviceGetUuid does not: it gives
 * instances of MIG the UUID of their GPU (see source.c). */
#define DRIVER_REQUIRED NULL
#define DRIVER_OPTIONAL ""
#define DRIVER_FUNCTIONS(X)                                                                        \
    X(cuInit, DRIVER_REQUIRED)                                                                     \
    X(cuDriverGetVersion, DRIVER_REQUIRED)                                                         \
    X(cuGetErrorName, DRIVER_REQUIRED)                                                             \
    X(cuGetErrorString, DRIVER_REQUIRED)                                                           \
    X(cuDeviceGetCount, DRIVER_REQUIRED)                                                           \
    X(cuDeviceGet, DRIVER_REQUIRED)                                                                \
    X(cuDeviceGetName, DRIVER_REQUIRED)                                                            \
    X(cuDeviceGetUuid_v2, "cuDeviceGetUuid")                                                       \
    X(cuDeviceGetPCIBusId, DRIVER_REQUIRED)                                                        \
    X(cuDeviceGetAttribute, DRIVER_REQUIRED)                                                       \
    X(cuDeviceTotalMem, DRIVER_REQUIRED)                                                           \
    X(cuDevicePrimaryCtxRetain, DRIVER_REQUIRED)                                                   \
    X(cuDevicePrimaryCtxRelease, DRIVER_REQUIRED)                                                  \
    X(cuCtxSetCurrent, DRIVER_REQUIRED)                                                            \
    X(cuCtxGetLimit, DRIVER_REQUIRED)                                                              \
    X(cuModuleLoadData, DRIVER_REQUIRED)                                                           \
    X(cuModuleUnload, DRIVER_REQUIRED)                                                             \
    X(cuModuleGetFunction, DRIVER_REQUIRED)                                                        \
    X(cuModuleGetGlobal, DRIVER_REQUIRED)                                                          \
    X(cuFuncGetAttribute, DRIVER_REQUIRED)                                                         \
    X(cuFuncSetAttribute, DRIVER_REQUIRED)                                                         \
    X(cuLinkCreate, DRIVER_REQUIRED)                                                               \
    X(cuLinkAddData, DRIVER_REQUIRED)                                                              \
    X(cuLinkComplete, DRIVER_REQUIRED)                                                             \
    X(cuLinkDestroy, DRIVER_REQUIRED)                                                              \
    X(cuMemGetInfo, DRIVER_REQUIRED)                                                               \
    X(cuMemAlloc, DRIVER_REQUIRED)                                                                 \
    X(cuMemFree, DRIVER_REQUIRED)                                                                  \
    X(cuMemHostAlloc, DRIVER_REQUIRED)                                                             \
    X(cuMemHostGetDevicePointer, DRIVER_REQUIRED)                                                  \
    X(cuMemFreeHost, DRIVER_REQUIRED)                                                              \
    X(cuMemsetD32Async, DRIVER_REQUIRED)                                                           \
    X(cuMemcpyHtoDAsync, DRIVER_REQUIRED)                                                          \
    X(cuMemcpyDtoHAsync, DRIVER_REQUIRED)                                                          \
    X(cuDeviceCanAccessPeer, DRIVER_REQUIRED)                                                      \
    X(cuCtxEnablePeerAccess, DRIVER_REQUIRED)                                                      \
    X(cuCtxDisablePeerAccess, DRIVER_REQUIRED)                                                     \
    X(cuMemcpyPeerAsync, DRIVER_REQUIRED)                                                          \
    X(cuStreamCreate, DRIVER_REQUIRED)                                                             \
    X(cuStreamDestroy, DRIVER_REQUIRED)                                                            \
    X(cuStreamSynchronize, DRIVER_REQUIRED)                                                        \
    X(cuStreamWaitEvent, DRIVER_REQUIRED)                                                          \
    X(cuEventCreate, DRIVER_REQUIRED)                                                              \
    X(cuEventDestroy, DRIVER_REQUIRED)                                                             \
    X(cuEventQuery, DRIVER_REQUIRED)                                                               \
    X(cuEventRecord, DRIVER_REQUIRED)                                                              \
    X(cuEventElapsedTime, "cuEventElapsedTime")                                                    \
    X(cuLaunchKernel, DRIVER_REQUIRED)                                                             \
    X(cuLaunchKernelEx, DRIVER_OPTIONAL)                                                           \
    X(cuOccupancyMaxActiveClusters, DRIVER_OPTIONAL)                                               \
    X(cuTexObjectCreate, DRIVER_REQUIRED)                                                          \
    X(cuTexObjectDestroy, DRIVER_REQUIRED)

struct driver {
    void *library;
    int version; /* 13000: CUDA 13.0 */
#define DRIVER_FIELD(name, otherwise) __typeof__(&name) name;
    DRIVER_FUNCTIONS(DRIVER_FIELD)
#undef DRIVER_FIELD
};

/* Loads and initialises the driver. -ENODEV with a text that says what is missing: the library, a
 * function (driver too old) or a device. Released with driver_unload. */
int driver_load(struct driver *driver, struct err *err);
void driver_unload(struct driver *driver); /* accepts a zeroed struct */

/* 0 for CUDA_SUCCESS; else a negative errno, with the name of the CUDA error in the text. -EIO: the
 * device is unusable, all later calls would fail too. -ENOSPC: no GPU memory left. -EBUSY: another
 * process holds the GPU exclusively. */
int driver_check(const struct driver *driver, CUresult result, const char *what, struct err *err);

#endif
