/* How much of an oversized array stays resident: capacity and line without regard to the
 * replacement policy.
 *
 * An array larger than the cache is loaded, then single elements are timed: the share of hits
 * times the array is what the cache holds, whatever was evicted in which order. Each job times
 * only a few elements, since every miss evicts something; the jobs' elements together lie evenly
 * over the array, one job per SM at a time.
 *
 * Done with one element per fetch unit this counts bytes. Done with elements so far apart that
 * each needs a line of its own it counts tags. Bytes over tags is the line. */
#include "probes/resident.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "probes/chase.h"

enum {
    JOBS_MIN = 64,
    JOBS_MAX = 1024,
    WARM_PASSES = 2, /* a policy that begins to evict early fills its last ways late */
    TAG_ROUNDS = 2,
};

/* Loads spent on one resident share: bounds the time on a simulated GPU; a real one needs
 * milliseconds. */
static const double LOADS_BUDGET = 2e6;

/* The array's size over what is thought to fit. */
static const double OVERSIZE = 1.5;

/* Elements this many fetch units apart lie in lines of their own, and, the factor being prime, in
 * all sets of the cache, unless the number of sets is a multiple of it: hence two of them. */
static const uint64_t TAG_STRIDES[] = {17, 19};

struct share {
    double hits;  /* 0..1, corrected for misjudged latencies */
    double error; /* standard error if the elements were independent: an upper bound */
    uint32_t n;
};

static size_t plan_jobs(uint64_t elements)
{
    double jobs = LOADS_BUDGET / ((double)elements * WARM_PASSES);
    return jobs < JOBS_MIN ? JOBS_MIN : jobs > JOBS_MAX ? JOBS_MAX : (size_t)jobs;
}

/* Hits are misjudged with probability stray, misses with probability slip. */
static double correct(const struct study *study, double seen)
{
    double hits = (seen - study->slip_share) / (1 - study->stray_share - study->slip_share);
    return hits < 0 ? 0 : hits > 1 ? 1 : hits;
}

/* The share of `elements` elements, `stride` apart, that are still cached after loading all of
 * them; `few` are timed per job. */
static int measure_share(struct probe_context *context, const struct study *study,
                         uint64_t elements, uint64_t stride, uint64_t few, struct share *out_share,
                         struct err *err)
{
    size_t count = plan_jobs(elements);
    struct device_job *jobs = mem_array(count, sizeof *jobs);
    struct device_answer *answers = NULL;
    if (!jobs)
        return err_no_memory(err);
    uint64_t gap = elements / few;
    for (size_t i = 0; i < count; i++) {
        const struct device_array all = {
            .path = study->path, .size_bytes = elements * stride, .stride_bytes = stride};
        const struct device_array picked = {.path = study->path,
                                            .offset_bytes = i * gap / count * stride,
                                            .size_bytes = few * gap * stride,
                                            .stride_bytes = gap * stride};
        jobs[i] = chase_job();
        chase_add(&jobs[i], DEVICE_WARM, &all, WARM_PASSES * elements);
        chase_add(&jobs[i], DEVICE_CHASE, &picked, few);
    }
    int rc = chase_run(context, jobs, count, 0, &answers, err);
    free(jobs);
    if (rc)
        return rc;
    double seen = 0;
    for (size_t i = 0; i < count; i++)
        seen += 1 - chase_share_above(&answers[i].samples[0], study->threshold);
    seen /= (double)count;
    device_answers_fini(answers, count);
    free(answers);
    out_share->hits = correct(study, seen);
    out_share->n = (uint32_t)(count * few);
    out_share->error = sqrt(seen * (1 - seen) / out_share->n);
    return 0;
}

/* Tags, as the larger count of the two strides. First asked of as many elements as there could be
 * tags, then of as many as the answer says: precision comes with a hit share near 2/3. */
static int measure_tags(struct probe_context *context, struct study *study, struct err *err)
{
    double tags = study->resident_bytes / (double)study->fetch_bytes;
    for (int round = 0; round < TAG_ROUNDS; round++) {
        uint64_t elements = (uint64_t)ceil(OVERSIZE * tags) + 1;
        uint64_t few = elements / 128 ? elements / 128 : 1;
        double most = 0;
        for (size_t i = 0; i < sizeof TAG_STRIDES / sizeof *TAG_STRIDES; i++) {
            struct share share;
            int rc = measure_share(context, study, elements, TAG_STRIDES[i] * study->fetch_bytes,
                                   few, &share, err);
            if (rc)
                return rc;
            if (share.hits * (double)elements > most)
                most = share.hits * (double)elements;
        }
        if (most < 1)
            return err_set(err, -ENODATA, "nothing stays resident in the cache");
        tags = most;
    }
    study->tags = tags;
    return 0;
}

int resident_measure(struct probe_context *context, struct study *study, struct err *err)
{
    uint64_t unit = study->fetch_bytes;
    uint64_t elements =
        (uint64_t)ceil(OVERSIZE * (double)study->region_high_bytes / (double)unit) + 1;
    uint64_t few = elements / 256 ? elements / 256 : 1;
    struct share share;
    int rc = measure_share(context, study, elements, unit, few, &share, err);
    if (rc)
        return rc;
    double span = (double)(elements * unit);
    study->resident_bytes = share.hits * span;
    study->resident_error = share.error * span;
    study->resident_n = share.n;
    if (study->resident_bytes < (double)unit)
        return err_set(err, -ENODATA, "nothing stays resident in the cache");
    rc = measure_tags(context, study, err);
    if (rc)
        return rc;
    study->line_exact = study->resident_bytes / study->tags;
    uint64_t units = (uint64_t)llround(study->line_exact / (double)unit);
    study->line_bytes = (units ? units : 1) * unit;
    /* While sampling, each miss evicts an element that a later sample may look for. */
    double misses = (double)(few - 1) * (1 - share.hits) / 2;
    study->resident_bytes *= 1 + misses / study->tags;
    return 0;
}
