/* Sustained load on all SMs, and what the GPU does meanwhile.
 *
 * The load is a row of short launches, a few of which are queued. So it ends within a moment when
 * this process stops queueing, and when it is killed. */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "device/cuda/gpu.h"
#include "device/cuda/kernels.h"
#include "inventory/throttle.h"

/* Since Ampere, the ordinary power reading is a mean over one second. The field has the momentary
 * power; older drivers do not know it. */
static const struct nvml_question power_now = {
    NVML_SHAPE_FIELD, "nvmlDeviceGetFieldValues", {NVML_FIELD_POWER_NOW}};
static const struct nvml_question power_mean = {NVML_SHAPE_NUMBER, "nvmlDeviceGetPowerUsage"};
static const struct nvml_question energy = {
    NVML_SHAPE_FIELD, "nvmlDeviceGetFieldValues", {NVML_FIELD_ENERGY}};
static const struct nvml_question sm_clock = {
    NVML_SHAPE_CHOSEN, "nvmlDeviceGetClockInfo", {NVML_CLOCK_OF_SM}};
static const struct nvml_question memory_clock = {
    NVML_SHAPE_CHOSEN, "nvmlDeviceGetClockInfo", {NVML_CLOCK_OF_MEMORY}};
static const struct nvml_question temperature = {
    NVML_SHAPE_CHOSEN, "nvmlDeviceGetTemperature", {NVML_SENSOR_GPU}};
static const struct nvml_question memory_temperature = {
    NVML_SHAPE_FIELD, "nvmlDeviceGetFieldValues", {NVML_FIELD_MEMORY_TEMPERATURE}};

/* The number times scale, or NAN. */
static double read_scaled(const struct nvml_gpu *gpu, const struct nvml_question *row, double scale)
{
    if (!gpu->handle)
        return NAN;
    const struct nvml_value value = nvml_read(gpu, row);
    return value.result == NVML_OK ? (double)value.number * scale : NAN;
}

/* A sensor that does not exist reads 0. */
static double above_zero(double value)
{
    return value > 0 ? value : NAN;
}

double cuda_power_w(const struct cuda_gpu *gpu)
{
    return above_zero(read_scaled(&gpu->nvml_gpu, &power_now, 1e-3));
}

void cuda_read_sensors(const struct cuda_gpu *cuda, struct device_load_sample *sample)
{
    const struct nvml_gpu *gpu = &cuda->nvml_gpu;
    unsigned long long reasons = 0;
    sample->sm_mhz = read_scaled(gpu, &sm_clock, 1);
    sample->memory_mhz = read_scaled(gpu, &memory_clock, 1);
    sample->power_w = above_zero(read_scaled(gpu, &power_now, 1e-3));
    if (isnan(sample->power_w))
        sample->power_w = above_zero(read_scaled(gpu, &power_mean, 1e-3));
    sample->energy_j = above_zero(read_scaled(gpu, &energy, 1e-3));
    sample->temperature_c = read_scaled(gpu, &temperature, 1);
    sample->temperature_memory_c = above_zero(read_scaled(gpu, &memory_temperature, 1));
    sample->throttle_known = gpu->handle && gpu->nvml->throttle_reasons &&
                             gpu->nvml->throttle_reasons(gpu->handle, &reasons) == NVML_OK;
    sample->throttle_reasons = sample->throttle_known ? reasons : 0;
}

_Static_assert((int)KERNEL_LOAD_FP32 == (int)DEVICE_LOAD_FP32 &&
                   (int)KERNEL_LOAD_MMA == (int)DEVICE_LOAD_MMA &&
                   (int)KERNEL_LOAD_WGMMA == (int)DEVICE_LOAD_WGMMA,
               "the kernels' units");

enum {
    LAUNCHES = 3, /* queued at once: NVML's answers take up to some 10 ms */
    FIRST_ROUNDS = 1000,
    FILL_THREADS = 1024,
};
static const double LAUNCH_NS = 20e6;
static const uint64_t OTHERS_NS = 500000000; /* between two looks for other processes */
static const uint64_t MEMORY_BYTES = UINT64_C(8) << 30;

struct load {
    struct cuda_gpu *gpu;
    const struct device_load *asked;
    struct device_load_answer *answer;
    CUfunction both, fill;
    CUdeviceptr memory;
    uint64_t chunks;
    CUevent begin, ends[LAUNCHES];
    uint32_t rounds[LAUNCHES], next_rounds;
    uint64_t launched, finished;
    uint64_t at_ns;                   /* the end of the last launch that has finished */
    struct kernel_load_result totals; /* of the launches that have finished */
    uint64_t others_ns;               /* when other processes were last looked for */
};

