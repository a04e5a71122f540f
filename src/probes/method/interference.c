/* Checks whether spreading jobs over all SMs changes what is measured: SMs may share more than
 * L2. */
#include "probes/method/interference.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "probes/method/chase.h"

enum {
    SIZES = 8,  /* doubling; the largest ends with the path's memory or the search */
    SPARSE = 4, /* one load per this many fetch units: the check needs no detail */
    JOBS_MAX = 256,
    REPEATS = 3,
    LOADS_MIN = 128,
    SHARED_LINES = 8, /* that one SM loads and another one times: any cache holds them */
};

/* A size fits if its miss share alone is at most FITS; with other jobs it must stay below DISTURBED
 * on every SM. Sizes that do not fit vary too much under a random policy. */
static const double FITS = 0.02, DISTURBED = 0.12;

/* Fewer misses than this of lines that another SM loaded: both share the cache. */
static const double SHARED = 0.5;

/* Larger arrays are no test: they overflow the cache of every SM anyway. */
static const uint64_t LARGEST_BYTES = 256 * 1024;

static struct device_job make_job(const struct study *study, size_t number)
{
    uint64_t largest = study->limit_bytes < LARGEST_BYTES ? study->limit_bytes : LARGEST_BYTES;
    uint64_t size = largest >> (number % SIZES), stride = SPARSE * study->fetch_bytes;
    const struct device_array array = {
        .path = study->path, .size_bytes = size > stride ? size : stride, .stride_bytes = stride};
    return chase_twice(&array, LOADS_MIN);
}

/* The largest miss share of each size, with this many jobs in flight. */
static int measure(struct probe_context *context, const struct study *study, size_t count,
                   uint32_t at_once, double *out_shares, struct err *err)
{
    struct device_job *jobs = mem_array(count, sizeof *jobs);
    struct device_answer *answers;
    if (!jobs)
        return err_no_memory(err);
    for (size_t i = 0; i < count; i++)
        jobs[i] = make_job(study, i);
    int rc = chase_run(context, jobs, count, at_once, &answers, err);
    free(jobs);
    if (rc)
        return rc;
    for (size_t size = 0; size < SIZES; size++) {
        double worst = 0;
        for (size_t i = size; i < count; i += SIZES)
            worst = fmax(worst, chase_share_above(&answers[i].samples[0], study->threshold));
        out_shares[size] = worst;
    }
    device_answers_fini(answers, count);
    free(answers);
    return 0;
}

int interference_check(struct probe_context *context, struct study *study, struct err *err)
{
    uint32_t sms = device_limits(context->device)->sm_count;
    double alone[SIZES], together[SIZES];
    int rc = measure(context, study, REPEATS * SIZES, 1, alone, err);
    for (uint32_t at_once = sms; !rc && at_once > 1; at_once /= 2) {
        size_t least = REPEATS * SIZES, count = at_once < JOBS_MAX ? at_once : JOBS_MAX;
        bool same = true;
        rc = measure(context, study, count < least ? least : count, at_once, together, err);
        for (size_t i = 0; i < SIZES && !rc; i++)
            same = same && (alone[i] > study->stray_share + FITS ||
                            together[i] < study->stray_share + DISTURBED);
        if (same) {
            study->at_once = at_once == sms ? 0 : at_once;
            return rc;
        }
    }
    study->at_once = 1;
    return rc;
}

/* SM 0 loads some lines, then another SM times them: from L2, unless both share the cache. */
static struct device_job shared_job(const struct study *study, uint32_t sm)
{
    const struct device_array array = {.path = study->path,
                                       .size_bytes = SHARED_LINES * study->line_bytes,
                                       .stride_bytes = study->line_bytes};
    struct device_job job = chase_job();
    job.agents[0].sm = 0;
    job.agents[1].sm = (int32_t)sm;
    job.agent_count = 2;
    job.shared_bytes = study->shared_bytes;
    chase_add(&job, DEVICE_WARM, &array, 0);
    chase_add(&job, DEVICE_CHASE, &array, 0)->agent = 1;
    return job;
}

int interference_shared(struct probe_context *context, const struct study *study, bool *out_shared,
                        struct err *err)
{
    uint32_t sms = device_limits(context->device)->sm_count;
    struct device_job *jobs = sms > 1 ? mem_array(sms - 1, sizeof *jobs) : NULL;
    struct device_answer *answers;
    bool shared = false;
    *out_shared = false;
    if (sms < 2)
        return 0;
    if (!jobs)
        return err_no_memory(err);
    for (uint32_t sm = 1; sm < sms; sm++)
        jobs[sm - 1] = shared_job(study, sm);
    int rc = chase_run(context, jobs, sms - 1, 1, &answers, err);
    free(jobs);
    if (rc)
        return rc;
    for (uint32_t i = 0; i + 1 < sms; i++)
        shared |= chase_share_above(&answers[i].samples[0], study->threshold) < SHARED;
    device_answers_fini(answers, sms - 1);
    free(answers);
    *out_shared = shared;
    return 0;
}
