/* GPU 0 of this machine, opened for a test. Where there is none, the test is skipped. */
#ifndef GPUMEMTOPO_TESTS_DEVICE_CUDA_REAL_GPU_H
#define GPUMEMTOPO_TESTS_DEVICE_CUDA_REAL_GPU_H

#include <stddef.h>

#include "device/cuda/driver.h"
#include "device/cuda/flavour.h"
#include "device/device.h"

enum { REAL_GPU_SKIPPED = 77 }; /* exit code of a test that could not run */

/* The rest of main: opens the GPU as a survey does, calls `run`, closes it. Returns what `run`
 * does, REAL_GPU_SKIPPED, or 1 if the GPU cannot be opened. */
int real_gpu_run(struct device **out_device, int (*run)(void));

/* The GPU without a survey's device: kernels of one module, launched by the test itself. */
struct real_module {
    struct driver driver;
    CUdevice device;
    CUstream stream;
    CUmodule module;
    CUdeviceptr memory, result;
};

/* The same for a module: loads the kernels and allocates memory and result, calls `run`, frees all.
 */
int real_module_run(struct real_module *module, enum cuda_kernels file, size_t memory_bytes,
                    size_t result_bytes, int (*run)(void));

/* The embedded kernels of a file that this GPU runs. */
const unsigned char *real_gpu_kernels(const struct driver *driver, CUdevice device,
                                      enum cuda_kernels file);

/* Fails the test unless a call of the driver succeeded. */
void real_gpu_ok(const struct driver *driver, CUresult code, const char *what);

#endif
