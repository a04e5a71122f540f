/* Hit and miss latency of a cache, and the threshold between them. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cpd/cpd.h"
#include "probes/chase.h"

enum {
    WORD_BYTES = 8,
    SMALL_BYTES = 256,  /* fits into any cache */
    SMALL_LOADS = 2048, /* timed per SM */
    APART_BYTES = 1024, /* further apart than any line: every first touch misses */
    APART_COUNT = 512,
    JOBS = 4, /* SMs that each kind of job runs on */

    CONSTANT_STRIDE = 64,
    DOUBLINGS = 10,
    NEIGHBOUR_OFFSET = 16 * 1024,
    NEIGHBOUR_BYTES = 1024,
    NEIGHBOUR_STRIDE = 256,
};

/* Distance of the quartiles of a normal distribution, in standard deviations. */
static const double QUARTILES_SIGMA = 1.349;

/* Loads that are cached take at most this share of one that goes to the next level. */
static const double SUPPORTED_SHARE = 0.9;

/* Misses that take so many times the nearest level were served by a further one. */
static const double FURTHER = 1.4;

/* A level lies between two others when it takes at most this share of the one behind. */
static const double BETWEEN_SHARE = 0.75;

/* A size does not fit when this share of its loads is slower, spikes aside. */
static const double SLOWER_SHARE = 0.1;

static double median_of(const struct device_answer *answers, size_t count)
{
    double medians[JOBS];
    for (size_t i = 0; i < count; i++)
        medians[i] = chase_quantile(&answers[i].samples[0], 0.5);
    return cpd_median(medians, count);
}

static double share_of(const struct device_answer *answers, size_t count, double cycles)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += chase_share_above(&answers[i].samples[0], cycles);
    return sum / (double)count;
}

/* From JOBS answers of loads that hit and as many of loads that miss. The quartiles give the
 * scatter of ordinary loads; what lies far beyond is a spike. nearest: latency of the nearest
 * level behind; misses may go further. */
static void settle(struct study *study, const struct device_answer *hits,
                   const struct device_answer *misses, double nearest)
{
    double sigmas[JOBS];
    for (size_t i = 0; i < JOBS; i++)
        sigmas[i] = (chase_quantile(&hits[i].samples[0], 0.75) -
                     chase_quantile(&hits[i].samples[0], 0.25)) /
                    QUARTILES_SIGMA;
    study->hit_cycles = median_of(hits, JOBS);
    study->miss_cycles = median_of(misses, JOBS);
    if (study->miss_cycles > FURTHER * nearest)
        study->miss_cycles = nearest;
    study->threshold = (study->hit_cycles + study->miss_cycles) / 2;
    study->supported = study->hit_cycles < SUPPORTED_SHARE * study->miss_cycles;
    study->sigma_cycles = cpd_median(sigmas, JOBS);
    double spikes = 0;
    for (size_t i = 0; i < JOBS; i++)
        spikes += chase_spike_share(&hits[i].samples[0], study->hit_cycles, study->sigma_cycles);
    study->spike_share = spikes / JOBS;
    study->stray_share = share_of(hits, JOBS, study->threshold);
    study->slip_share = 1 - share_of(misses, JOBS, study->threshold);
}

/* Three kinds of jobs: loads that hit (a small array twice), loads that miss the SM's cache but
 * not L2 (brought there by .cg, then touched once), and .cg itself: where that is no slower than
 * the path under study, the path is not cached before L2 (thesis 4.2.1). In a tiny L2 some of the
 * misses go on to main memory, so the threshold hangs on .cg. */
static int measure_global(struct probe_context *context, struct study *study, struct err *err)
{
    const struct device_array small = {
        .path = study->path, .size_bytes = SMALL_BYTES, .stride_bytes = WORD_BYTES};
    const struct device_array apart = {.path = study->path,
                                       .size_bytes = (uint64_t)APART_BYTES * APART_COUNT,
                                       .stride_bytes = APART_BYTES};
    struct device_array in_l2 = small, apart_in_l2 = apart;
    in_l2.path = apart_in_l2.path = DEVICE_GLOBAL_CG;
    struct device_job jobs[3 * JOBS];
    for (size_t i = 0; i < JOBS; i++) {
        jobs[i] = chase_twice(&small, SMALL_LOADS);
        jobs[JOBS + i] = chase_job();
        chase_add(&jobs[JOBS + i], DEVICE_WARM, &apart_in_l2, 0);
        chase_add(&jobs[JOBS + i], DEVICE_CHASE, &apart, 0);
        jobs[2 * JOBS + i] = chase_twice(&in_l2, SMALL_LOADS);
    }
    struct device_answer *answers;
    int rc = chase_run(context, jobs, 3 * JOBS, 0, &answers, err);
    if (rc)
        return rc;
    settle(study, answers, answers + JOBS, median_of(answers + 2 * JOBS, JOBS));
    device_answers_fini(answers, 3 * JOBS);
    free(answers);
    return 0;
}

/* SM 0 loads a piece of constant memory that nobody has touched yet; SM i's first touch of it then
 * is served by L1.5 where the two share one, and by L2 where they do not (the bank ends at 64 KiB,
 * so overfilling may be impossible). One piece per SM i, each used once. */