static int find_load_kernels(struct load *load, struct err *err)
{
    struct cuda_gpu *gpu = load->gpu;
    int rc = cuda_find_kernel(gpu, CUDA_KERNELS_LOAD, "load_both", &load->both, err);
    if (!rc)
        rc = cuda_find_kernel(gpu, CUDA_KERNELS_LOAD, "load_fill", &load->fill, err);
    return rc;
}

/* Much more memory than L2 holds, and at most a quarter of what is free. */
static int fill_memory(struct load *load, struct err *err)
{
    struct cuda_gpu *gpu = load->gpu;
    size_t free_bytes = 0, total_bytes = 0;
    int rc =
        cuda_check(gpu, gpu->driver->cuMemGetInfo(&free_bytes, &total_bytes), "cuMemGetInfo", err);
    if (rc)
        return rc;
    uint64_t bytes = free_bytes / 4 < MEMORY_BYTES ? free_bytes / 4 : MEMORY_BYTES;
    load->chunks = bytes / KERNEL_LOAD_CHUNK_BYTES;
    if (!load->chunks)
        return err_set(err, -ENOSPC, "only %zu bytes of memory are free", free_bytes);
    bytes = load->chunks * KERNEL_LOAD_CHUNK_BYTES;
    rc = cuda_check(gpu, gpu->driver->cuMemAlloc(&load->memory, bytes), "cuMemAlloc", err);
    if (rc)
        return rc;
    uint64_t count = bytes / 16;
    void *parameters[] = {&load->memory, &count};
    return cuda_launch(gpu, load->fill, gpu->base.limits.sm_count, FILL_THREADS, 0, parameters,
                       err);
}

static int create_events(struct load *load, struct err *err)
{
    const struct cuda_gpu *gpu = load->gpu;
    int rc = cuda_check(gpu, gpu->driver->cuEventCreate(&load->begin, CU_EVENT_DEFAULT),
                        "cuEventCreate", err);
    for (size_t i = 0; i < LAUNCHES && !rc; i++)
        rc = cuda_check(gpu, gpu->driver->cuEventCreate(&load->ends[i], CU_EVENT_DEFAULT),
                        "cuEventCreate", err);
    return rc;
}

static int prepare_load(struct load *load, struct err *err)
{
    struct cuda_gpu *gpu = load->gpu;
    load->next_rounds = FIRST_ROUNDS;
    int rc = find_load_kernels(load, err);
    if (rc)
        return rc;
    rc = fill_memory(load, err);
    if (rc)
        return rc;
    rc = create_events(load, err);
    if (rc)
        return rc;
    rc = staging_grow(gpu, &gpu->results, LAUNCHES * sizeof load->totals, err);
    if (rc)
        return rc;
    rc = cuda_check(gpu,
                    gpu->driver->cuMemsetD32Async(gpu->results.device, 0, sizeof load->totals / 4,
                                                  gpu->streams[0]),
                    "cuMemsetD32Async", err);
    return rc ? rc : cuda_record(gpu, load->begin, gpu->streams[0], err);
}

static struct kernel_load_result *totals_of(const struct load *load, size_t slot)
{
    return (struct kernel_load_result *)load->gpu->results.host + slot;
}

/* Queues one launch, a copy of the totals behind it, and the event that marks their end. Each
 * launch begins at another place of the memory. */
static int launch_load(struct load *load, struct err *err)
{
    struct cuda_gpu *gpu = load->gpu;
    size_t slot = load->launched % LAUNCHES;
    struct kernel_load kernel = {.base = load->memory,
                                 .chunks = load->chunks,
                                 .first_chunk = load->launched * (load->chunks / 7 | 1),
                                 .result = gpu->results.device,
                                 .rounds = load->next_rounds,
                                 .what = KERNEL_LOAD_COMPUTES | KERNEL_LOAD_READS};
    void *parameters[] = {&kernel};
    int rc = cuda_launch(gpu, load->both, gpu->base.limits.sm_count, KERNEL_LOAD_THREADS, 0,
                         parameters, err);
    if (rc)
        return rc;
    rc = cuda_check(gpu,
                    gpu->driver->cuMemcpyDtoHAsync(totals_of(load, slot), gpu->results.device,
                                                   sizeof load->totals, gpu->streams[0]),
                    "cuMemcpyDtoHAsync", err);
    if (rc)
        return rc;
    load->rounds[slot] = load->next_rounds;
    load->launched++;
    return cuda_record(gpu, load->ends[slot], gpu->streams[0], err);
}

/* Waits without keeping a CPU busy, since the load is long. */
static int wait_for_launch(const struct load *load, CUevent event, struct err *err)
{
    static const struct timespec pause = {.tv_nsec = 300000};
    CUresult result = load->gpu->driver->cuEventQuery(event);
    while (result == CUDA_ERROR_NOT_READY) {
        nanosleep(&pause, NULL);
        result = load->gpu->driver->cuEventQuery(event);
    }
    return cuda_check(load->gpu, result, "the load", err);
}

