/* Code on all SMs: the driver compiles the program, and every warp reads its SM's clock. */
#include "device/cuda/gpu.h"

#include <errno.h>

#include "device/cuda/code_program.h"
#include "device/cuda/code_text.h"

enum { WARP_LANES = 32, STATIC_BYTES_MAX = 32768 + 1024 };

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
        rc = code_program_upload_data(gpu, instruction->bits, err);
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

int cuda_run_code(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_code *code = request;
    struct device_code_answer *out_answer = answer;
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
    code_text_write(code, instruction, capability, gpu->base.limits.sm_count, &text);
    rc = code_program_compile(gpu, &text, "code", capability, false, &program, err);
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
