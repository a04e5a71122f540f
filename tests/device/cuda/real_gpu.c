/* GPU 0 of this machine, opened for a test. */
#include "real_gpu.h"

#include "../../check.h"

#include <stdio.h>

#include "device/source.h"

int real_gpu_run(struct device **out_device, int (*run)(void))
{
    struct device_source *source = NULL;
    struct err err = {0};
    if (device_source_cuda(&source, &err) || !device_source_count(source)) {
        printf("skipped, no GPU: %s\n", err.text);
        device_source_destroy(source);
        return REAL_GPU_SKIPPED;
    }
    if (device_source_open(source, 0, out_device, &err)) {
        printf("%s\n", err.text);
        device_source_destroy(source);
        return 1;
    }
    int failed = run();
    device_destroy(*out_device);
    device_source_destroy(source);
    return failed;
}

const unsigned char *real_gpu_kernels(const struct driver *driver, CUdevice device,
                                      enum cuda_kernels file)
{
    const struct flavour *flavour = NULL;
    struct err err = {0};
    int major = 0, minor = 0;
    real_gpu_ok(
        driver,
        driver->cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device),
        "cuDeviceGetAttribute");
    real_gpu_ok(
        driver,
        driver->cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device),
        "cuDeviceGetAttribute");
    if (flavour_choose(10 * major + minor, driver->version, &flavour, &err))
        fail_msg("%s", err.text);
    return flavour->fatbins[file];
}

int real_module_run(struct real_module *module, enum cuda_kernels file, size_t memory_bytes,
                    size_t result_bytes, int (*run)(void))
{
    struct driver *driver = &module->driver;
    struct err err = {0};
    CUcontext context;
    if (driver_load(driver, &err)) {
        printf("skipped: %s\n", err.text);
        return REAL_GPU_SKIPPED;
    }
    if (driver->cuDeviceGet(&module->device, 0) ||
        driver->cuDevicePrimaryCtxRetain(&context, module->device) ||
        driver->cuCtxSetCurrent(context) ||
        driver->cuStreamCreate(&module->stream, CU_STREAM_NON_BLOCKING) ||
        driver->cuModuleLoadData(&module->module, real_gpu_kernels(driver, module->device, file)) ||
        driver->cuMemAlloc(&module->memory, memory_bytes) ||
        driver->cuMemAlloc(&module->result, result_bytes))
        return 1;
    int failed = run();
    driver->cuMemFree(module->memory);
    driver->cuMemFree(module->result);
    driver->cuDevicePrimaryCtxRelease(module->device);
    driver_unload(driver);
    return failed;
}

void real_gpu_ok(const struct driver *driver, CUresult code, const char *what)
{
    struct err err = {0};
    if (driver_check(driver, code, what, &err))
        fail_msg("%s", err.text);
}
