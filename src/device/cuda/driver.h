/* The CUDA driver, loaded at run time: a table of its functions and the translation of its errors.
 */
#ifndef GPUMEMTOPO_DEVICE_CUDA_DRIVER_H
#define GPUMEMTOPO_DEVICE_CUDA_DRIVER_H

#include <cuda.h>

#include "base/err.h"

/* cuda.h maps plain names to the versioned symbols (cuMemAlloc to cuMemAlloc_v2); fields and the
 * strings looked up follow it. */
#define DRIVER_FUNCTIONS(X)                                                                        \
    X(cuInit)                                                                                      \
    X(cuDriverGetVersion)                                                                          \
    X(cuGetErrorName)                                                                              \
    X(cuGetErrorString)                                                                            \
    X(cuDeviceGetCount)                                                                            \
    X(cuDeviceGet)                                                                                 \
    X(cuDeviceGetName)                                                                             \
    X(cuDeviceGetUuid)                                                                             \
    X(cuDeviceGetPCIBusId)                                                                         \
    X(cuDeviceGetAttribute)                                                                        \
    X(cuDeviceTotalMem)                                                                            \
    X(cuDevicePrimaryCtxRetain)                                                                    \
    X(cuDevicePrimaryCtxRelease)                                                                   \
    X(cuCtxSetCurrent)                                                                             \
    X(cuCtxGetLimit)                                                                               \
    X(cuModuleLoadData)                                                                            \
    X(cuModuleUnload)                                                                              \
    X(cuModuleGetFunction)                                                                         \
    X(cuModuleGetGlobal)                                                                           \
    X(cuFuncGetAttribute)                                                                          \
    X(cuFuncSetAttribute)                                                                          \
    X(cuLinkCreate)                                                                                \
    X(cuLinkAddData)                                                                               \
    X(cuLinkComplete)                                                                              \
    X(cuLinkDestroy)                                                                               \
    X(cuMemGetInfo)                                                                                \
    X(cuMemAlloc)                                                                                  \
    X(cuMemFree)                                                                                   \
    X(cuMemHostAlloc)                                                                              \
    X(cuMemHostGetDevicePointer)                                                                   \
    X(cuMemFreeHost)                                                                               \
    X(cuMemsetD32Async)                                                                            \
    X(cuMemcpyHtoDAsync)                                                                           \
    X(cuMemcpyDtoHAsync)                                                                           \
    X(cuDeviceCanAccessPeer)                                                                       \
    X(cuCtxEnablePeerAccess)                                                                       \
    X(cuCtxDisablePeerAccess)                                                                      \
    X(cuMemcpyPeerAsync)                                                                           \
    X(cuStreamCreate)                                                                              \
    X(cuStreamDestroy)                                                                             \
    X(cuStreamSynchronize)                                                                         \
    X(cuStreamWaitEvent)                                                                           \
    X(cuEventCreate)                                                                               \
    X(cuEventDestroy)                                                                              \
    X(cuEventQuery)                                                                                \
    X(cuEventRecord)                                                                               \
    X(cuEventElapsedTime)                                                                          \
    X(cuLaunchKernel)                                                                              \
    X(cuLaunchKernelEx)                                                                            \
    X(cuOccupancyMaxActiveClusters)                                                                \
    X(cuTexObjectCreate)                                                                           \
    X(cuTexObjectDestroy)

struct driver {
    void *library;
    int version; /* 13000: CUDA 13.0 */
#define DRIVER_FIELD(name) __typeof__(&name) name;
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
