/* Bulk copies on a simulated GPU: how long the lines take is loaded by a chase; the copy unit of
 * the SM then takes the data of one copy after the other. */
#include <errno.h>
#include <math.h>

#include "base/rng.h"
#include "device/sim/gpu.h"

enum { LOADS = 64, STRIDE_BYTES = 9 * 128 };

/* The mean latency of a line, as the simulated hierarchy serves it. */
static int load_lines(struct gpu *gpu, const struct device_bulk *asked, double *out_cycles,
                      struct err *err)
{
    const struct device_array array = {.path = DEVICE_GLOBAL_CG,
                                       .size_bytes = (uint64_t)LOADS * STRIDE_BYTES,
                                       .stride_bytes = STRIDE_BYTES};
    bool warm = asked->source == DEVICE_BULK_L2;
    struct device_job job = {
        .agent_count = 1,
        .steps = {{.kind = DEVICE_WARM, .array = array}, {.kind = DEVICE_AVERAGE, .array = array}},
        .step_count = 2,
        .cold_l2 = true};
    if (!warm) {
        job.steps[0] = job.steps[1];
        job.step_count = 1;
    }
    struct device_answer answer = {0};
    const struct device_batch batch = {.jobs = &job, .job_count = 1, .at_once = 1};
    int rc = gpu_run_batch(&gpu->device, &batch, &answer, err);
    if (rc)
        return rc;
    *out_cycles = (double)answer.samples[0].total_cycles / (double)answer.samples[0].loads;
    device_answers_fini(&answer, 1);
    return 0;
}

/* What the copy unit gets in a cycle: its own limit, or the SM's share of L2 or memory. */
static double rate_of(const struct gpu *gpu, const struct device_bulk *asked, double mhz)
{
    const struct sim_model *model = &gpu->model;
    bool l2 = asked->source == DEVICE_BULK_L2;
    double gbs =
        l2 ? model->bandwidth.l2_read * mhz / model->nominal_clock.sm_mhz
           : model->bandwidth.main_read * model->clock.memory_mhz / model->nominal_clock.memory_mhz;
    double share = asked->alone ? model->clusters.bulk : gbs * 1e3 / mhz / model->sms;
    return fmin(model->clusters.bulk, share) / (1 + model->health[HEALTH_PROCESSES]);
}

int gpu_copy_bulk(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_bulk *asked = request;
    struct device_bulk_answer *out_answer = answer;
    struct gpu *gpu = (struct gpu *)device;
    const struct sim_noise *noise = &gpu->model.noise;
    double come[DEVICE_BULK_FLIGHTS_MAX] = {0}, unit_free = 0, end = 0, latency = 0;
    struct rng rng;
    gpu_update(gpu);
    if (!gpu->model.clusters.size_max)
        return err_set(err, -ENOTSUP, "this GPU has no bulk copies");
    int rc = load_lines(gpu, asked, &latency, err);
    if (rc)
        return rc;
    double mhz = gpu_clock_mhz(gpu, gpu->busy_ns), rate = rate_of(gpu, asked, mhz);
    latency += gpu->model.clusters.bulk_cycles;
    rng_init(&rng, rng_derive(gpu->noise_seed, "bulk", gpu->stream_number++), "noise");
    for (uint32_t i = 0; i < asked->copies / asked->in_flight * asked->in_flight; i++) {
        double *slot = &come[i % asked->in_flight];
        double took = fmax(asked->bytes / rate, gpu->model.clusters.bulk_interval) *
                      (1 + fabs(noise->bandwidth * rng_normal(&rng)));
        double there = *slot + latency + noise->jitter_cycles * rng_normal(&rng);
        unit_free = fmax(unit_free, there) + took;
        *slot = unit_free;
        end = fmax(end, unit_free);
    }
    *out_answer = (struct device_bulk_answer){.cycles = (uint64_t)(end + 0.5),
                                              .elapsed_ns = (uint64_t)(end * 1e3 / mhz + 0.5),
                                              .sms = asked->alone ? 1 : gpu->model.sms};
    gpu->busy_ns += end * 1e3 / mhz;
    return 0;
}
