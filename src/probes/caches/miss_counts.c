/* Which elements of an array miss in a cache, over many passes. */
#include "probes/caches/miss_counts.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/portable_math.h"
#include "probes/method/chase.h"

/* Jobs of an array begin in so many ways: four orders, each at other elements. */
enum { BEGINNINGS = 32, ORDERS = 4 };

/* Multiples of it, less the whole part, are spread evenly. */
static const double GOLDEN = 0.61803398874989485;

/* The share of strays may be this much even if none was seen. */
static const double STRAY_LEAST = 2e-4;

/* Strays alone give some element too many misses in this share of runs, and all elements together
 * if they are so many standard deviations too many; their share is known within STRAY_ERROR. */
static const double CHANCE = 1e-3, DEVIATIONS = 5, STRAY_ERROR = 0.02;

/* Jobs of one array: whole passes if one fits, else a part of a pass. */
struct parts {
    uint64_t loads;    /* of a job, timed */
    uint32_t per_pass; /* jobs that make one pass; 1: a job has whole passes */
    uint32_t jobs;
};

static struct parts parts_of(const struct miss_counts *counts)
{
    struct parts parts = {.per_pass = 1};
    uint64_t whole = MISS_COUNTS_KEEP / counts->elements;
    if (whole) {
        uint64_t most = (counts->passes + BEGINNINGS - 1) / BEGINNINGS;
        whole = whole < most ? whole : most;
        parts.loads = whole * counts->elements;
        parts.jobs = (uint32_t)((counts->passes + whole - 1) / whole);
        return parts;
    }
    parts.per_pass = (uint32_t)((counts->elements + MISS_COUNTS_KEEP - 1) / MISS_COUNTS_KEEP);
    parts.loads = (counts->elements + parts.per_pass - 1) / parts.per_pass;
    parts.jobs = parts.per_pass * counts->passes;
    return parts;
}

struct device_job miss_counts_job(const struct study *study)
{
    struct device_job job = chase_job();
    job.shared_bytes = study->shared_bytes;
    return job;
}

void miss_counts_time(struct device_job *job, const struct study *study,
                      const struct device_array *array, uint64_t loads)
{
    struct device_step *step = chase_add(job, DEVICE_CHASE, array, loads);
    step->keep = (uint32_t)loads;
    step->split_cycles = (uint32_t)fmax(study->threshold, 1);
}

/* The first timed element of a job: the warm-up ends before it. */
static uint64_t first_of(const struct miss_counts *counts, const struct parts *parts, uint32_t job)
{
    return job % parts->per_pass * parts->loads % counts->elements;
}

static void add_beginning(const struct miss_counts *counts, uint32_t number, struct device_job *job)
{
    struct device_array down = counts->array, half = counts->array;
    down.order = DEVICE_DESCENDING;
    half.size_bytes = counts->elements / 2 * half.stride_bytes;
    half.offset_bytes += (counts->elements - counts->elements / 2) * half.stride_bytes;
    if (counts->plain || counts->elements < 2)
        return;
    if (number & 1)
        chase_add(job, DEVICE_WARM, &down, 0)->start = counts->elements - 1;
    if (number & 2)
        chase_add(job, DEVICE_WARM, &half, 0);
}

static uint64_t start_of(const struct miss_counts *counts, uint32_t beginning)
{
    double turns = beginning / ORDERS * GOLDEN;
    return (uint64_t)((turns - floor(turns)) * (double)counts->elements) % counts->elements;
}

static struct device_job miss_counts_make_job(const struct study *study,
                                              const struct miss_counts *counts,
                                              const struct parts *parts, uint32_t number)
{
    struct device_job job = miss_counts_job(study);
    uint32_t beginning = number / parts->per_pass;
    uint64_t start = counts->plain ? 0 : start_of(counts, beginning);
    uint64_t warm = counts->warm_passes * counts->elements + first_of(counts, parts, number);
    add_beginning(counts, beginning % ORDERS, &job);
    warm -= start < warm ? start : 0;
    chase_add(&job, DEVICE_WARM, &counts->array, warm)->start = start;
    miss_counts_time(&job, study, &counts->array, parts->loads);
    return job;
}

