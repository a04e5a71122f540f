/* The screen in pulses of current: launches with pauses between them, in which no SM has anything
 * to do. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "base/mem.h"
#include "base/sort.h"
#include "device/cuda/kernels.h"
#include "device/cuda/screening.h"
#include "device/screen_program.h"

enum {
    LAUNCHES = 64,        /* queued at once, at most */
    BATCH_HZ = 20,        /* about so many times in a second what was queued is waited for */
    STEADY_HZ = 50,       /* launches per second without pauses */
    CALIBRATIONS = 3,     /* launches that show how long a period takes; the last one counts */
    POWER_MS = 5,         /* between two readings */
    POWER_READINGS = 100, /* fewer tell nothing */
};

struct pulsing {
    struct screening screening;
    const struct device_pulse *asked;
    struct device_pulse_answer *answer;
    CUfunction pause;
    uint64_t pause_ns; /* between two launches */
    uint32_t periods, batch;
    uint64_t *cycles; /* scratch */
    double *power_w;
    size_t power_count, power_room;
};

/* Stamp 0 is of the pause before the first launch, stamp i of that behind launch i - 1. */
static int queue_pause(const struct pulsing *pulsing, uint64_t ns, uint32_t number, struct err *err)
{
    struct cuda_gpu *gpu = pulsing->screening.gpu;
    uint64_t stamps = gpu->outputs.device + 16 * (uint64_t)number;
    void *parameters[] = {&ns, &stamps};
    return cuda_launch(gpu, pulsing->pause, 1, 1, 0, parameters, err);
}

static int pulse_queue(const struct pulsing *pulsing, struct err *err)
{
    struct cuda_gpu *gpu = pulsing->screening.gpu;
    size_t sms = gpu->base.limits.sm_count;
    int rc = queue_pause(pulsing, 0, 0, err);
    for (uint32_t i = 0; i < pulsing->batch && !rc; i++) {
        rc = screening_launch(&pulsing->screening, pulsing->periods, pulsing->answer->launches + i,
                              i, err);
        if (!rc)
            rc = queue_pause(pulsing, pulsing->pause_ns, i + 1, err);
    }
    if (!rc)
        rc = staging_download(gpu, &gpu->results,
                              pulsing->batch * sms * sizeof(struct kernel_check_result), err);
    if (!rc)
        rc = staging_download(gpu, &gpu->outputs, 16 * (pulsing->batch + 1), err);
    return rc ? rc : cuda_record(gpu, gpu->events[1], gpu->streams[0], err);
}

static void read_power(struct pulsing *pulsing)
{
    double power_w = cuda_power_w(pulsing->screening.gpu);
    if (isnan(power_w))
        return;
    pulsing->power_w = mem_grow(pulsing->power_w, &pulsing->power_room, pulsing->power_count + 1,
                                sizeof *pulsing->power_w);
    pulsing->power_w[pulsing->power_count++] = power_w;
}

/* The power is read while the GPU works. */
static int pulse_wait(struct pulsing *pulsing, struct err *err)
{
    static const struct timespec between = {.tv_nsec = POWER_MS * 1000000};
    struct cuda_gpu *gpu = pulsing->screening.gpu;
    CUresult result = gpu->driver->cuEventQuery(gpu->events[1]);
    while (result == CUDA_ERROR_NOT_READY) {
        read_power(pulsing);
        nanosleep(&between, NULL);
        result = gpu->driver->cuEventQuery(gpu->events[1]);
    }
    return cuda_check(gpu, result, "pulses", err);
}

static int pulse_take(struct pulsing *pulsing, struct err *err)
{
    const struct cuda_gpu *gpu = pulsing->screening.gpu;
    const struct kernel_check_result *results = gpu->results.host;
    const uint64_t(*stamps)[2] = gpu->outputs.host;
    struct device_pulse_answer *answer = pulsing->answer;
    if (!answer->launches)
        pulsing->screening.expected = screening_most_frequent(&pulsing->screening);
    for (uint32_t i = 0; i < pulsing->batch; i++) {
        int rc =
            cuda_add_hashes(gpu, results + i * gpu->base.limits.sm_count, pulsing->screening.warps,
                            pulsing->screening.expected, answer->places, pulsing->cycles, err);
        if (rc)
            return rc;
        cuda_keep_fastest(answer->places, pulsing->cycles, answer->place_count);
        answer->busy_ns += stamps[i + 1][0] - stamps[i][1];
        answer->idle_ns += stamps[i + 1][1] - stamps[i + 1][0];
    }
    answer->launches += pulsing->batch;
    return 0;
}

