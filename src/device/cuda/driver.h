/* The CUDA driver, loaded at run time: a table of its functions and the translation of its errors.
 */
#ifndef GPUMEMTOPO_DEVICE_CUDA_DRIVER_H
#define GPUMEMTOPO_DEVICE_CUDA_DRIVER_H

#include <cuda.h>

#include "base/err.h"

/* cuda.h maps plain names to the versioned symbols (cuMemAlloc to cuMemAlloc_v2); fields and the
 * strings looked up follow it. What the driver of CUDA 11.0 does not have yet is looked up by its
 * older name then, which does the same, or is NULL. cuDeviceGetUuid_v2 differs for instances of MIG
 * (see source.c). */
#define REQUIRED NULL
#define OPTIONAL ""
#define DRIVER_FUNCTIONS(X)                                                                        \
    X(cuInit, REQUIRED)                                                                            \
    X(cuDriverGetVersion, REQUIRED)                                                                \
    X(cuGetErrorName, REQUIRED)                                                                    \
    X(cuGetErrorString, REQUIRED)                                                                  \
    X(cuDeviceGetCount, REQUIRED)                                                                  \
    X(cuDeviceGet, REQUIRED)                                                                       \
    X(cuDeviceGetName, REQUIRED)                                                                   \
    X(cuDeviceGetUuid_v2, "cuDeviceGetUuid")                                                       \
    X(cuDeviceGetPCIBusId, REQUIRED)                                                               \
    X(cuDeviceGetAttribute, REQUIRED)                                                              \
    X(cuDeviceTotalMem, REQUIRED)                                                                  \
    X(cuDevicePrimaryCtxRetain, REQUIRED)                                                          \
    X(cuDevicePrimaryCtxRelease, REQUIRED)                                                         \
    X(cuCtxSetCurrent, REQUIRED)                                                                   \
    X(cuCtxGetLimit, REQUIRED)                                                                     \
    X(cuModuleLoadData, REQUIRED)                                                                  \
    X(cuModuleUnload, REQUIRED)                                                                    \
    X(cuModuleGetFunction, REQUIRED)                                                               \
    X(cuModuleGetGlobal, REQUIRED)                                                                 \
    X(cuFuncGetAttribute, REQUIRED)                                                                \
    X(cuFuncSetAttribute, REQUIRED)                                                                \
    X(cuLinkCreate, REQUIRED)                                                                      \
    X(cuLinkAddData, REQUIRED)                                                                     \
    X(cuLinkComplete, REQUIRED)                                                                    \
    X(cuLinkDestroy, REQUIRED)                                                                     \
    X(cuMemGetInfo, REQUIRED)                                                                      \
    X(cuMemAlloc, REQUIRED)                                                                        \
    X(cuMemFree, REQUIRED)                                                                         \
    X(cuMemHostAlloc, REQUIRED)                                                                    \
    X(cuMemHostGetDevicePointer, REQUIRED)                                                         \
    X(cuMemFreeHost, REQUIRED)                                                                     \
    X(cuMemsetD32Async, REQUIRED)                                                                  \
    X(cuMemcpyHtoDAsync, REQUIRED)                                                                 \
    X(cuMemcpyDtoHAsync, REQUIRED)                                                                 \
    X(cuDeviceCanAccessPeer, REQUIRED)                                                             \
    X(cuCtxEnablePeerAccess, REQUIRED)                                                             \
    X(cuCtxDisablePeerAccess, REQUIRED)                                                            \
    X(cuMemcpyPeerAsync, REQUIRED)                                                                 \
    X(cuStreamCreate, REQUIRED)                                                                    \
    X(cuStreamDestroy, REQUIRED)                                                                   \
    X(cuStreamSynchronize, REQUIRED)                                                               \
    X(cuStreamWaitEvent, REQUIRED)                                                                 \
    X(cuEventCreate, REQUIRED)                                                                     \
    X(cuEventDestroy, REQUIRED)                                                                    \
    X(cuEventQuery, REQUIRED)                                                                      \
    X(cuEventRecord, REQUIRED)                                                                     \
    X(cuEventElapsedTime, "cuEventElapsedTime")                                                    \
    X(cuLaunchKernel, REQUIRED)                                                                    \
    X(cuLaunchKernelEx, OPTIONAL)                                                                  \
    X(cuOccupancyMaxActiveClusters, OPTIONAL)                                                      \
    X(cuTexObjectCreate, REQUIRED)                                                                 \
    X(cuTexObjectDestroy, REQUIRED)

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
