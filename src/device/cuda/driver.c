/* Loads libcuda.so.1 and translates its errors. */
#include "device/cuda/driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/flavour.h"

#define TEXT_OF(name) #name
#define SYMBOL_OF(name) TEXT_OF(name)

static const struct symbol {
    const char *name;
    const char *otherwise; /* NULL: required; "": optional; else the older name */
    size_t offset;
} symbols[] = {
#define DRIVER_SYMBOL(name, otherwise) {SYMBOL_OF(name), otherwise, offsetof(struct driver, name)},
    DRIVER_FUNCTIONS(DRIVER_SYMBOL)
#undef DRIVER_SYMBOL
};

static int driver_find_symbols(struct driver *driver, struct err *err)
{
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        const char *otherwise = symbols[i].otherwise;
        void *address = dlsym(driver->library, symbols[i].name);
        if (!address && otherwise && *otherwise)
            address = dlsym(driver->library, otherwise);
        if (!address && (!otherwise || *otherwise))
            return err_set(err, -ENODEV, "the NVIDIA driver is too old: libcuda.so.1 has no %s",
                           symbols[i].name);
        memcpy((char *)driver + symbols[i].offset, &address, sizeof address);
    }
    return 0;
}

/* The message of cuInit does not say why there is no device. */
static int explain_init(const struct driver *driver, CUresult result, struct err *err)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (result == CUDA_ERROR_NO_DEVICE && visible && !*visible)
        return err_set(err, -ENODEV,
                       "CUDA_VISIBLE_DEVICES is empty; under Slurm ask for --gpus-per-task=1");
    if (result == CUDA_ERROR_NO_DEVICE && visible)
        return err_set(err, -ENODEV,
                       "the CUDA driver shows no GPU (CUDA_VISIBLE_DEVICES is \"%s\")", visible);
    if (result == CUDA_ERROR_NO_DEVICE)
        return err_set(err, -ENODEV, "the CUDA driver finds no GPU on this machine");
    driver_check(driver, result, "cuInit", err);
    if (err)
        err->code = -ENODEV;
    return -ENODEV;
}

enum { OLDEST_FLAVOUR = 11000 };

/* Machine code runs on drivers of its toolkit's major version or a newer one. */
static int check_version(struct driver *driver, struct err *err)
{
    int rc = driver_check(driver, driver->cuDriverGetVersion(&driver->version),
                          "cuDriverGetVersion", err);
    if (rc)
        return rc;
    int oldest = flavour_oldest_driver();
    if (driver->version < oldest)
        return err_set(
            err, -ENODEV,
            "the NVIDIA driver is too old: it supports CUDA %d.%d, this build needs %d.0 "
            "or newer: use a newer driver%s",
            driver->version / 1000, driver->version % 1000 / 10, oldest / 1000,
            oldest > OLDEST_FLAVOUR ? ", or a build that also has kernels by CUDA 11.8 "
                                      "(docs/install.md)"
                                    : "");
    return 0;
}

int driver_load(struct driver *driver, struct err *err)
{
    struct driver loaded = {0};
    /* Never unmapped: the driver's threads run on after the last call. */
    loaded.library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!loaded.library)
        return err_set(err, -ENODEV, "no NVIDIA driver: %s", dlerror());
    int rc = driver_find_symbols(&loaded, err);
    if (rc)
        goto failed;
    CUresult result = loaded.cuInit(0);
    rc = result == CUDA_SUCCESS ? check_version(&loaded, err) : explain_init(&loaded, result, err);
    if (rc)
        goto failed;
    *driver = loaded;
    return 0;
failed:
    driver_unload(&loaded);
    return rc;
}

void driver_unload(struct driver *driver)
{
    if (driver->library)
        dlclose(driver->library);
    *driver = (struct driver){0};
}

static int code_of(CUresult result)
{
    switch (result) {
    case CUDA_ERROR_OUT_OF_MEMORY:
        return -ENOSPC; /* memory of the GPU, not of the host */
    case CUDA_ERROR_INVALID_VALUE:
        return -EINVAL;
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_INVALID_DEVICE:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
        return -ENODEV;
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
        return -EBUSY;
    case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
        return -EINVAL;
    case CUDA_ERROR_NOT_SUPPORTED:
    case CUDA_ERROR_NOT_FOUND: /* a kernel that older architectures do not have */
        return -ENOTSUP;
    default:
        return -EIO;
    }
}

int driver_check(const struct driver *driver, CUresult result, const char *what, struct err *err)
{
    if (result == CUDA_SUCCESS)
        return 0;
    const char *name = NULL, *text = NULL;
    if (driver->cuGetErrorName(result, &name) != CUDA_SUCCESS || !name)
        name = "unknown error";
    if (driver->cuGetErrorString(result, &text) != CUDA_SUCCESS || !text)
        text = "no description";
    return err_set(err, code_of(result), "%s: %s (%d): %s", what, name, (int)result, text);
}