/* How many periods take half a cycle of the pulses. */
static int pulse_calibrate(struct pulsing *pulsing, struct err *err)
{
    struct cuda_gpu *gpu = pulsing->screening.gpu;
    uint32_t hz = pulsing->asked->hz;
    uint64_t half_ns = hz ? UINT64_C(500000000) / hz : UINT64_C(1000000000) / STEADY_HZ, ns = 0;
    int rc = 0;
    for (int i = 0; i < CALIBRATIONS && !rc; i++) {
        rc = cuda_record(gpu, gpu->events[0], gpu->streams[0], err);
        if (!rc)
            rc = screening_launch(&pulsing->screening, SCREEN_PERIODS, 0, 0, err);
        if (!rc)
            rc = cuda_record(gpu, gpu->events[1], gpu->streams[0], err);
        if (!rc)
            rc = cuda_wait(gpu, err);
        if (!rc)
            rc = cuda_elapsed(gpu, gpu->events[0], gpu->events[1], &ns, err);
    }
    double periods = (double)half_ns * SCREEN_PERIODS / (double)(ns ? ns : 1);
    pulsing->periods = (uint32_t)fmin(fmax(periods, 1), UINT32_MAX);
    pulsing->pause_ns = hz ? half_ns : 0;
    pulsing->batch = hz <= BATCH_HZ ? 1 : hz / BATCH_HZ < LAUNCHES ? hz / BATCH_HZ : LAUNCHES;
    return rc;
}

static int pulse_prepare(struct pulsing *pulsing, struct cuda_gpu *gpu, struct err *err)
{
    struct device_pulse_answer *answer = pulsing->answer;
    size_t sms = gpu->base.limits.sm_count;
    int rc = cuda_set_current(gpu, err);
    if (!rc && watch_others(&gpu->watch, &gpu->nvml_gpu))
        rc = err_set(err, -EBUSY, "another process uses the GPU");
    if (!rc)
        rc = screening_begin(&pulsing->screening, gpu, pulsing->asked->path, err);
    if (!rc)
        rc = cuda_find_kernel(gpu, CUDA_KERNELS_LOAD, "load_pause", &pulsing->pause, err);
    if (!rc)
        rc = staging_grow(gpu, &gpu->results, LAUNCHES * sms * sizeof(struct kernel_check_result),
                          err);
    if (!rc)
        rc = staging_grow(gpu, &gpu->outputs, 16 * (LAUNCHES + 1), err);
    if (rc)
        return rc;
    answer->place_count = sms * DEVICE_SUB_CORES;
    answer->places = mem_array(answer->place_count, sizeof *answer->places);
    pulsing->cycles = mem_array(answer->place_count, sizeof *pulsing->cycles);
    return pulse_calibrate(pulsing, err);
}

static int by_power(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void pulse_find_power(struct pulsing *pulsing)
{
    struct device_pulse_answer *answer = pulsing->answer;
    size_t count = pulsing->power_count;
    answer->power_known = count >= POWER_READINGS;
    if (!answer->power_known)
        return;
    sort_stable(pulsing->power_w, count, sizeof *pulsing->power_w, by_power);
    answer->power_low_w = pulsing->power_w[count / 10];
    answer->power_high_w = pulsing->power_w[count - 1 - count / 10];
}

int cuda_pulse_path(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_pulse *asked = request;
    struct device_pulse_answer *out_answer = answer;
    struct pulsing pulsing = {.asked = asked, .answer = out_answer};
    uint64_t target_ns = (uint64_t)asked->target_ms * 1000000, took_ns = 1;
    int rc = pulse_prepare(&pulsing, cuda_of(device), err);
    while (!rc && took_ns && out_answer->busy_ns + out_answer->idle_ns < target_ns) {
        uint64_t before_ns = out_answer->busy_ns + out_answer->idle_ns;
        rc = pulse_queue(&pulsing, err);
        if (!rc)
            rc = pulse_wait(&pulsing, err);
        if (!rc)
            rc = pulse_take(&pulsing, err);
        took_ns = out_answer->busy_ns + out_answer->idle_ns - before_ns;
    }
    if (!rc)
        pulse_find_power(&pulsing);
    free(pulsing.cycles);
    free(pulsing.power_w);
    return rc;
}
