/* The prefetch of L2, by the misses of a cold chase in ascending order ([M] 4.6).
 *
 * Each fetch unit is loaded once. Without a prefetch every load misses. With one the first loads
 * miss, then one load per prefetched stretch. The chase is made three times in different memory. A
 * load hits if it did so twice, and misses for certain if it did so three times: a stray latency,
 * or the first load of a page, is slow at another place each time. */
#include "probes/l2/l2_prefetch.h"

#include <stdlib.h>

#include "base/mem.h"
#include "probes/method/chase.h"

enum {
    JOB_LOADS = 2048, /* every latency of a job is kept */
    CHASES = 3,
    HIT_MISSES_MAX = 1,
    RUN_LOADS = 16, /* as many loads decide whether the prefetch has begun */
    RUN_HITS = 6,   /* less than half of them, which a prefetch of one unit gives */
};

/* A prefetch that reaches further is only known to reach so far. [M] found two thirds of L2. */
static const uint64_t FOOTPRINT_MAX_BYTES = 8 << 20, FOOTPRINT_MIN_BYTES = 1 << 20;

/* A smaller share of hits is noise. */
static const double HITS_MIN = 0.02;

/* If fewer of the distances between misses agree, there is no pattern. */
static const double AGREEMENT_MIN = 0.6;

/* Distance between the chases beyond their length, so that pages begin at other loads in each. */
static const uint64_t SHIFT_BYTES = 160 << 10;

static uint64_t count_units(const struct probe_context *context, const struct l2_study *l2)
{
    uint64_t bytes = 2 * device_limits(context->device)->l2_reported_bytes;
    bytes = bytes < FOOTPRINT_MIN_BYTES ? FOOTPRINT_MIN_BYTES : bytes;
    bytes = bytes > FOOTPRINT_MAX_BYTES ? FOOTPRINT_MAX_BYTES : bytes;
    uint64_t jobs = bytes / l2->fetch_bytes / JOB_LOADS;
    return (jobs ? jobs : 1) * JOB_LOADS;
}

/* Adds 1 to each unit that missed. The jobs load one stretch after the other; only the first one
 * finds L2 flushed. */
static int chase_units(struct probe_context *context, const struct l2_study *l2, uint64_t units,
                       uint8_t *misses, struct err *err)
{
    const struct device_array array = {
        .path = DEVICE_GLOBAL_CG,
        .offset_bytes = probe_fresh(context, units * l2->fetch_bytes + SHIFT_BYTES),
        .size_bytes = units * l2->fetch_bytes,
        .stride_bytes = l2->fetch_bytes};
    size_t count = units / JOB_LOADS;
    struct device_job *jobs = mem_array(count, sizeof *jobs);
    struct device_answer *answers = NULL;
    if (!jobs)
        return err_no_memory(err);
    for (size_t i = 0; i < count; i++) {
        jobs[i] = chase_job();
        jobs[i].cold_l2 = i == 0;
        if (i) /* the TLBs of the SM may be empty when a job begins */
            chase_add(&jobs[i], DEVICE_WARM, &array, 1)->start = i * JOB_LOADS - 1;
        struct device_step *step = chase_add(&jobs[i], DEVICE_CHASE, &array, JOB_LOADS);
        step->start = i * JOB_LOADS;
        step->keep = JOB_LOADS;
        step->split_cycles = (uint32_t)l2->miss_threshold;
    }
    int rc = chase_run(context, jobs, count, 1, &answers, err);
    for (size_t i = 0; i < count && !rc; i++)
        for (size_t k = 0; k < answers[i].samples[0].kept_count && k < JOB_LOADS; k++)
            misses[i * JOB_LOADS + k] += answers[i].samples[0].kept[k] > 0;
    if (answers)
        device_answers_fini(answers, count);
    free(answers);
    free(jobs);
    return rc;
}

static bool hit(const uint8_t *misses, uint64_t unit)
{
    return misses[unit] <= HIT_MISSES_MAX;
}

/* The first of many hits; `units`: there is none. */
static uint64_t find_begin(const uint8_t *misses, uint64_t units)
{
    for (uint64_t i = 0; i + RUN_LOADS <= units; i++) {
        uint32_t hits = 0;
        for (uint64_t k = 0; k < RUN_LOADS; k++)
            hits += hit(misses, i + k);
        if (hit(misses, i) && hits >= RUN_HITS)
            return i;
    }
    return units;
}

/* The most frequent distance between two misses from `begin` on, except of neighbours: a stream
 * that is found anew begins with a few of these. 0: there are not two misses. */
static int find_distance(const uint8_t *misses, uint64_t begin, uint64_t units,
                         uint64_t *out_distance, double *out_agreement, struct err *err)
{
    uint32_t *counts = mem_array(units + 1, sizeof *counts), all = 0;
    uint64_t last = units, best = 0;
    if (!counts)
        return err_no_memory(err);
    for (uint64_t i = begin; i < units; i++) {
        if (misses[i] < CHASES)
            continue;
        if (last < units && i - last > 1) {
            all++;
            counts[i - last]++;
            if (counts[i - last] > counts[best])
                best = i - last;
        }
        last = i;
    }
    *out_distance = best;
    *out_agreement = all ? (double)counts[best] / all : 1;
    free(counts);
    return 0;
}

static int analyse(const struct l2_study *l2, const uint8_t *misses, uint64_t units,
                   struct l2_prefetch *found, struct err *err)
{
    uint64_t hits = 0, begin = find_begin(misses, units), distance = 0;
    for (uint64_t i = 0; i < units; i++)
        hits += hit(misses, i);
    found->hit_share = (double)hits / (double)units;
    found->from_bytes = begin * l2->fetch_bytes;
    if (found->hit_share < HITS_MIN) {
        found->kind = L2_PREFETCH_NONE;
        found->agreement = 1 - found->hit_share;
        found->from_bytes = 0;
        return 0;
    }
    /* The last miss before the hits brought the first of them. */
    uint64_t first = begin ? begin - 1 : 0;
    int rc = find_distance(misses, first, units, &distance, &found->agreement, err);
    if (rc)
        return rc;
    found->kind = begin == units || found->agreement < AGREEMENT_MIN ? L2_PREFETCH_IRREGULAR
                  : distance                                         ? L2_PREFETCH_FOUND
                                                                     : L2_PREFETCH_BEYOND;
    found->ahead_bytes = ((distance ? distance : units - begin + 1) - 1) * l2->fetch_bytes;
    return 0;
}

int l2_measure_prefetch(struct probe_context *context, const struct l2_study *l2,
                        struct l2_prefetch *out_prefetch, struct err *err)
{
    uint64_t units = count_units(context, l2);
    struct l2_prefetch found = {.footprint_bytes = units * l2->fetch_bytes,
                                .n = (uint32_t)(CHASES * units)};
    uint8_t *misses = mem_array(units, sizeof *misses);
    if (!misses)
        return err_no_memory(err);
    int rc = 0;
    for (size_t i = 0; i < CHASES && !rc; i++)
        rc = chase_units(context, l2, units, misses, err);
    if (!rc)
        rc = analyse(l2, misses, units, &found, err);
    free(misses);
    if (!rc)
        *out_prefetch = found;
    return rc;
}
