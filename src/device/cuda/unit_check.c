/* The check of the SMs: one block per SM, and every warp's hash compared with the host's. */
#include "device/cuda/gpu.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "device/check_program.h"
#include "device/cuda/kernels.h"

extern const unsigned char cuda_check_fatbin[];

enum {
    FIRST_PERIODS = 16,
    LAUNCH_MS = 10,          /* about: so a check ends soon after it was told to */
    STATIC_BYTES_MAX = 8192, /* of shared memory that the kernels declare */
    MMA_F16_CAPABILITY = 80,
    MMA_FP8_CAPABILITY = 89,
    WGMMA_CAPABILITY = 90, /* and no other */
};

struct unit_check {
    struct cuda_gpu *gpu;
    const struct device_check *asked;
    struct device_check_answer *answer;
    CUfunction kernel;
    struct check_run run;
    uint32_t shared_bytes;
    uint64_t expected;
    uint64_t *cycles; /* of each block; scratch */
};

static uint32_t warps_of(enum device_unit unit)
{
    if (unit >= DEVICE_UNIT_MMA_F16 && unit <= DEVICE_UNIT_MMA_FP8)
        return 16;
    if ((unit >= DEVICE_UNIT_WGMMA_F16 && unit <= DEVICE_UNIT_WGMMA_FP8) ||
        unit == DEVICE_UNIT_REGISTERS)
        return 8;
    return KERNEL_CHECK_WARPS;
}

static int check_capability(const struct cuda_gpu *gpu, enum device_unit unit, struct err *err)
{
    int major = 0, minor = 0;
    int rc = cuda_capability(gpu, &major, &minor, err);
    if (rc)
        return rc;
    int capability = 10 * major + minor;
    bool wgmma = unit >= DEVICE_UNIT_WGMMA_F16 && unit <= DEVICE_UNIT_WGMMA_FP8;
    int least = unit == DEVICE_UNIT_MMA_FP8                                   ? MMA_FP8_CAPABILITY
                : unit == DEVICE_UNIT_MMA_F16 || unit == DEVICE_UNIT_MMA_BF16 ? MMA_F16_CAPABILITY
                                                                              : 0;
    if (capability < least || (wgmma && capability != WGMMA_CAPABILITY))
        return err_set(err, -ENOTSUP, "%s: not on GPUs of compute capability %d.%d",
                       device_unit_name(unit), major, minor);
    return 0;
}

static int find_kernel(struct unit_check *check, struct err *err)
{
    struct cuda_gpu *gpu = check->gpu;
    const struct driver *driver = gpu->driver;
    enum device_unit unit = check->asked->unit;
    char name[32];
    int rc = check_capability(gpu, unit, err);
    if (rc)
        return rc;
    if (!gpu->check_module)
        rc = cuda_check(gpu, driver->cuModuleLoadData(&gpu->check_module, cuda_check_fatbin),
                        "loading the check kernels", err);
    if (rc)
        return rc;
    snprintf(name, sizeof name, "check_%s", device_unit_name(unit));
    rc = cuda_check(gpu, driver->cuModuleGetFunction(&check->kernel, gpu->check_module, name), name,
                    err);
    if (rc)
        return rc;
    return cuda_check(gpu,
                      driver->cuFuncSetAttribute(check->kernel,
                                                 CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                 (int)check->shared_bytes),
                      "cuFuncSetAttribute", err);
}

/* A block takes most of its SM's shared memory, so that an SM holds only one. */
static int prepare(struct unit_check *check, struct err *err)
{
    struct cuda_gpu *gpu = check->gpu;
    uint32_t sms = gpu->base.limits.sm_count;
    check->run = (struct check_run){.unit = check->asked->unit,
                                    .seed = check->asked->seed,
                                    .warps = warps_of(check->asked->unit)};
    check->shared_bytes = (uint32_t)gpu->base.limits.shared_bytes_max - STATIC_BYTES_MAX;
    check->run.section_words =
        check->shared_bytes / (4 * CHECK_LANES * KERNEL_CHECK_WARPS) * CHECK_LANES;
    int rc = find_kernel(check, err);
    if (rc)
        return rc;
    check->answer->place_count = (size_t)sms * DEVICE_SUB_CORES;
    check->answer->places = mem_array(check->answer->place_count, sizeof *check->answer->places);
    check->cycles = mem_array(sms, sizeof *check->cycles);
    if (!check->answer->places || !check->cycles)
        return err_no_memory(err);
    rc = staging_grow(gpu, &gpu->results, sms * sizeof(struct kernel_check_result), err);
    if (rc)
        return rc;
    return staging_grow(gpu, &gpu->outputs, sms * CHECK_ATOMIC_WORDS * sizeof(uint32_t), err);
}

