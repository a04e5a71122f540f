/* Hits and misses of the caches of global memory: L1 data, texture and read-only.
 *
 * Several SMs run at once, each with its own memory: a cache that SMs share must not hold for one
 * SM what another has loaded. Every load is compared with a load of the same line past the cache,
 * by the same SM, since SMs and slices of L2 are not equally far from each other. */
#include "probes/method/global_level.h"

#include <math.h>
#include <stdlib.h>

#include "probes/method/chase.h"
#include "probes/method/level.h"
#include "probes/method/timer.h"

enum {
    WORD_BYTES = 8,
    SMALL_BYTES = 256,  /* fits into any cache */
    SMALL_LOADS = 1024, /* timed per SM */
    SMALL_PASSES = 3,   /* to warm it */
    APART_BYTES = 1088, /* more than any line, and not always in the same set */
    APART_COUNT = 128,
    APART_AT = 4096, /* behind the small array */
    SPAN_BYTES = APART_AT + APART_BYTES * APART_COUNT,
};

/* Cached loads take at most this share of the time of the same loads past the cache. */
static const double SUPPORTED_SHARE = 0.9;

/* Misses slower than this many times the slowest loads of the next level were served by a further
 * level. */
static const double FURTHER = 1.2;

/* Loads the small array by the path and past the cache, then lines far apart that are in L2 but in
 * no other cache yet, and these once more past the cache. */
static struct device_job make_job(const struct study *study, size_t number, int32_t sm)
{
    const struct device_array small = {.path = study->path,
                                       .offset_bytes = number * SPAN_BYTES,
                                       .size_bytes = SMALL_BYTES,
                                       .stride_bytes = WORD_BYTES};
    const struct device_array apart = {.path = study->path,
                                       .offset_bytes = number * SPAN_BYTES + APART_AT,
                                       .size_bytes = APART_BYTES * APART_COUNT,
                                       .stride_bytes = APART_BYTES};
    struct device_array past = small, apart_past = apart;
    struct device_job job = chase_job();
    past.path = apart_past.path = DEVICE_GLOBAL_CG;
    job.agents[0].sm = sm;
    chase_add(&job, DEVICE_WARM, &small, SMALL_PASSES * SMALL_BYTES / WORD_BYTES);
    chase_add(&job, DEVICE_CHASE, &small, SMALL_LOADS);
    chase_add(&job, DEVICE_CHASE, &past, SMALL_LOADS);
    chase_add(&job, DEVICE_WARM, &apart_past, 0);
    chase_add(&job, DEVICE_CHASE, &apart, 0);
    chase_add(&job, DEVICE_CHASE, &apart_past, 0);
    return job;
}

struct global_pools {
    struct pool hits, past;         /* the small array */
    struct pool misses, apart_past; /* the lines apart */
};

static int run_jobs(struct probe_context *context, const struct study *study,
                    struct global_pools *pools, struct err *err)
{
    struct device_job jobs[LEVEL_SMS];
    struct device_answer *answers;
    uint64_t memory = device_limits(context->device)->global_bytes;
    size_t count = level_sm_count(context, LEVEL_SMS);
    if (memory && memory / SPAN_BYTES < count)
        count = memory < SPAN_BYTES ? 1 : (size_t)(memory / SPAN_BYTES);
    for (size_t i = 0; i < count; i++)
        jobs[i] = make_job(study, i, level_sm(context, i, count));
    int rc = chase_run(context, jobs, count, 0, &answers, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < count; i++) {
        pool_add(&pools->hits, &answers[i].samples[0]);
        pool_add(&pools->past, &answers[i].samples[1]);
        pool_add(&pools->misses, &answers[i].samples[2]);
        pool_add(&pools->apart_past, &answers[i].samples[3]);
    }
    device_answers_fini(answers, count);
    free(answers);
    return 0;
}

/* With a tiny L2, some of the misses go on to main memory; they do not count. The path may take
 * longer than the one past the cache. */
static void cut_further(struct pool *misses, const struct pool *past)
{
    double longer = pool_quantile(misses, 0.25) - pool_quantile(past, 0.25);
    pool_cut(misses, FURTHER * (pool_quantile(past, 0.95) + fmax(0, longer)));
}

int global_level_measure(struct probe_context *context, struct study *study, struct err *err)
{
    struct global_pools *pools = calloc(1, sizeof *pools);
    if (!pools)
        return err_no_memory(err);
    int rc = run_jobs(context, study, pools, err);
    if (rc)
        goto out;
    cut_further(&pools->misses, &pools->apart_past);
    level_settle(study, &pools->hits, &pools->misses);
    double hit = study->hit_cycles - timer_overhead(context, study->path);
    double past = pool_lower_mean(&pools->past, 1 - pool_centre(&pools->past).spike_share) -
                  timer_overhead(context, DEVICE_GLOBAL_CG);
    study->supported = hit < SUPPORTED_SHARE * past;
    rc = study->supported ? level_check(study, err) : 0;
out:
    free(pools);
    return rc;
}
