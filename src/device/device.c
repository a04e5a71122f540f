/* The part of sources and devices that all backends share, apart from calls: lists, marks, warm-up.
 */
#include "device/device.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "device/source.h"

size_t device_source_count(const struct device_source *source)
{
    return source->info_count;
}

const struct device_info *device_source_info(const struct device_source *source, size_t i)
{
    return &source->infos[i];
}

size_t device_source_bare_count(const struct device_source *source)
{
    return source->bare_count;
}

const char *device_source_bare_node(const struct device_source *source, size_t i)
{
    return source->bare_nodes[i];
}

int device_source_open(struct device_source *source, size_t i, struct device **out_device,
                       struct err *err)
{
    if (i >= source->info_count)
        return err_set(err, -EINVAL, "the source has no GPU %zu", i);
    return source->ops->open(source, i, out_device, err);
}

int device_source_look(struct device_source *source, size_t i, bool thorough,
                       struct device_look *look, struct err *err)
{
    if (i >= source->info_count)
        return err_set(err, -EINVAL, "the source has no GPU %zu", i);
    return source->ops->look ? source->ops->look(source, i, thorough, look, err) : 0;
}

void device_source_destroy(struct device_source *source)
{
    if (source)
        source->ops->destroy(source);
}

void device_end_link(struct device *device)
{
    if (device->ops->end_link)
        device->ops->end_link(device);
}

void device_mark(struct device *device, const char *what)
{
    if (device->ops->mark)
        device->ops->mark(device, what);
}

bool device_knows(struct device *device, const char *what)
{
    return !device->ops->knows || device->ops->knows(device, what);
}

const struct device_limits *device_limits(const struct device *device)
{
    return &device->limits;
}

void device_destroy(struct device *device)
{
    if (device)
        device->ops->destroy(device);
}

/* A round lasts some milliseconds at full speed. The clock counts as stable when a window of
 * rounds, longer than the driver's steps between clocks, agrees within a per cent. */
enum { WARM_LOADS = 200000, WARM_BYTES = 2048, WARM_STRIDE = 128, WARM_WINDOW = 8 };
enum { WARM_ROUNDS_MAX = 600 };
static const double warm_agreement = 0.01;

static int warm_round(struct device *device, const struct device_batch *batch,
                      struct device_answer *answers, double *out_mhz, struct err *err)
{
    int rc = device_run(device, batch, answers, err);
    if (rc)
        return rc;
    double cycles = 0, ns = 0;
    for (size_t i = 0; i < batch->job_count; i++) {
        cycles += (double)answers[i].samples[0].total_cycles;
        ns += (double)answers[i].samples[0].elapsed_ns;
    }
    device_answers_fini(answers, batch->job_count);
    if (ns <= 0)
        return err_set(err, -ENOTSUP, "warm-up: the device has no real-time clock");
    *out_mhz = cycles / ns * 1e3;
    return 0;
}

static bool window_agrees(const double *window, size_t count)
{
    double low = window[0], high = window[0];
    for (size_t i = 1; i < count; i++) {
        low = window[i] < low ? window[i] : low;
        high = window[i] > high ? window[i] : high;
    }
    return high <= low * (1 + warm_agreement);
}

static int warm_until_stable(struct device *device, const struct device_batch *batch,
                             struct device_answer *answers, double *out_sm_mhz, struct err *err)
{
    double window[WARM_WINDOW];
    for (size_t round = 0; round < WARM_ROUNDS_MAX; round++) {
        double mhz = 0;
        int rc = warm_round(device, batch, answers, &mhz, err);
        if (rc)
            return rc;
        window[round % WARM_WINDOW] = mhz;
        if (round + 1 >= WARM_WINDOW && window_agrees(window, WARM_WINDOW)) {
            *out_sm_mhz = mhz;
            return 0;
        }
    }
    return err_set(err, -ETIMEDOUT, "the SM clock did not settle within 1 %%");
}

int device_warm_up(struct device *device, double *out_sm_mhz, struct err *err)
{
    size_t count = device->limits.sm_count ? device->limits.sm_count : 1;
    struct device_job *jobs = mem_array(count, sizeof *jobs);
    struct device_answer *answers = mem_array(count, sizeof *answers);
    for (size_t i = 0; i < count; i++) {
        jobs[i] = (struct device_job){.agents = {{.sm = DEVICE_SM_ANY}},
                                      .agent_count = 1,
                                      .step_count = 1,
                                      .steps = {{.kind = DEVICE_AVERAGE, .loads = WARM_LOADS}}};
        jobs[i].steps[0].array = (struct device_array){
            .path = DEVICE_GLOBAL_CA, .size_bytes = WARM_BYTES, .stride_bytes = WARM_STRIDE};
    }
    struct device_batch batch = {.jobs = jobs, .job_count = count};
    int rc = warm_until_stable(device, &batch, answers, out_sm_mhz, err);
    free(jobs);
    free(answers);
    return rc;
}