static int launch(struct unit_check *check, uint64_t *out_ns, struct err *err)
{
    struct cuda_gpu *gpu = check->gpu;
    const struct driver *driver = gpu->driver;
    struct kernel_check parameters = {.results = gpu->results.device,
                                      .words = gpu->outputs.device,
                                      .seed = check->run.seed,
                                      .periods = check->run.periods,
                                      .section_words = check->run.section_words,
                                      .warp_mask = UINT32_MAX};
    void *pointers[] = {&parameters};
    uint32_t sms = gpu->base.limits.sm_count;
    float ms = 0;
    int rc = cuda_check(gpu, driver->cuEventRecord(gpu->events[0], gpu->streams[0]),
                        "cuEventRecord", err);
    if (rc)
        return rc;
    rc = cuda_launch(gpu, check->kernel, sms, check->run.warps * CHECK_LANES, check->shared_bytes,
                     pointers, err);
    if (rc)
        return rc;
    rc = cuda_check(gpu, driver->cuEventRecord(gpu->events[1], gpu->streams[0]), "cuEventRecord",
                    err);
    if (rc)
        return rc;
    rc = staging_download(gpu, &gpu->results, sms * sizeof(struct kernel_check_result), err);
    if (rc)
        return rc;
    rc = cuda_wait(gpu, err);
    if (rc)
        return rc;
    rc = cuda_check(gpu, driver->cuEventElapsedTime(&ms, gpu->events[0], gpu->events[1]),
                    "cuEventElapsedTime", err);
    *out_ns = (uint64_t)((double)ms * 1e6 + 0.5);
    return rc;
}

static int sm_of(const struct cuda_gpu *gpu, uint32_t sm_id, uint32_t *out_sm, struct err *err)
{
    for (uint32_t i = 0; i < gpu->base.limits.sm_count; i++)
        if (gpu->sm_ids[i] == sm_id) {
            *out_sm = i;
            return 0;
        }
    return err_set(err, -EIO, "a block ran on the unknown SM %u", sm_id);
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Compares all hashes; the time of a block is that of its slowest warp. */
static int compare(struct unit_check *check, uint64_t *out_cycles, struct err *err)
{
    struct cuda_gpu *gpu = check->gpu;
    const struct kernel_check_result *results = gpu->results.host;
    uint32_t sms = gpu->base.limits.sm_count;
    for (uint32_t i = 0; i < sms; i++) {
        uint32_t sm = 0;
        int rc = sm_of(gpu, results[i].sm_id, &sm, err);
        if (rc)
            return rc;
        check->cycles[i] = 0;
        for (uint32_t w = 0; w < check->run.warps; w++) {
            struct device_check_place *place =
                &check->answer->places[sm * DEVICE_SUB_CORES + w % DEVICE_SUB_CORES];
            place->count++;
            if (results[i].hashes[w] != check->expected) {
                place->wrong++;
                place->wrong_hash = results[i].hashes[w];
            }
            if (results[i].cycles[w] > check->cycles[i])
                check->cycles[i] = results[i].cycles[w];
        }
    }
    qsort(check->cycles, sms, sizeof *check->cycles, by_value);
    *out_cycles = check->cycles[sms / 2];
    return 0;
}

static int run_periods(struct unit_check *check, uint32_t periods, uint64_t *out_ns,
                       uint64_t *out_cycles, struct err *err)
{
    if (periods != check->run.periods) {
        check->run.periods = periods;
        check->expected = check_hash(&check->run, 0);
    }
    int rc = launch(check, out_ns, err);
    return rc ? rc : compare(check, out_cycles, err);
}

/* A short launch tells how long a period takes. Its hashes count, its time does not. */
static int run_all(struct unit_check *check, struct err *err)
{
    uint64_t target_ns = (uint64_t)check->asked->target_ms * 1000000, ns = 0, cycles = 0;
    struct device_check_answer *answer = check->answer;
    int rc = run_periods(check, FIRST_PERIODS, &ns, &cycles, err);
    if (rc)
        return rc;
    uint64_t launch_ns = target_ns < LAUNCH_MS * 1000000 ? target_ns : LAUNCH_MS * 1000000;
    uint64_t periods = launch_ns * FIRST_PERIODS / (ns ? ns : 1);
    periods = periods < 1 ? 1 : periods > UINT16_MAX ? UINT16_MAX : periods;
    do {
        rc = run_periods(check, (uint32_t)periods, &ns, &cycles, err);
        if (rc)
            return rc;
        answer->elapsed_ns += ns;
        answer->cycles += cycles;
        answer->operations += check_operations(&check->run) * periods * check->run.warps;
    } while (ns && answer->elapsed_ns + ns / 2 < target_ns);
    return 0;
}

int cuda_check_unit(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_check *asked = request;
    struct device_check_answer *out_answer = answer;
    struct cuda_gpu *gpu = cuda_of(device);
    struct unit_check check = {.gpu = gpu, .asked = asked, .answer = out_answer};
    int rc = cuda_check(gpu, gpu->driver->cuCtxSetCurrent(gpu->context), "cuCtxSetCurrent", err);
    if (rc)
        return rc;
    rc = prepare(&check, err);
    if (!rc)
        rc = run_all(&check, err);
    free(check.cycles);
    return rc;
}
