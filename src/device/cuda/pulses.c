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
    LAUNCHES = 64,        /* of a batch, at most */
    BATCH_HZ = 20,        /* batches per second, about */
    STEADY_HZ = 50,       /* launches per second without pauses */
    POWER_HZ_MAX = 5,     /* faster pulses do not show in what the driver reads */
    POWER_READINGS = 100, /* fewer tell nothing */
};

/* A launch of SCREEN_PERIODS takes longer than that. */
static const uint64_t LAUNCH_NS_MIN = 10000;

/* Batches take turns with two halves of the buffers. The next one is queued as soon as the last
 * launch of a batch has ended, while the pause behind that still lasts; then the results of the
 * batch are looked at. */
struct pulsing {
    struct screening screening;
    const struct device_pulse *asked;
    struct device_pulse_answer *answer;
    CUfunction pause;
    uint64_t half_ns;     /* of a launch, and of the pause behind it */
    uint32_t batch;       /* launches */
    uint32_t periods;     /* of a launch that is queued next */
    uint32_t set;         /* of operands of a batch that is queued next */
    uint64_t last_end_ns; /* of the last pause that is known */
    double *power_w;
    size_t power_count, power_room;
};

static uint32_t slot_of(uint32_t half, uint32_t launch)
{
    return half * LAUNCHES + launch;
}

static int queue_pause(const struct pulsing *pulsing, uint64_t ns, uint32_t slot, struct err *err)
{
    struct cuda_gpu *gpu = pulsing->screening.gpu;
    uint64_t stamps = gpu->outputs.device + 16 * (uint64_t)slot;
    void *parameters[] = {&ns, &stamps};
    return cuda_launch(gpu, pulsing->pause, 1, 1, 0, parameters, err);
}

/* Of the last launch, what is known before its pause ends. */
static int queue_download(const struct pulsing *pulsing, uint32_t half, struct err *err)
{
    struct cuda_gpu *gpu = pulsing->screening.gpu;
    size_t bytes = gpu->base.limits.sm_count * sizeof(struct kernel_check_result);
    size_t at = slot_of(half, 0) * bytes;
    int rc = cuda_check(gpu,
                        gpu->driver->cuMemcpyDtoHAsync((char *)gpu->results.host + at,
                                                       gpu->results.device + at,
                                                       pulsing->batch * bytes, gpu->streams[0]),
                        "cuMemcpyDtoHAsync", err);
    if (!rc)
        rc = staging_download(gpu, &gpu->outputs, 16 * 2 * LAUNCHES, err);
    return rc ? rc : cuda_record(gpu, gpu->events[1], gpu->streams[0], err);
}

