/* The stages of a cache's study: hit and miss, fetch unit, region of the size. */
#include "probes/study.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cpd/cpd.h"
#include "probes/chase.h"
#include "probes/resident.h"
#include "probes/sweep.h"

enum {
    WORD_BYTES = 8,     /* the smallest stride: chases follow stored 64-bit pointers */
    SMALL_BYTES = 256,  /* fits into any cache */
    SMALL_LOADS = 2048, /* timed per SM */
    APART_BYTES = 1024, /* further apart than any line: every first touch misses */
    APART_COUNT = 128,  /* few enough to stay in the smallest L2 */
    LEVEL_JOBS = 4,     /* SMs that each kind of level job runs on */
    FETCH_JOBS = 4,
    FETCH_BYTES = 16 * 1024, /* chased word by word, cold */
    REGION_ROUND = 16,       /* sizes per round of the narrowing search */
    REGION_ROUNDS = 2,
};

/* The search by doubling ends here: no L1 of any GPU is near. */
static const uint64_t REGION_MAX_BYTES = 4 * 1024 * 1024;

/* A size does not fit when this share of its loads misses, strays aside. */
static const double OVER_SHARE = 0.02;

/* Distance of the quartiles of a normal distribution, in standard deviations. */
static const double QUARTILES_SIGMA = 1.349;

/* Loads that are cached take at most this share of one that goes to L2. */
static const double SUPPORTED_SHARE = 0.9;

