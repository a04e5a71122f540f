/* Programs that the driver compiles at run time: code on all SMs, where every warp reads its SM's
 * clock, and straight code, which is compiled once for a GPU and where each SM finds its job by its
 * id. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "device/cuda/code_text.h"
#include "device/cuda/gpu.h"
#include "device/cuda/kernels.h"
#include "device/cuda/machine_code.h"
#include "device/straight.h"

struct code_program {
    CUmodule module; /* the caller unloads it */
    CUfunction kernel;
    struct machine_code machine; /* of the kernel; count 0: not known */
};

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

/* Compiles a text for GPUs of a compute capability such as 90, and finds its kernel. `fast` is for
 * long programs: less is optimised. -ENOTSUP if the driver does not compile it. */
static int code_program_compile(struct cuda_gpu *gpu, const struct strbuf *text, const char *kernel,
                                uint32_t capability, bool fast, struct code_program *out_program,
                                struct err *err)
{
    const struct driver *driver = gpu->driver;
    CUjit_option option = CU_JIT_OPTIMIZATION_LEVEL;
    void *level = (void *)(uintptr_t)(fast ? LEVEL_FAST : LEVEL_USUAL), *cubin = NULL;
    CUlinkState link;
    size_t size = 0;
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
static int code_program_upload_data(struct cuda_gpu *gpu, uint32_t bits, struct err *err)
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

enum { STATIC_BYTES_MAX = 32768 + 1024 };

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
static bool spans_overlap(const struct code_result *a, const struct code_result *b, uint32_t warps)
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
            if (spans_overlap(&results[i], &results[k], warps))
                return err_set(err, -EBUSY, "two blocks of the code ran on one SM at once");
        sum += span.end - span.begin;
    }
    *out_cycles = (sum + blocks / 2) / blocks;
    return 0;
}

/* A block takes most of its SM's shared memory, so that an SM holds only one. */
static int launch_code(struct cuda_gpu *gpu, const struct device_code *code,
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
    int rc = cuda_set_current(gpu, err);
    if (!rc)
        rc = cuda_capability(gpu, &major, &minor, err);
    if (rc)
        return rc;
    uint32_t capability = (uint32_t)(10 * major + minor);
    if (capability < instruction->capability)
        return err_set(err, -ENOTSUP, "%s: not on GPUs of compute capability %d.%d",
                       instruction->name, major, minor);
    const struct code_target target = {capability, gpu->driver->version};
    code_text_write(code, instruction, &target, gpu->base.limits.sm_count, &text);
    rc = code_program_compile(gpu, &text, "code", capability, false, &program, err);
    strbuf_fini(&text);
    /* The first launch brings the code into the caches of instructions. */
    if (!rc)
        rc = launch_code(gpu, code, &program, &out_answer->cycles, err);
    if (!rc)
        rc = launch_code(gpu, code, &program, &out_answer->cycles, err);
    if (program.module)
        gpu->driver->cuModuleUnload(program.module);
    out_answer->machine = program.machine.count;
    out_answer->most = program.machine.most;
    return rc;
}

enum { RESERVED_BYTES = 1024 };
enum { OPERAND_BITS = 32 }; /* of fma.rn.f32 */

/* The compiler must have left the program as it is: few machine instructions beside it. */
enum { OTHERS_MAX = 1000 };

/* An SM whose first block ends early may get a second one, and another SM none; then the blocks of
 * two jobs do not meet. */
enum { TRIES = 10 };

/* The compute capability, such as 90. -ENOTSUP if the machine code of such GPUs cannot be checked.
 */
static int checkable_capability(struct cuda_gpu *gpu, uint32_t *out_capability, struct err *err)
{
    int major = 0, minor = 0, rc = cuda_capability(gpu, &major, &minor, err);
    if (rc)
        return rc;
    *out_capability = (uint32_t)(10 * major + minor);
    if (*out_capability < VOLTA_CAPABILITY)
        return err_set(err, -ENOTSUP, "the machine code of GPUs before Volta cannot be checked");
    return 0;
}

static int prepare_straight(struct cuda_gpu *gpu, struct err *err)
{
    const uint64_t written = DEVICE_STRAIGHT_MAX + DEVICE_STRAIGHT_SECOND_MAX;
    struct code_program program = {0};
    struct strbuf text = {0};
    uint32_t capability;
    if (gpu->straight_module)
        return 0;
    int rc = checkable_capability(gpu, &capability, err);
    if (rc)
        return rc;
    const struct code_target target = {capability, gpu->driver->version};
    code_text_write_straight(&target, &text);
    rc = code_program_compile(gpu, &text, "straight", capability, true, &program, err);
    strbuf_fini(&text);
    if (!rc && (program.machine.count < written || program.machine.count > written + OTHERS_MAX))
        rc = err_set(err, -ENOTSUP, "%llu instructions became %llu machine instructions",
                     (unsigned long long)written, (unsigned long long)program.machine.count);
    if (rc && program.module)
        gpu->driver->cuModuleUnload(program.module);
    if (rc)
        return rc;
    gpu->straight_module = program.module;
    gpu->straight = program.kernel;
    return 0;
}