static void miss_counts_add_sample(struct miss_counts *counts, uint64_t first,
                                   const struct device_sample *sample)
{
    for (uint32_t k = 0; k < sample->kept_count; k++)
        counts->misses[(first + k) % counts->elements] += sample->kept[k] > 0;
}

void miss_counts_fini(struct miss_counts *items, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(items[i].misses);
        items[i].misses = NULL;
    }
}

/* Lays out the counters; returns the number of jobs. */
static size_t miss_counts_prepare(struct miss_counts *items, size_t count)
{
    size_t jobs = 0;
    for (size_t i = 0; i < count; i++) {
        struct miss_counts *counts = &items[i];
        counts->elements = counts->array.size_bytes / counts->array.stride_bytes;
        counts->stray = fmax(counts->stray, STRAY_LEAST);
        const struct parts parts = parts_of(counts);
        counts->passes = parts.per_pass > 1
                             ? counts->passes
                             : (uint32_t)(parts.jobs * parts.loads / counts->elements);
        counts->misses = mem_array(counts->elements, sizeof *counts->misses);
        jobs += parts.jobs;
    }
    return jobs;
}

int miss_counts_run(struct probe_context *context, const struct study *study,
                    struct miss_counts *items, size_t count, struct err *err)
{
    struct device_answer *answers = NULL;
    for (size_t i = 0; i < count; i++)
        items[i].misses = NULL;
    size_t all = miss_counts_prepare(items, count), at = 0;
    struct device_job *jobs = mem_array(all, sizeof *jobs);
    for (size_t i = 0; i < count; i++) {
        const struct parts parts = parts_of(&items[i]);
        for (uint32_t k = 0; k < parts.jobs; k++)
            jobs[at++] = miss_counts_make_job(study, &items[i], &parts, k);
    }
    int rc = chase_run(context, jobs, all, study->at_once, &answers, err);
    free(jobs);
    if (rc) {
        miss_counts_fini(items, count);
        return rc;
    }
    at = 0;
    for (size_t i = 0; i < count; i++) {
        const struct parts parts = parts_of(&items[i]);
        for (uint32_t k = 0; k < parts.jobs; k++)
            miss_counts_add_sample(&items[i], first_of(&items[i], &parts, k),
                                   &answers[at++].samples[0]);
    }
    chase_free(answers, all);
    return 0;
}

uint32_t miss_counts_limit(const struct miss_counts *counts)
{
    double passes = counts->passes, stray = counts->stray;
    double chance = portable_pow(1 - stray, passes), above = 1;
    uint32_t limit = 0;
    while (limit <= counts->passes && above * (double)counts->elements > CHANCE) {
        above -= chance;
        chance *= (passes - limit) / (limit + 1.0) * stray / (1 - stray);
        above = fmax(above, limit + 1 > passes * stray ? chance : 0); /* rounding */
        limit++;
    }
    return limit;
}

uint64_t miss_counts_missing(const struct miss_counts *counts, uint32_t limit)
{
    uint64_t missing = 0;
    for (uint64_t i = 0; i < counts->elements; i++)
        missing += counts->misses[i] >= limit;
    return missing;
}

bool miss_counts_any(const struct miss_counts *counts)
{
    double total = 0, strays = (double)counts->elements * counts->passes * counts->stray;
    double deviation = 1 + portable_hypot(sqrt(strays), STRAY_ERROR * strays);
    for (uint64_t i = 0; i < counts->elements; i++)
        total += counts->misses[i];
    return miss_counts_missing(counts, miss_counts_limit(counts)) > 0 ||
           total > strays + DEVIATIONS * deviation;
}
