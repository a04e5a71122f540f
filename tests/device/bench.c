/* Opening simulated GPUs and running single jobs for tests. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../check.h"

const char bench_head[] = "name: Bench\n"
                          "sms: 8\n"
                          "sms_per_tpc: 2\n"
                          "sms_per_gpc: 4\n"
                          "clock: {sm_mhz: 1000, idle_mhz: 100, ramp_ms: 0, memory_mhz: 2000}\n"
                          "memory: {size: 1 GiB}\n";

struct device *bench_open_faulty(const char *text, const struct sim_fault *faults, size_t count)
{
    char whole[4096];
    snprintf(whole, sizeof whole, "%s%s", bench_head, text);
    struct err err = {0};
    struct sim_model *model = NULL;
    struct device *device = NULL;
    if (sim_model_read_text(whole, strlen(whole), "bench", &model, &err) ||
        sim_open(model, faults, count, 1, &device, &err)) {
        sim_model_destroy(model);
        fail_msg("line %d column %d: %s", err.line, err.column, err.text);
    }
    sim_model_destroy(model);
    return device;
}

struct device *bench_open(const char *text)
{
    return bench_open_faulty(text, NULL, 0);
}

struct device_array bench_array(enum device_path path, uint64_t size_bytes, uint64_t stride_bytes)
{
    return (struct device_array){
        .path = path, .size_bytes = size_bytes, .stride_bytes = stride_bytes};
}

struct device_job bench_warm_chase(struct device_array array)
{
    struct device_job job = {.agents = {{.sm = DEVICE_SM_ANY}}, .agent_count = 1, .step_count = 2};
    job.steps[0] = (struct device_step){.kind = DEVICE_WARM, .array = array};
    job.steps[1] = (struct device_step){.kind = DEVICE_CHASE, .array = array};
    return job;
}

static struct device_answer run_one(struct device *device, const struct device_job *job)
{
    struct device_batch batch = {.jobs = job, .job_count = 1};
    struct device_answer answer;
    struct err err = {0};
    if (device_run(device, &batch, &answer, &err))
        fail_msg("%s", err.text);
    return answer;
}

double bench_mean(struct device *device, const struct device_job *job)
{
    struct device_answer answer = run_one(device, job);
    const struct device_sample *sample = &answer.samples[0];
    double mean = (double)sample->total_cycles / (double)sample->loads;
    device_answers_fini(&answer, 1);
    return mean;
}

uint64_t bench_slow_loads(struct device *device, const struct device_job *job, double cycles)
{
    struct device_answer answer = run_one(device, job);
    const struct device_sample *sample = &answer.samples[answer.sample_count - 1];
    uint64_t slow = 0;
    for (uint32_t i = 0; i < sample->bin_count; i++)
        if (device_bin_cycles(sample->bins[i].bin) >= cycles)
            slow += sample->bins[i].count;
    device_answers_fini(&answer, 1);
    return slow;
}