static int measure_neighbours(struct probe_context *context, struct study *study, struct err *err)
{
    const struct device_limits *limits = device_limits(context->device);
    uint64_t pieces = limits->constant_bytes > NEIGHBOUR_OFFSET
                          ? (limits->constant_bytes - NEIGHBOUR_OFFSET) / NEIGHBOUR_BYTES
                          : 0;
    for (uint32_t i = 1; i < limits->sm_count && i < STUDY_NEIGHBOURS_MAX && i < pieces; i++) {
        const struct device_array piece = {.path = DEVICE_CONSTANT,
                                           .offset_bytes =
                                               NEIGHBOUR_OFFSET + (uint64_t)i * NEIGHBOUR_BYTES,
                                           .size_bytes = NEIGHBOUR_BYTES,
                                           .stride_bytes = NEIGHBOUR_STRIDE};
        struct device_job job = chase_job();
        job.agent_count = 2;
        job.agents[0].sm = 0;
        job.agents[1].sm = (int32_t)i;
        chase_add(&job, DEVICE_WARM, &piece, 0);
        chase_add(&job, DEVICE_CHASE, &piece, 0)->agent = 1;
        struct device_answer *answers;
        int rc = chase_run(context, &job, 1, 1, &answers, err);
        if (rc)
            return rc;
        study->neighbour_cycles[i] = chase_quantile(&answers[0].samples[0], 0.5);
        study->neighbour_count = i + 1;
        device_answers_fini(answers, 1);
        free(answers);
    }
    return 0;
}

/* Constant memory of growing size, each twice; and .cg, which tells what L2 takes. The first size
 * of which part of the loads is slower shows what L1 misses cost: the median of the slower ones. */
static int measure_constant_l1(struct probe_context *context, struct study *study, struct err *err)
{
    const struct device_array small = {
        .path = DEVICE_CONSTANT, .size_bytes = SMALL_BYTES, .stride_bytes = WORD_BYTES};
    struct device_array in_l2 = small;
    in_l2.path = DEVICE_GLOBAL_CG;
    struct device_job jobs[2 * JOBS + DOUBLINGS];
    size_t count = 2 * JOBS;
    for (size_t i = 0; i < JOBS; i++) {
        jobs[i] = chase_twice(&small, SMALL_LOADS);
        jobs[JOBS + i] = chase_twice(&in_l2, SMALL_LOADS);
    }
    for (uint64_t size = 2 * SMALL_BYTES; size <= study->limit_bytes && count < COUNT_OF(jobs);
         size *= 2) {
        const struct device_array larger = {
            .path = DEVICE_CONSTANT, .size_bytes = size, .stride_bytes = CONSTANT_STRIDE};
        jobs[count++] = chase_twice(&larger, SMALL_LOADS);
    }
    struct device_answer *answers;
    int rc = chase_run(context, jobs, count, 1, &answers, err);
    if (rc)
        return rc;
    settle(study, answers, answers + JOBS, INFINITY);
    double cut = study->hit_cycles + 5 * study->sigma_cycles + 2;
    for (size_t i = 2 * JOBS; i < count; i++) {
        const struct device_sample *sample = &answers[i].samples[0];
        if (chase_share_above(sample, cut) < study->spike_share + SLOWER_SHARE)
            continue;
        double usual = chase_quantile_above(sample, cut, 0.5);
        double nearest = chase_quantile_above(sample, cut, 0.25);
        usual = nearest < BETWEEN_SHARE * usual ? nearest : usual; /* L2 in two parts */
        study->miss_cycles = fmin(usual, study->miss_cycles);
        break;
    }
    context->studies[STUDY_CONSTANT_L15].miss_cycles = median_of(answers + JOBS, JOBS);
    study->threshold = (study->hit_cycles + study->miss_cycles) / 2;
    study->stray_share = study->slip_share = share_of(answers, JOBS, study->threshold);
    device_answers_fini(answers, count);
    free(answers);
    return 0;
}

/* What an L1 miss costs is a hit in L1.5, if it is clearly less than L2 takes. Loads of both levels
 * scatter alike. */
static int measure_constant_l15(struct probe_context *context, struct study *study, struct err *err)
{
    const struct study *before = &context->studies[STUDY_CONSTANT_L1];
    int rc = study_reach(context, STUDY_CONSTANT_L1, STUDY_LEVEL, err);
    if (rc || !before->supported)
        return rc;
    study->hit_cycles = before->miss_cycles;
    study->threshold = (study->hit_cycles + study->miss_cycles) / 2;
    study->supported = study->hit_cycles < BETWEEN_SHARE * study->miss_cycles;
    study->sigma_cycles = before->sigma_cycles;
    study->spike_share = study->stray_share = before->spike_share;
    study->slip_share = 0;
    return 0;
}

int level_measure(struct probe_context *context, struct study *study, struct err *err)
{
    struct err own = {0};
    int rc;
    if (study->id == STUDY_CONSTANT_L1) {
        /* First of all, while nobody has touched the memory that this is about. */
        rc = measure_neighbours(context, &context->studies[STUDY_CONSTANT_L15], &own);
        if (!rc)
            rc = measure_constant_l1(context, study, &own);
    } else if (study->id == STUDY_CONSTANT_L15)
        rc = measure_constant_l15(context, study, &own);
    else
        rc = measure_global(context, study, &own);
    if (rc == -ENOTSUP) { /* the GPU has no such path: an answer */
        study->supported = false;
        return 0;
    }
    if (rc)
        *err = own;
    return rc;
}
