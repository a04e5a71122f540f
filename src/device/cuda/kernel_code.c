/* Compares the architectures of this build with a GPU and its driver. */
#include "device/cuda/kernel_code.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static const int archs[] = {GPUMEMTOPO_CUDA_ARCHS};

static bool has_machine_code(int capability)
{
    for (size_t i = 0; i < COUNT_OF(archs); i++)
        if (archs[i] / 10 == capability / 10 && archs[i] <= capability)
            return true;
    return false;
}

static int oldest(void)
{
    int least = archs[0];
    for (size_t i = 1; i < COUNT_OF(archs); i++)
        if (archs[i] < least)
            least = archs[i];
    return least;
}

int kernel_code_check(const struct cuda_gpu *gpu, struct err *err)
{
    int major = 0, minor = 0, driver = gpu->driver->version;
    int rc = cuda_capability(gpu, &major, &minor, err);
    if (rc)
        return rc;
    int capability = 10 * major + minor;
    if (capability < oldest())
        return err_set(
            err, -ENOTSUP,
            "the GPU is too old for this build: its compute capability is %d.%d, the "
            "oldest kernels are for %d.%d; use a build for older GPUs (docs/PACKAGES.md)",
            major, minor, oldest() / 10, oldest() % 10);
    if (!has_machine_code(capability) && driver < CUDA_VERSION)
        return err_set(
            err, -ENOTSUP,
            "this build has no machine code for compute capability %d.%d, and to compile "
            "its PTX the driver must support CUDA %d.%d (it supports %d.%d): use a newer "
            "driver",
            major, minor, CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10, driver / 1000,
            driver % 1000 / 10);
    return 0;
}

/* The driver makes code from PTX although there is machine code. */
static bool is_forced(void)
{
    const char *text = getenv("CUDA_FORCE_PTX_JIT");
    return text && *text && strcmp(text, "0") != 0;
}

static bool is_built(int arch)
{
    for (size_t i = 0; i < COUNT_OF(archs); i++)
        if (archs[i] == arch)
            return true;
    return false;
}

/* The machine code of each architecture was made from its own PTX. */
int kernel_code_tell(const struct cuda_gpu *gpu, struct facts *board)
{
    const struct driver *driver = gpu->driver;
    CUfunction kernel = gpu->chase[DEVICE_GLOBAL_CA];
    int binary = 0, ptx = 0;
    struct err why = {0};
    char text[64];
    if (cuda_check(gpu,
                   driver->cuFuncGetAttribute(&binary, CU_FUNC_ATTRIBUTE_BINARY_VERSION, kernel),
                   "cuFuncGetAttribute", &why) ||
        cuda_check(gpu, driver->cuFuncGetAttribute(&ptx, CU_FUNC_ATTRIBUTE_PTX_VERSION, kernel),
                   "cuFuncGetAttribute", &why))
        return facts_set_unknown(board, "kernels", why.text);
    if (binary != ptx || !is_built(binary) || is_forced())
        snprintf(text, sizeof text, "JIT of compute_%d", ptx);
    else
        snprintf(text, sizeof text, "sm_%d", binary);
    return facts_set_text(board, "kernels", text);
}
