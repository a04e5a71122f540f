/* Filling L2 with an array and timing a sample of it.
 *
 * The sample's elements stand evenly spaced, so that consecutive loads share pages and the TLBs
 * cost little; the spacing is a prime number of elements, so that they fall into all sets. */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "probes/chase.h"

enum {
    SAMPLE_PART = 32, /* one job times at most so small a part of the array: misses evict */
    JOBS_MAX = 256,
};

static bool is_prime(uint64_t n)
{
    for (uint64_t d = 2; d * d <= n; d++)
        if (n % d == 0)
            return false;
    return n > 1;
}

static uint64_t prime_from(uint64_t n)
{
    while (!is_prime(n))
        n++;
    return n;
}

/* A part of the array, in elements: every `spacing`-th. */
struct sample {
    uint64_t spacing, count;
    size_t jobs;
};

static struct sample make_sample(const struct l2_look *look)
{
    uint64_t elements = look->size_bytes / look->stride_bytes;
    uint64_t window = (uint64_t)(look->window * (double)elements);
    uint64_t most = elements / SAMPLE_PART;
    struct sample sample = {.spacing = 1};
    window = window ? window : 1;
    sample.count = most < look->loads ? most : look->loads;
    sample.count = sample.count ? sample.count : 1;
    if (sample.count < window)
        sample.spacing = prime_from(window / sample.count);
    sample.count = window / sample.spacing;
    sample.count = sample.count ? sample.count : 1;
    uint64_t jobs = (look->loads + sample.count - 1) / sample.count;
    sample.jobs = jobs < JOBS_MAX ? (size_t)jobs : JOBS_MAX;
    return sample;
}

static struct device_job make_job(struct probe_context *context, const struct l2_look *look,
                                  const struct sample *sample)
{
    const struct device_array all = {.path = DEVICE_GLOBAL_CG,
                                     .size_bytes = look->size_bytes,
                                     .stride_bytes = look->stride_bytes};
    struct device_array timed = all;
    uint64_t room = look->size_bytes / look->stride_bytes - sample->count * sample->spacing;
    uint64_t shift = sample->spacing < room ? sample->spacing : room + 1;
    timed.offset_bytes = probe_seed(context) % shift * look->stride_bytes;
    timed.stride_bytes = sample->spacing * look->stride_bytes;
    timed.size_bytes = sample->count * timed.stride_bytes;
    struct device_job job = chase_job();
    job.cold_l2 = true;
    chase_add(&job, DEVICE_FILL, &all, 0);
    chase_add(&job, DEVICE_CHASE, &timed, 0);
    return job;
}

/* What is judged wrongly with known probabilities can be corrected in the mean. */
static double correct(double seen, double stray, double slip)
{
    double share = (seen - stray) / (1 - stray - slip);
    return share < 0 ? 0 : share > 1 ? 1 : share;
}

int l2_look(struct probe_context *context, const struct l2_study *l2, const struct l2_look *look,
            struct l2_shares *out_shares, struct err *err)
{
    const struct sample sample = make_sample(look);
    struct device_job *jobs = mem_array(sample.jobs, sizeof *jobs);
    struct device_answer *answers;
    if (!jobs)
        return err_no_memory(err);
    for (size_t i = 0; i < sample.jobs; i++)
        jobs[i] = make_job(context, look, &sample);
    int rc = chase_run(context, jobs, sample.jobs, 1, &answers, err);
    free(jobs);
    if (rc)
        return rc;
    double missed = 0, beyond = 0;
    for (size_t i = 0; i < sample.jobs; i++) {
        missed += chase_share_above(&answers[i].samples[0], l2->miss_threshold);
        beyond += chase_share_above(&answers[i].samples[0], l2->far_threshold);
    }
    device_answers_fini(answers, sample.jobs);
    free(answers);
    missed /= (double)sample.jobs;
    beyond /= (double)sample.jobs;
    out_shares->missed = correct(missed, l2->hit_stray, l2->miss_slip);
    out_shares->beyond_near = correct(beyond, l2->near_stray, 0);
    out_shares->n = (uint32_t)(sample.jobs * sample.count);
    return 0;
}