static double median_of(const struct device_answer *answers, size_t count)
{
    double medians[LEVEL_JOBS];
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

/* Quartiles give the scatter of ordinary loads; what lies far beyond is a spike. */
static void measure_scatter(const struct device_answer *answers, size_t count, struct study *study)
{
    double sigmas[LEVEL_JOBS];
    for (size_t i = 0; i < count; i++)
        sigmas[i] = (chase_quantile(&answers[i].samples[0], 0.75) -
                     chase_quantile(&answers[i].samples[0], 0.25)) /
                    QUARTILES_SIGMA;
    study->sigma_cycles = cpd_median(sigmas, count);
    study->spike_share = share_of(answers, count, study->hit_cycles + 5 * study->sigma_cycles + 2);
}

/* Three kinds of jobs: loads that hit (a small array twice), loads that miss the SM's cache but
 * not L2 (brought there by .cg, then touched once), and .cg itself: where that is no slower than
 * the path under study, the path is not cached before L2 (thesis 4.2.1). */
static int measure_level(struct probe_context *context, struct study *study, struct err *err)
{
    const struct device_array small = {
        .path = study->path, .size_bytes = SMALL_BYTES, .stride_bytes = WORD_BYTES};
    const struct device_array apart = {.path = study->path,
                                       .size_bytes = (uint64_t)APART_BYTES * APART_COUNT,
                                       .stride_bytes = APART_BYTES};
    struct device_array in_l2 = small, apart_in_l2 = apart;
    in_l2.path = apart_in_l2.path = DEVICE_GLOBAL_CG;
    struct device_job jobs[3 * LEVEL_JOBS];
    for (size_t i = 0; i < LEVEL_JOBS; i++) {
        jobs[i] = chase_twice(&small, SMALL_LOADS);
        jobs[LEVEL_JOBS + i] = chase_job();
        chase_add(&jobs[LEVEL_JOBS + i], DEVICE_WARM, &apart_in_l2, 0);
        chase_add(&jobs[LEVEL_JOBS + i], DEVICE_CHASE, &apart, 0);
        jobs[2 * LEVEL_JOBS + i] = chase_twice(&in_l2, SMALL_LOADS);
    }
    struct device_answer *answers;
    int rc = chase_run(context, jobs, 3 * LEVEL_JOBS, 0, &answers, err);
    if (rc)
        return rc;
    double l2_cycles = median_of(answers + 2 * LEVEL_JOBS, LEVEL_JOBS);
    study->hit_cycles = median_of(answers, LEVEL_JOBS);
    /* In a tiny L2 some of the misses go on to main memory: the threshold lies below the nearest
     * level behind. */
    study->miss_cycles = fmin(median_of(answers + LEVEL_JOBS, LEVEL_JOBS), l2_cycles);
    study->threshold = (study->hit_cycles + study->miss_cycles) / 2;
    study->supported =
        study->hit_cycles < SUPPORTED_SHARE * l2_cycles && study->hit_cycles < study->miss_cycles;
    study->stray_share = share_of(answers, LEVEL_JOBS, study->threshold);
    measure_scatter(answers, LEVEL_JOBS, study);
    study->slip_share = 1 - share_of(answers + LEVEL_JOBS, LEVEL_JOBS, study->threshold);
    device_answers_fini(answers, 3 * LEVEL_JOBS);
    free(answers);
    return 0;
}

/* Counts how often each distance, in words, lies between neighbouring misses. */
static void count_distances(const struct device_sample *sample, double threshold,
                            uint32_t *distances, size_t limit)
{
    size_t last = SIZE_MAX;
    for (size_t i = 0; i < sample->kept_count; i++) {
        if (sample->kept[i] <= threshold)
            continue;
        if (last != SIZE_MAX && i - last < limit)
            distances[i - last]++;
        last = i;
    }
}

/* A cold chase word by word misses once per fetch unit. A stray latency breaks a few distances
 * up; the most frequent one is the unit. */
static int measure_fetch(struct probe_context *context, struct study *study, struct err *err)
{
    enum { WORDS = FETCH_BYTES / WORD_BYTES, DISTANCE_MAX = 1024 / WORD_BYTES + 1 };
    const struct device_array words = {
        .path = study->path, .size_bytes = FETCH_BYTES, .stride_bytes = WORD_BYTES};
    struct device_array in_l2 = words;
    in_l2.path = DEVICE_GLOBAL_CG;
    struct device_job jobs[FETCH_JOBS];
    for (size_t i = 0; i < FETCH_JOBS; i++) {
        jobs[i] = chase_job();
        chase_add(&jobs[i], DEVICE_WARM, &in_l2, 0);
        chase_add(&jobs[i], DEVICE_CHASE, &words, 0)->keep = WORDS;
    }
    struct device_answer *answers;
    int rc = chase_run(context, jobs, FETCH_JOBS, 0, &answers, err);
    if (rc)
        return rc;
    uint32_t distances[DISTANCE_MAX] = {0}, all = 0;
    size_t best = 0;
    for (size_t i = 0; i < FETCH_JOBS; i++)
        count_distances(&answers[i].samples[0], study->threshold, distances, DISTANCE_MAX);
    for (size_t d = 0; d < DISTANCE_MAX; d++) {
        all += distances[d];
        if (distances[d] > distances[best])
            best = d;
    }
    device_answers_fini(answers, FETCH_JOBS);
    free(answers);
    if (!best)
        return err_set(err, -ENODATA, "a cold word-by-word chase shows no regular misses");
    study->fetch_bytes = best * WORD_BYTES;
    study->fetch_agreement = (double)distances[best] / all;
    return 0;
}

/* The first index from which on sizes are over: the split that contradicts the fewest sizes, so
 * that a single size with conflict misses does not count. */
static size_t first_over(const double *shares, size_t count, double limit)
{
    size_t best = count, wrong = 0, least;
    for (size_t i = 0; i < count; i++)
        wrong += shares[i] > limit;
    least = wrong; /* split at count: everything should fit */
    for (size_t split = count; split-- > 0;) {
        wrong += shares[split] > limit ? (size_t)-1 : 1;
        if (wrong <= least) {
            least = wrong;
            best = split;
        }
    }
    return best;
}

/* Doubling (thesis 3.2), all powers of an octave group at once: one size per SM. */
static int search_octave(struct probe_context *context, struct study *study, double limit,
                         struct err *err)
{
    enum { GROUP = 6 };
    const struct device_limits *limits = device_limits(context->device);
    uint64_t highest = study->path == DEVICE_CONSTANT ? limits->constant_bytes : REGION_MAX_BYTES;
    uint64_t size = 4 * study->fetch_bytes;
    study->region_low_bytes = study->fetch_bytes;
    while (size <= highest) {
        uint64_t sizes[GROUP];
        double shares[GROUP];
        size_t count = 0;
        for (; count < GROUP && size <= highest; size *= 2)
            sizes[count++] = size;
        int rc = sweep_sizes(context, study, sizes, count, study->fetch_bytes, shares, err);
        if (rc)
            return rc;
        size_t over = first_over(shares, count, limit);
        if (over > 0)
            study->region_low_bytes = sizes[over - 1];
        if (over < count) {
            study->region_high_bytes = sizes[over];
            return 0;
        }
    }
    study->region_high_bytes = study->region_low_bytes;
    study->unbounded = true;
    return 0;
}

/* The thesis's binary search, with as many parts as a round has sizes. */
static int narrow_region(struct probe_context *context, struct study *study, double limit,
                         struct err *err)
{
    for (int round = 0; round < REGION_ROUNDS; round++) {
        uint64_t unit = study->fetch_bytes;
        uint64_t units = (study->region_high_bytes - study->region_low_bytes) / unit;
        uint64_t sizes[REGION_ROUND];
        double shares[REGION_ROUND];
        size_t count = units - 1 < REGION_ROUND ? (size_t)(units - 1) : REGION_ROUND;
        if (units < 2)
            break;
        for (size_t i = 0; i < count; i++)
            sizes[i] = study->region_low_bytes + (i + 1) * units / (count + 1) * unit;
        int rc = sweep_sizes(context, study, sizes, count, unit, shares, err);
        if (rc)
            return rc;
        size_t over = first_over(shares, count, limit);
        if (over < count)
            study->region_high_bytes = sizes[over];
        if (over > 0)
            study->region_low_bytes = sizes[over - 1];
    }
    return 0;
}

static int measure_region(struct probe_context *context, struct study *study, struct err *err)
{
    double limit = study->stray_share + OVER_SHARE;
    int rc = search_octave(context, study, limit, err);
    return rc || study->unbounded ? rc : narrow_region(context, study, limit, err);
}

int study_reach(struct probe_context *context, enum device_path path, enum study_stage stage,
                struct err *err)
{
    static int (*const stages[])(struct probe_context *, struct study *, struct err *) = {
        [STUDY_LEVEL] = measure_level,
        [STUDY_FETCH] = measure_fetch,
        [STUDY_REGION] = measure_region,
        [STUDY_RESIDENT] = resident_measure,
    };
    struct study *study = &context->studies[path];
    study->path = path;
    while (study->stage < stage) {
        bool ended = (study->stage >= STUDY_LEVEL && !study->supported) ||
                     (study->stage >= STUDY_REGION && study->unbounded);
        if (ended)
            return 0;
        int rc = stages[study->stage + 1](context, study, err);
        if (rc)
            return rc;
        study->stage++;
    }
    return 0;
}
