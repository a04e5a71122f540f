/* Straight code: the program is compiled once for a GPU; each SM finds its job by its id. */
#include "device/straight.h"

#include <errno.h>
#include <string.h>

#include "device/cuda/code_program.h"
#include "device/cuda/gpu.h"
#include "device/cuda/straight_text.h"

/* Since Volta every instruction has 16 bytes. */
enum { WARP_LANES = 32, INSTRUCTION_BYTES = 16, VOLTA_CAPABILITY = 70, RESERVED_BYTES = 1024 };
enum { OPERAND_BITS = 32 }; /* of fma.rn.f32 */

/* The compiler must have left the program as it is: few machine instructions beside it. */
enum { OTHERS_MAX = 1000 };

/* An SM whose first block ends early may get a second one, and another SM none; then the blocks of
 * two jobs do not meet. */
enum { TRIES = 10 };

static int prepare(struct cuda_gpu *gpu, struct err *err)
{
    const uint64_t written = DEVICE_STRAIGHT_MAX + DEVICE_STRAIGHT_SECOND_MAX;
    struct code_program program = {0};
    struct strbuf text = {0};
    int major = 0, minor = 0;
    if (gpu->straight_module)
        return 0;
    int rc = cuda_capability(gpu, &major, &minor, err);
    if (rc)
        return rc;
    uint32_t capability = (uint32_t)(10 * major + minor);
    if (capability < VOLTA_CAPABILITY)
        return err_set(err, -ENOTSUP, "the machine code of GPUs before Volta cannot be checked");
    straight_text_write(capability, &text);
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
static int upload_places(struct cuda_gpu *gpu, const struct device_straight *straight,
                         struct err *err)
{
    size_t size = places_bytes(gpu) + sizeof(struct straight_meeting);
    int rc = staging_grow(gpu, &gpu->claims, size, err);
    if (rc)
        return rc;
    struct straight_place *places = gpu->claims.host;
    memset(places, 0, size);
    for (uint32_t i = 0; i < straight->job_count; i++) {
        const struct device_straight_job *job = &straight->jobs[i];
        places[gpu->sm_ids[job->sm]] = (struct straight_place){
            .entry = straight_text_entry(job->copy, job->length), .repeats = job->repeats};
    }
    *(struct straight_meeting *)(places + gpu->sm_id_count) =
        (struct straight_meeting){.expected = straight->job_count};
    return staging_upload(gpu, &gpu->claims, size, err);
}

static int take_results(struct cuda_gpu *gpu, const struct device_straight *straight,
                        struct device_straight_answer *answer, struct err *err)
{
    const struct straight_result *results = gpu->results.host;
    uint32_t blocks = gpu->base.limits.sm_count;
    answer->instruction_bytes = INSTRUCTION_BYTES;
    for (uint32_t i = 0; i < straight->job_count; i++) {
        uint32_t block = 0, id = gpu->sm_ids[straight->jobs[i].sm];
        while (block < blocks && (results[block].sm_id != id || !results[block].repeats))
            block++;
        if (block == blocks)
            return err_set(err, -EBUSY, "SM %u took no block", straight->jobs[i].sm);
        answer->cycles[i] = results[block].cycles;
    }
    return 0;
}

/* A block takes most of its SM's shared memory, so that every SM has one. */
static int launch(struct cuda_gpu *gpu, struct err *err)
{
    uint32_t blocks = gpu->base.limits.sm_count;
    uint32_t shared = (uint32_t)gpu->base.limits.shared_bytes_max - RESERVED_BYTES;
    size_t size = blocks * sizeof(struct straight_result);
    int rc = staging_grow(gpu, &gpu->results, size, err);
    if (!rc)
        rc = code_program_upload_data(gpu, OPERAND_BITS, err);
    if (!rc)
        rc = cuda_check(
            gpu,
            gpu->driver->cuFuncSetAttribute(
                gpu->straight, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)shared),
            "cuFuncSetAttribute", err);
    if (rc)
        return rc;
    CUdeviceptr meeting = gpu->claims.device + places_bytes(gpu);
    void *parameters[] = {&gpu->results.device, &gpu->claims.device, &meeting, &gpu->jobs.device};
    rc = cuda_launch(gpu, gpu->straight, blocks, WARP_LANES, shared, parameters, err);
    if (!rc)
        rc = staging_download(gpu, &gpu->results, size, err);
    return rc ? rc : cuda_wait(gpu, err);
}

int cuda_run_straight(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_straight *straight = request;
    struct device_straight_answer *out_answer = answer;
    struct cuda_gpu *gpu = cuda_of(device);
    int rc = cuda_check(gpu, gpu->driver->cuCtxSetCurrent(gpu->context), "cuCtxSetCurrent", err);
    if (!rc)
        rc = prepare(gpu, err);
    if (rc)
        return rc;
    for (int i = 0; i < TRIES; i++) {
        rc = upload_places(gpu, straight, err);
        if (!rc)
            rc = launch(gpu, err);
        if (!rc)
            rc = take_results(gpu, straight, out_answer, err);
        if (rc != -EBUSY)
            return rc;
    }
    return rc;
}
