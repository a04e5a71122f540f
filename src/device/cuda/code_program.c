/* Compiles through the driver's linker, which hands out the machine code. */
#include "device/cuda/code_program.h"

#include <errno.h>

#include "device/cuda/code_text.h"

enum { WARP_LANES = 32, VOLTA_CAPABILITY = 70, LEVEL_FAST = 1, LEVEL_USUAL = 4 };

/* A program that the driver does not compile is the program's or the driver's fault, not the GPU's.
 */
static int check_compiler(const struct cuda_gpu *gpu, CUresult result, const char *what,
                          struct err *err)
{
    switch (result) {
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    case CUDA_ERROR_JIT_COMPILER_NOT_FOUND:
    case CUDA_ERROR_JIT_COMPILATION_DISABLED:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
        return err_set(err, -ENOTSUP, "%s: the driver does not compile it (error %d)", what,
                       (int)result);
    default:
        return cuda_check(gpu, result, what, err);
    }
}

int code_program_compile(struct cuda_gpu *gpu, const struct strbuf *text, const char *kernel,
                         uint32_t capability, bool fast, struct code_program *out_program,
                         struct err *err)
{
    const struct driver *driver = gpu->driver;
    CUjit_option option = CU_JIT_OPTIMIZATION_LEVEL;
    void *level = (void *)(uintptr_t)(fast ? LEVEL_FAST : LEVEL_USUAL), *cubin = NULL;
    CUlinkState link;
    size_t size = 0;
    if (text->failed)
        return err_no_memory(err);
    int rc =
        check_compiler(gpu, driver->cuLinkCreate(1, &option, &level, &link), "cuLinkCreate", err);
    if (rc)
        return rc;
    rc = check_compiler(gpu,
                        driver->cuLinkAddData(link, CU_JIT_INPUT_PTX, text->data, text->length + 1,
                                              kernel, 0, NULL, NULL),
                        "cuLinkAddData", err);
    if (!rc)
        rc =
            check_compiler(gpu, driver->cuLinkComplete(link, &cubin, &size), "cuLinkComplete", err);
    if (!rc)
        rc = cuda_check(gpu, driver->cuModuleLoadData(&out_program->module, cubin),
                        "loading compiled code", err);
    if (!rc && capability >= VOLTA_CAPABILITY)
        out_program->machine = machine_code_of(cubin, size, kernel);
    driver->cuLinkDestroy(link);
    if (rc)
        return rc;
    return cuda_check(
        gpu, driver->cuModuleGetFunction(&out_program->kernel, out_program->module, kernel), kernel,
        err);
}

/* Numbers near 1 in every format: halves if there are 16 bits, floats, doubles. */
int code_program_upload_data(struct cuda_gpu *gpu, uint32_t bits, struct err *err)
{
    size_t count = WARP_LANES * CODE_LANE_WORDS;
    int rc = staging_grow(gpu, &gpu->jobs, count * sizeof(uint64_t), err);
    if (rc)
        return rc;
    uint64_t *words = gpu->jobs.host;
    for (size_t i = 0; i < count; i++) {
        bool zero = i % CODE_LANE_WORDS == CODE_LANE_WORDS - 1;
        uint64_t one = bits == 64   ? UINT64_C(0x3ff0000000000001)
                       : bits == 16 ? UINT64_C(0x3c00)
                                    : UINT64_C(0x3f803f81);
        words[i] = zero ? 0 : one + i;
    }
    return staging_upload(gpu, &gpu->jobs, count * sizeof(uint64_t), err);
}
