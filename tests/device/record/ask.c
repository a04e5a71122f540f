/* Questions to a GPU that is recorded or replayed. */
#include "ask.h"

#include <string.h>

#include "../../check.h"

struct device_job ask_chase(uint64_t size_bytes)
{
    struct device_job job = {.agents = {{.sm = DEVICE_SM_ANY}}, .agent_count = 1, .step_count = 2};
    const struct device_array array = {
        .path = DEVICE_GLOBAL_CA, .size_bytes = size_bytes, .stride_bytes = 32};
    job.steps[0] = (struct device_step){.kind = DEVICE_WARM, .array = array};
    job.steps[1] = (struct device_step){.kind = DEVICE_CHASE, .array = array, .keep = 16};
    return job;
}

struct device_answer ask_device(struct device *device, const struct device_job *job,
                                uint32_t at_once)
{
    const struct device_batch batch = {.jobs = job, .job_count = 1, .at_once = at_once};
    struct device_answer answer = {0};
    struct err err = {0};
    if (device_run(device, &batch, &answer, &err))
        fail_msg("%s", err.text);
    return answer;
}

int ask_in_vain(struct device *device, const struct device_job *job, struct err *err)
{
    const struct device_batch batch = {.jobs = job, .job_count = 1};
    struct device_answer answer = {0};
    *err = (struct err){0};
    int rc = device_run(device, &batch, &answer, err);
    device_answers_fini(&answer, 1);
    return rc;
}

static bool same_sample(const struct device_sample *a, const struct device_sample *b)
{
    bool same = a->step == b->step && a->sm == b->sm && a->loads == b->loads &&
                a->total_cycles == b->total_cycles && a->elapsed_ns == b->elapsed_ns &&
                a->bin_count == b->bin_count && a->kept_count == b->kept_count;
    for (uint32_t i = 0; same && i < a->bin_count; i++)
        same = a->bins[i].bin == b->bins[i].bin && a->bins[i].count == b->bins[i].count;
    return same &&
           (!a->kept_count || memcmp(a->kept, b->kept, a->kept_count * sizeof *a->kept) == 0);
}

bool ask_same_answer(const struct device_answer *a, const struct device_answer *b)
{
    bool same = a->sample_count == b->sample_count;
    for (uint32_t i = 0; same && i < a->sample_count; i++)
        same = same_sample(&a->samples[i], &b->samples[i]);
    return same;
}

void ask_check_same(struct device *device, const struct device_job *job, uint32_t at_once,
                    const struct device_answer *expected)
{
    struct device_answer answer = ask_device(device, job, at_once);
    assert_true(ask_same_answer(&answer, expected));
    device_answers_fini(&answer, 1);
}
