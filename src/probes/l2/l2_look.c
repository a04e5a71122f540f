/* Fills L2 with an array and times a sample of it.
 *
 * The elements of the sample are evenly spaced, so that consecutive loads share pages and the TLBs
 * cost little. The last element is timed first: a miss brings a line in and evicts an older one,
 * which was timed already or is gone anyway. */
#include "probes/l2/l2_look.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "probes/method/chase.h"

enum {
    JOBS_MAX = 1024,
    COUNT_MIN = 4,  /* the least number of elements that a job times */
    ERROR_JOBS = 8, /* fewer jobs do not show how they scatter */
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

/* A part of the array, in elements: every `spacing`-th of the first `window`. Each job draws its
 * spacing: if it were close to a multiple of the number of sets, the sample would lie in few sets,
 * where each miss evicts the element that is timed next. */
struct sample {
    uint64_t window, spacing_min;
    size_t jobs;
};

static struct sample make_sample(const struct l2_look *look)
{
    uint64_t elements = look->sizes[0] / look->stride_bytes, most = elements / look->part;
    struct sample sample = {.window = (uint64_t)(look->window * (double)elements), .jobs = 1};
    sample.window = sample.window ? sample.window : 1;
    most = most > COUNT_MIN ? most : COUNT_MIN;
    uint64_t count = most < look->loads ? most : look->loads;
    sample.spacing_min = count < sample.window ? sample.window / count : 1;
    /* With a large array one job gives enough loads; filling it is the expensive part. */
    if (most < look->loads) {
        uint64_t jobs = look->loads * sample.spacing_min * 3 / 2 / sample.window + 1;
        sample.jobs = jobs < JOBS_MAX ? (size_t)jobs : JOBS_MAX;
    }
    return sample;
}

static uint64_t draw_spacing(struct probe_context *context, const struct sample *sample)
{
    uint64_t least = sample->spacing_min;
    return least > 1 ? prime_from(least + probe_seed(context) % least) : 1;
}

/* Begins at a random one of the first elements, so that all elements of the window are equally
 * likely. */
static struct device_array timed_array(const struct l2_look *look, uint64_t window,
                                       uint64_t spacing, uint64_t shift)
{
    uint64_t first = shift % (spacing < window ? spacing : window);
    uint64_t count = (window - 1 - first) / spacing + 1, stride = spacing * look->stride_bytes;
    return (struct device_array){.path = DEVICE_GLOBAL_CG,
                                 .offset_bytes = first * look->stride_bytes,
                                 .size_bytes = count * stride,
                                 .stride_bytes = stride,
                                 .order = DEVICE_DESCENDING};
}

/* Each size times other elements than the size before. */
static struct device_job make_job(struct probe_context *context, const struct l2_look *look,
                                  const struct sample *sample)
{
    struct device_job job = chase_job();
    uint64_t spacing = draw_spacing(context, sample), filled = 0;
    uint64_t shift = probe_seed(context) >> 1;
    job.cold_l2 = true;
    job.agents[0].sm = look->sm;
    for (size_t i = 0; i < look->count; i++) {
        const struct device_array more = {.path = DEVICE_GLOBAL_CG,
                                          .offset_bytes = filled,
                                          .size_bytes = look->sizes[i] - filled,
                                          .stride_bytes = look->stride_bytes};
        const struct device_array timed = timed_array(look, sample->window, spacing, shift + i);
        chase_add(&job, DEVICE_FILL, &more, 0);
        chase_add(&job, DEVICE_CHASE, &timed, 0)->start = timed.size_bytes / timed.stride_bytes - 1;
        filled = look->sizes[i];
    }
    return job;
}

/* The error of misjudged loads is known on average, so it can be corrected. */
static double correct(double seen, double stray, double slip)
{
    double share = (seen - stray) / (1 - stray - slip);
    return share < 0 ? 0 : share > 1 ? 1 : share;
}

/* Standard error of a share: from the scatter of the jobs, or from the number of loads if there are
 * too few jobs. (Evenly spread samples scatter less than their number suggests if lines are evicted
 * in order.) */
static double share_error(const struct device_answer *answers, size_t jobs, size_t size,
                          double threshold)
{
    double sum = 0, squares = 0, loads = 0;
    for (size_t i = 0; i < jobs; i++) {
        const struct device_sample *sample = &answers[i].samples[size];
        double share = chase_share_above(sample, threshold);
        sum += (double)sample->loads * share;
        squares += (double)sample->loads * share * share;
        loads += (double)sample->loads;
    }
    double mean = sum / loads, scatter = fmax(squares / loads - mean * mean, 0);
    return jobs < ERROR_JOBS ? sqrt(mean * (1 - mean) / loads)
                             : fmax(sqrt(scatter / (double)(jobs - 1)), 1 / loads);
}

struct l2_shares l2_shares_of(const struct l2_study *l2, const struct device_answer *answers,
                              size_t jobs, size_t size)
{
    double missed = 0, beyond = 0, far_missed = 0;
    uint64_t loads = 0;
    for (size_t i = 0; i < jobs; i++) {
        const struct device_sample *sample = &answers[i].samples[size];
        double weight = (double)sample->loads;
        missed += weight * chase_share_above(sample, l2->miss_threshold);
        beyond += weight * chase_share_above(sample, l2->far_threshold);
        far_missed += weight * chase_share_above(sample, l2->far_miss_threshold);
        loads += sample->loads;
    }
    struct l2_shares shares = {
        .missed = correct(missed / (double)loads, l2->hit_stray, l2->miss_slip),
        /* The home of what the near part lacks is any part; only loads that another part serves can
         * be taken for near ones. */
        .beyond_near =
            correct(beyond / (double)loads, l2->near_stray, l2->far_slip * (1 - 1.0 / l2->parts)),
        .n = (uint32_t)loads,
    };
    shares.far_missed = l2->copies ? far_missed / (double)loads : shares.missed;
    shares.resident = 1 - (l2->copies ? shares.beyond_near : shares.missed);
    shares.error =
        share_error(answers, jobs, size, l2->copies ? l2->far_threshold : l2->miss_threshold);
    return shares;
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
    for (size_t i = 0; i < look->count; i++)
        out_shares[i] = l2_shares_of(l2, answers, sample.jobs, i);
    device_answers_fini(answers, sample.jobs);
    free(answers);
    return 0;
}