static int pulse_queue(const struct pulsing *pulsing, uint32_t half, struct err *err)
{
    int rc = 0;
    for (uint32_t i = 0; i < pulsing->batch && !rc; i++) {
        uint32_t slot = slot_of(half, i);
        const struct screening_launch launch = {
            .periods = pulsing->periods, .number = i, .set = pulsing->set, .slot = slot};
        rc = screening_launch(&pulsing->screening, &launch, err);
        if (!rc && i + 1 == pulsing->batch)
            rc = queue_download(pulsing, half, err);
        if (!rc)
            rc = queue_pause(pulsing, pulsing->asked->hz ? pulsing->half_ns : 0, slot, err);
    }
    return rc;
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

static int pulse_wait(struct pulsing *pulsing, struct err *err)
{
    static const struct timespec slow = {.tv_nsec = 5000000}, fast = {.tv_nsec = 50000};
    struct cuda_gpu *gpu = pulsing->screening.gpu;
    bool reads = pulsing->asked->hz && pulsing->asked->hz <= POWER_HZ_MAX;
    CUresult result = gpu->driver->cuEventQuery(gpu->events[1]);
    while (result == CUDA_ERROR_NOT_READY) {
        if (reads)
            read_power(pulsing);
        nanosleep(reads ? &slow : &fast, NULL);
        result = gpu->driver->cuEventQuery(gpu->events[1]);
    }
    return cuda_check(gpu, result, "pulses", err);
}

/* When the pause of this slot began and ended. */
static const uint64_t *stamps_of(const struct pulsing *pulsing, uint32_t slot)
{
    return (const uint64_t *)pulsing->screening.gpu->outputs.host + 2 * slot;
}

/* A pause that has ended, and the launch before it. */
static void take_pause(struct pulsing *pulsing, uint32_t slot)
{
    const uint64_t *stamps = stamps_of(pulsing, slot);
    pulsing->answer->busy_ns += stamps[0] - pulsing->last_end_ns;
    pulsing->answer->idle_ns += stamps[1] - stamps[0];
    pulsing->last_end_ns = stamps[1];
}

static int take_hashes(struct pulsing *pulsing, uint32_t half, uint32_t set, struct err *err)
{
    const struct cuda_gpu *gpu = pulsing->screening.gpu;
    size_t sms = gpu->base.limits.sm_count;
    const struct kernel_check_result *results = gpu->results.host;
    results += slot_of(half, 0) * sms;
    struct cuda_hashes hashes = {.results = results,
                                 .warps = pulsing->screening.warps,
                                 .set = set,
                                 .expected = screening_most_frequent(&pulsing->screening, results)};
    struct device_pulse_answer *answer = pulsing->answer;
    int rc = 0;
    for (uint32_t i = 0; i < pulsing->batch && !rc; i++, hashes.results += sms) {
        uint64_t before = cuda_wrong_hashes(answer->places, answer->place_count);
        rc = cuda_add_hashes(gpu, &hashes, answer->places, NULL, err);
        answer->wrong_launches += cuda_wrong_hashes(answer->places, answer->place_count) > before;
    }
    answer->launches += pulsing->batch;
    return rc;
}

/* The clock of a GPU that has become hot is lower: launches are kept as long as they should be. */
static void adapt_periods(struct pulsing *pulsing, uint64_t busy_ns, uint32_t launches)
{
    double took_ns = fmax((double)busy_ns / launches, (double)LAUNCH_NS_MIN);
    double factor = fmin(fmax((double)pulsing->half_ns / took_ns, 0.5), 2);
    pulsing->periods = (uint32_t)fmin(fmax(round(pulsing->periods * factor), 1), INT32_MAX);
}

/* All pauses that have ended since the batch before: its last one, or the one before the first
 * batch; and those of this one but its last. */
static void take_pauses(struct pulsing *pulsing, uint32_t half)
{
    uint32_t last = pulsing->batch - 1, before = slot_of(!half, last);
    uint64_t busy_ns = pulsing->answer->busy_ns;
    bool first = !pulsing->answer->launches;
    if (first)
        pulsing->last_end_ns = stamps_of(pulsing, before)[1];
    else
        take_pause(pulsing, before);
    for (uint32_t i = 0; i < last; i++)
        take_pause(pulsing, slot_of(half, i));
    if (last || !first)
        adapt_periods(pulsing, pulsing->answer->busy_ns - busy_ns, last + !first);
}

static int run_pulses(struct pulsing *pulsing, struct err *err)
{
    const struct device_pulse_answer *answer = pulsing->answer;
    uint64_t target_ns = (uint64_t)pulsing->asked->target_ms * 1000000;
    /* The pause before the first batch has no length. */
    int rc = queue_pause(pulsing, 0, slot_of(1, pulsing->batch - 1), err);
    if (!rc)
        rc = pulse_queue(pulsing, 0, err);
    bool more = true;
    for (uint32_t half = 0; more && !rc; half = !half) {
        uint64_t before_ns = answer->busy_ns + answer->idle_ns;
        rc = pulse_wait(pulsing, err);
        if (rc)
            return rc;
        take_pauses(pulsing, half);
        uint64_t ns = answer->busy_ns + answer->idle_ns;
        more = ns < target_ns && (ns > before_ns || !answer->launches);
        uint32_t set = pulsing->set++;
        if (more)
            rc = pulse_queue(pulsing, !half, err);
        if (!rc)
            rc = take_hashes(pulsing, half, set, err);
    }
    return rc;
}

/* How many periods a launch has. */
static int pulse_calibrate(struct pulsing *pulsing, struct err *err)
{
    struct cuda_gpu *gpu = pulsing->screening.gpu;
    uint32_t hz = pulsing->asked->hz, per_second = hz ? hz : STEADY_HZ;
    const struct screening_launch launch = {.periods = SCREEN_PERIODS};
    uint64_t ns = 0;
    int rc = cuda_record(gpu, gpu->events[0], gpu->streams[0], err);
    if (!rc)
        rc = screening_launch(&pulsing->screening, &launch, err);
    if (!rc)
        rc = cuda_record(gpu, gpu->events[1], gpu->streams[0], err);
    if (!rc)
        rc = cuda_wait(gpu, err);
    if (!rc)
        rc = cuda_elapsed(gpu, gpu->events[0], gpu->events[1], &ns, err);
    pulsing->half_ns = hz ? UINT64_C(500000000) / hz : UINT64_C(1000000000) / STEADY_HZ;
    double took_ns = fmax((double)ns, (double)LAUNCH_NS_MIN);
    pulsing->periods = (uint32_t)fmax((double)pulsing->half_ns * SCREEN_PERIODS / took_ns, 1);
    pulsing->batch = per_second <= BATCH_HZ ? 1 : per_second / BATCH_HZ;
    pulsing->batch = pulsing->batch < LAUNCHES ? pulsing->batch : LAUNCHES;
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
        rc = staging_grow(gpu, &gpu->results,
                          2 * LAUNCHES * sms * sizeof(struct kernel_check_result), err);
    if (!rc)
        rc = staging_grow(gpu, &gpu->outputs, 16 * 2 * LAUNCHES, err);
    if (rc)
        return rc;
    answer->place_count = sms * DEVICE_SUB_CORES;
    answer->places = mem_array(answer->place_count, sizeof *answer->places);
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
    int rc = pulse_prepare(&pulsing, cuda_of(device), err);
    if (!rc)
        rc = run_pulses(&pulsing, err);
    if (!rc)
        pulse_find_power(&pulsing);
    if (pulsing.screening.gpu)
        screening_end(&pulsing.screening);
    free(pulsing.power_w);
    return rc;
}