/* Later launches get as many rounds as take LAUNCH_NS, by what this one took. */
static void choose_rounds(struct load *load, uint32_t rounds, uint64_t took_ns)
{
    double factor = took_ns ? LAUNCH_NS / (double)took_ns : 2;
    load->next_rounds = (uint32_t)fmax(1, rounds * fmin(fmax(factor, 0.25), 4));
}

/* Waits for the oldest launch that has not finished. */
static int finish_one(struct load *load, struct err *err)
{
    const struct cuda_gpu *gpu = load->gpu;
    size_t slot = load->finished % LAUNCHES;
    int rc = wait_for_launch(load, load->ends[slot], err);
    if (rc)
        return rc;
    rc = cuda_elapsed(gpu, load->begin, load->ends[slot], &load->at_ns, err);
    if (rc)
        return rc;
    uint64_t before_ns = load->totals.elapsed_ns;
    load->totals = *totals_of(load, slot);
    choose_rounds(load, load->rounds[slot], load->totals.elapsed_ns - before_ns);
    load->finished++;
    return 0;
}

static void add_sample(struct load *load)
{
    struct device_load_sample sample = {.at_ns = load->at_ns,
                                        .operations = load->totals.operations,
                                        .bytes = load->totals.bytes,
                                        .cycles = load->totals.cycles,
                                        .cycles_ns = load->totals.elapsed_ns};
    cuda_read_sensors(load->gpu, &sample);
    device_load_answer_add(load->answer, &sample);
}

/* True if the load must end now; answer->end says why. */
static bool is_over(struct load *load)
{
    const struct device_load_answer *answer = load->answer;
    const struct device_load_sample *last = &answer->samples[answer->sample_count - 1];
    uint64_t limit_ns = load->asked->limit_ms * UINT64_C(1000000);
    uint64_t duration_ns = load->asked->duration_ms * UINT64_C(1000000);
    enum device_load_end *end = &load->answer->end;
    if (load->at_ns >= duration_ns || load->at_ns >= limit_ns) {
        *end = load->at_ns >= duration_ns ? DEVICE_LOAD_DONE : DEVICE_LOAD_TIME;
        return true;
    }
    if (last->throttle_known && throttle_by_hardware(last->throttle_reasons)) {
        *end = DEVICE_LOAD_SLOWDOWN;
        return true;
    }
    if (load->at_ns - load->others_ns < OTHERS_NS)
        return false;
    load->others_ns = load->at_ns;
    *end = DEVICE_LOAD_OTHERS;
    return watch_others(&load->gpu->watch, &load->gpu->nvml_gpu) > 0;
}

/* The next launch is queued before NVML is asked, so that the GPU does not wait for this. */
static int run_launches(struct load *load, struct err *err)
{
    uint64_t sample_ns = load->asked->sample_ms * UINT64_C(1000000), sampled_ns = 0;
    int rc = 0;
    add_sample(load);
    while (!rc && !is_over(load)) {
        while (!rc && load->launched < load->finished + LAUNCHES)
            rc = launch_load(load, err);
        if (rc)
            return rc;
        rc = finish_one(load, err);
        if (!rc && load->at_ns - sampled_ns >= sample_ns) {
            sampled_ns = load->at_ns;
            rc = launch_load(load, err);
            if (!rc)
                add_sample(load);
        }
    }
    while (!rc && load->finished < load->launched)
        rc = finish_one(load, err);
    if (!rc)
        add_sample(load);
    return rc;
}

/* The memory must not be freed while a launch reads it. */
static void load_fini(struct load *load)
{
    const struct driver *driver = load->gpu->driver;
    if (load->launched > load->finished)
        driver->cuStreamSynchronize(load->gpu->streams[0]);
    for (size_t i = 0; i < LAUNCHES; i++)
        if (load->ends[i])
            driver->cuEventDestroy(load->ends[i]);
    if (load->begin)
        driver->cuEventDestroy(load->begin);
    if (load->memory)
        driver->cuMemFree(load->memory);
}

int cuda_run_load(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_load *asked = request;
    struct device_load_answer *out_answer = answer;
    struct cuda_gpu *gpu = cuda_of(device);
    struct load load = {.gpu = gpu, .asked = asked, .answer = out_answer};
    int rc = cuda_set_current(gpu, err);
    if (rc)
        return rc;
    if (watch_others(&gpu->watch, &gpu->nvml_gpu))
        return err_set(err, -EBUSY, "another process uses the GPU");
    rc = prepare_load(&load, err);
    if (!rc)
        rc = run_launches(&load, err);
    load_fini(&load);
    out_answer->unit = (enum device_load_unit)load.totals.unit;
    return rc;
}