static size_t places_bytes(const struct cuda_gpu *gpu)
{
    return gpu->sm_id_count * sizeof(struct straight_place);
}

/* The meeting is behind the places. */
static int upload_straight_places(struct cuda_gpu *gpu, const uint32_t *sms,
                                  const struct straight_place *jobs, uint32_t count,
                                  struct err *err)
{
    size_t size = places_bytes(gpu) + sizeof(struct straight_meeting);
    int rc = staging_grow(gpu, &gpu->claims, size, err);
    if (rc)
        return rc;
    struct straight_place *places = gpu->claims.host;
    memset(places, 0, size);
    for (uint32_t i = 0; i < count; i++)
        places[gpu->sm_ids[sms[i]]] = jobs[i];
    *(struct straight_meeting *)(places + gpu->sm_id_count) =
        (struct straight_meeting){.expected = count};
    return staging_upload(gpu, &gpu->claims, size, err);
}

/* What the block on an SM has written. */
static int straight_result_of(const struct cuda_gpu *gpu, uint32_t sm,
                              struct straight_result *out_result, struct err *err)
{
    const struct straight_result *results = gpu->results.host;
    for (uint32_t block = 0; block < gpu->base.limits.sm_count; block++)
        if (results[block].sm_id == gpu->sm_ids[sm] && results[block].repeats) {
            *out_result = results[block];
            return 0;
        }
    return err_set(err, -EBUSY, "SM %u took no block", sm);
}

/* A block takes most of its SM's shared memory, so that every SM has one. */
static int launch_straight(struct cuda_gpu *gpu, CUfunction kernel, uint32_t loads, struct err *err)
{
    uint32_t blocks = gpu->base.limits.sm_count;
    uint32_t shared = (uint32_t)gpu->base.limits.shared_bytes_max - RESERVED_BYTES;
    size_t size = blocks * sizeof(struct straight_result);
    int rc = staging_grow(gpu, &gpu->results, size, err);
    if (!rc)
        rc = code_program_upload_data(gpu, OPERAND_BITS, err);
    if (!rc)
        rc = cuda_check(gpu,
                        gpu->driver->cuFuncSetAttribute(
                            kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)shared),
                        "cuFuncSetAttribute", err);
    if (rc)
        return rc;
    CUdeviceptr meeting = gpu->claims.device + places_bytes(gpu);
    void *parameters[] = {&gpu->results.device, &gpu->claims.device, &meeting, &gpu->jobs.device,
                          &loads};
    rc = cuda_launch(gpu, kernel, blocks, WARP_LANES, shared, parameters, err);
    if (!rc)
        rc = staging_download(gpu, &gpu->results, size, err);
    return rc ? rc : cuda_wait(gpu, err);
}

int cuda_run_straight(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_straight *straight = request;
    struct device_straight_answer *out_answer = answer;
    struct cuda_gpu *gpu = cuda_of(device);
    struct straight_place places[DEVICE_STRAIGHT_JOBS];
    uint32_t sms[DEVICE_STRAIGHT_JOBS];
    int rc = cuda_set_current(gpu, err);
    if (!rc)
        rc = prepare_straight(gpu, err);
    if (rc)
        return rc;
    for (uint32_t i = 0; i < straight->job_count; i++) {
        const struct device_straight_job *job = &straight->jobs[i];
        sms[i] = job->sm;
        places[i] = (struct straight_place){
            .entry = code_text_straight_entry(job->copy, job->length), .repeats = job->repeats};
    }
    for (int i = 0; i < TRIES; i++) {
        rc = upload_straight_places(gpu, sms, places, straight->job_count, err);
        if (!rc)
            rc = launch_straight(gpu, gpu->straight, 0, err);
        for (uint32_t k = 0; k < straight->job_count && !rc; k++) {
            struct straight_result result = {0};
            rc = straight_result_of(gpu, straight->jobs[k].sm, &result, err);
            if (!rc)
                out_answer->cycles[k] = result.cycles;
        }
        if (rc != -EBUSY)
            break;
    }
    out_answer->instruction_bytes = INSTRUCTION_BYTES;
    return rc;
}

