/* Code on all SMs: the driver compiles the program, and every warp reads its SM's clock. */
#include "device/cuda/gpu.h"

#include <errno.h>

#include "device/cuda/code_text.h"
#include "device/cuda/machine_code.h"

enum { WARP_LANES = 32, VOLTA_CAPABILITY = 70, STATIC_BYTES_MAX = 32768 + 1024 };

/* A program that the driver has compiled. */
struct code_program {
    CUmodule module;
    CUfunction kernel;
    struct machine_code machine;
};

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

static int compile(struct cuda_gpu *gpu, const char *text, size_t length, uint32_t capability,
                   struct code_program *out_program, struct err *err)
{
    const struct driver *driver = gpu->driver;
    CUlinkState link;
    void *cubin = NULL;
    size_t size = 0;
    int rc = check_compiler(gpu, driver->cuLinkCreate(0, NULL, NULL, &link), "cuLinkCreate", err);
    if (rc)
        return rc;
    rc = check_compiler(gpu,
                        driver->cuLinkAddData(link, CU_JIT_INPUT_PTX, (void *)text, length + 1,
                                              "code", 0, NULL, NULL),
                        "cuLinkAddData", err);
    if (!rc)
        rc =
            check_compiler(gpu, driver->cuLinkComplete(link, &cubin, &size), "cuLinkComplete", err);
    if (!rc)
        rc = cuda_check(gpu, driver->cuModuleLoadData(&out_program->module, cubin),
                        "loading compiled code", err);
    if (!rc && capability >= VOLTA_CAPABILITY)
        out_program->machine = machine_code_of(cubin, size, "code");
    driver->cuLinkDestroy(link);
    if (rc)
        return rc;
    return cuda_check(
        gpu, driver->cuModuleGetFunction(&out_program->kernel, out_program->module, "code"), "code",
        err);
}

/* Numbers near 1 in every format: halves if there are 16 bits, floats, doubles. */
static int upload_data(struct cuda_gpu *gpu, uint32_t bits, struct err *err)
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

/* From the first warp's start to the last one's end. */
struct span {
    uint64_t begin, end;
};

static struct span span_of(const struct code_result *result, uint32_t warps)
{
    struct span span = {.begin = result->begin[0], .end = result->end[0]};
    for (uint32_t w = 1; w < warps; w++) {
        span.begin = result->begin[w] < span.begin ? result->begin[w] : span.begin;
        span.end = result->end[w] > span.end ? result->end[w] : span.end;
    }
    return span;
}

/* Blocks that share an SM one after the other do no harm, but at the same time they would share its
 * units. */
static bool overlap(const struct code_result *a, const struct code_result *b, uint32_t warps)
{
    struct span x = span_of(a, warps), y = span_of(b, warps);
    return a->sm_id == b->sm_id && x.begin < y.end && y.begin < x.end;
}

/* On the average of all blocks: atomic operations take longer on SMs that are far from their word.
 */
static int mean_cycles(const struct code_result *results, uint32_t blocks, uint32_t warps,
                       uint64_t *out_cycles, struct err *err)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < blocks; i++) {
        struct span span = span_of(&results[i], warps);
        for (uint32_t k = 0; k < i; k++)
            if (overlap(&results[i], &results[k], warps))
                return err_set(err, -EBUSY, "two blocks of the code ran on one SM at once");
        sum += span.end - span.begin;
    }
    *out_cycles = (sum + blocks / 2) / blocks;
    return 0;
}

/* A block takes most of its SM's shared memory, so that an SM holds only one. */
static int launch(struct cuda_gpu *gpu, const struct device_code *code,
                  const struct code_program *program, uint64_t *out_cycles, struct err *err)
{
    const struct instruction *instruction = &instruction_table[code->instruction];
    uint32_t blocks = gpu->base.limits.sm_count, asked = code->repeats;
    uint32_t shared = (uint32_t)gpu->base.limits.shared_bytes_max - STATIC_BYTES_MAX;
    size_t size = blocks * sizeof(struct code_result);
    int rc = staging_grow(gpu, &gpu->results, size, err);
    if (!rc)
        rc = staging_grow(gpu, &gpu->outputs, code_text_words(code, instruction, blocks), err);
    if (!rc)
        rc = upload_data(gpu, instruction->bits, err);
    if (!rc)
        rc = cuda_check(
            gpu,
            gpu->driver->cuFuncSetAttribute(
                program->kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)shared),
            "cuFuncSetAttribute", err);
    if (rc)
        return rc;
    void *parameters[] = {&gpu->results.device, &gpu->jobs.device, &gpu->outputs.device, &asked};
    rc = cuda_launch(gpu, program->kernel, blocks, code->warps * WARP_LANES, shared, parameters,
                     err);
    if (!rc)
        rc = staging_download(gpu, &gpu->results, size, err);
    if (!rc)
        rc = cuda_wait(gpu, err);
    return rc ? rc : mean_cycles(gpu->results.host, blocks, code->warps, out_cycles, err);
}

int cuda_run_code(struct device *device, const struct device_code *code,
                  struct device_code_answer *out_answer, struct err *err)
{
    struct cuda_gpu *gpu = cuda_of(device);
    const struct instruction *instruction = &instruction_table[code->instruction];
    struct code_program program = {0};
    struct strbuf text = {0};
    int major = 0, minor = 0;
    int rc = cuda_check(gpu, gpu->driver->cuCtxSetCurrent(gpu->context), "cuCtxSetCurrent", err);
    if (!rc)
        rc = cuda_capability(gpu, &major, &minor, err);
    if (rc)
        return rc;
    uint32_t capability = (uint32_t)(10 * major + minor);
    if (capability < instruction->capability)
        return err_set(err, -ENOTSUP, "%s: not on GPUs of compute capability %d.%d",
                       instruction->name, major, minor);
    code_text_write(code, instruction, capability, &text);
    rc = text.failed ? err_no_memory(err)
                     : compile(gpu, text.data, text.length, capability, &program, err);
    strbuf_fini(&text);
    /* The first launch brings the code into the caches of instructions. */
    if (!rc)
        rc = launch(gpu, code, &program, &out_answer->cycles, err);
    if (!rc)
        rc = launch(gpu, code, &program, &out_answer->cycles, err);
    if (program.module)
        gpu->driver->cuModuleUnload(program.module);
    out_answer->machine = program.machine.count;
    out_answer->most = program.machine.most;
    return rc;
}