/* Of so few blocks, the first text is compiled: it shows where the blocks begin. */
enum { TRIAL_BLOCKS = 2 * DEVICE_WALK_STRIDE_MAX };

/* Of the distances between neighbouring blocks, so many may be longer: the compiler fills gaps. */
static const double ODD_BLOCKS_SHARE = 0.02;

static int compile_walk(struct cuda_gpu *gpu, uint32_t capability, const struct walk_text *walk,
                        struct code_program *out_program, struct err *err)
{
    const struct code_target target = {capability, gpu->driver->version};
    struct strbuf text = {0};
    *out_program = (struct code_program){0};
    code_text_write_walk(&target, walk, &text);
    int rc = code_program_compile(gpu, &text, "walk", capability, true, out_program, err);
    strbuf_fini(&text);
    double pairs = walk->blocks - walk->stride - 1;
    if (!rc && (double)out_program->machine.blocks < (1 - ODD_BLOCKS_SHARE) * pairs)
        rc = err_set(err, -ENOTSUP, "the compiler has moved the blocks of jumping code");
    if (rc && out_program->module)
        gpu->driver->cuModuleUnload(out_program->module);
    return rc;
}

/* Blocks begin where lines of the caches begin. */
static int prepare_walk(struct cuda_gpu *gpu, uint32_t stride, struct err *err)
{
    struct code_program program;
    struct walk_text walk = {.stride = stride, .blocks = TRIAL_BLOCKS};
    uint32_t capability;
    size_t size = 0;
    if (gpu->walk_module && gpu->walk_stride == stride)
        return 0;
    int rc = checkable_capability(gpu, &capability, err);
    if (rc)
        return rc;
    rc = compile_walk(gpu, capability, &walk, &program, err);
    if (rc)
        return rc;
    gpu->driver->cuModuleUnload(program.module);
    walk.padding = (uint32_t)(-program.machine.block_at % CODE_BLOCK_BYTES / INSTRUCTION_BYTES);
    walk.blocks = DEVICE_WALK_BLOCKS_MAX;
    rc = compile_walk(gpu, capability, &walk, &program, err);
    if (rc)
        return rc;
    if (gpu->walk_module)
        gpu->driver->cuModuleUnload(gpu->walk_module);
    gpu->walk_module = program.module;
    gpu->walk = program.kernel;
    gpu->walk_stride = stride;
    return cuda_check(
        gpu, gpu->driver->cuModuleGetGlobal(&gpu->walk_constants, &size, gpu->walk_module, "chain"),
        "constants of jumping code", err);
}

/* A ring: each word has the offset of the next one. */
static int upload_walk_constants(struct cuda_gpu *gpu, const struct device_walk *walk,
                                 uint32_t loads, struct err *err)
{
    if (!loads)
        return 0;
    int rc = staging_grow(gpu, &gpu->constants, KERNEL_CONSTANT_BYTES, err);
    if (rc)
        return rc;
    uint32_t *words = gpu->constants.host;
    memset(words, 0, KERNEL_CONSTANT_BYTES);
    for (uint32_t i = 0; i < loads; i++)
        words[i * walk->constant_stride / sizeof *words] = (i + 1) % loads * walk->constant_stride;
    return cuda_check(gpu,
                      gpu->driver->cuMemcpyHtoDAsync(gpu->walk_constants, words,
                                                     KERNEL_CONSTANT_BYTES, gpu->streams[0]),
                      "uploading constants", err);
}

int cuda_run_walk(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_walk *walk = request;
    struct device_walk_answer *out_answer = answer;
    struct cuda_gpu *gpu = cuda_of(device);
    const struct straight_place place = {walk->blocks, walk->repeats};
    uint32_t loads = walk->constant_bytes ? walk->constant_bytes / walk->constant_stride : 0;
    int rc = cuda_set_current(gpu, err);
    if (!rc)
        rc = prepare_walk(gpu, walk->stride, err);
    if (!rc)
        rc = upload_walk_constants(gpu, walk, loads, err);
    if (rc)
        return rc;
    for (int i = 0; i < TRIES; i++) {
        struct straight_result result = {0};
        rc = upload_straight_places(gpu, &walk->sm, &place, 1, err);
        if (!rc)
            rc = launch_straight(gpu, gpu->walk, loads, err);
        if (!rc)
            rc = straight_result_of(gpu, walk->sm, &result, err);
        out_answer->code_cycles = result.cycles;
        out_answer->constant_cycles = result.constant_cycles;
        if (rc != -EBUSY)
            break;
    }
    out_answer->block_bytes = CODE_BLOCK_BYTES;
    return rc;
}
