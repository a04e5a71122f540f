/* LRU or FIFO: a set is filled, some lines are used again, and new ones come. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "probes/method/chase.h"
#include "probes/method/miss_counts.h"
#include "probes/method/replacement_kinds.h"
#include "probes/method/reuse_order.h"

enum {
    PATTERNS_MAX = 3,
    PATTERN_JOBS = 8,
    PATTERN_JOBS_MAX = 256,
    PATTERN_LOADS = 512, /* so many that one misjudged load matters little */
    PATTERN_WAYS_MAX = 4096,
};

/* Share of loads that may differ from what a policy would do, besides those misjudged. */
static const double AGREEMENT = 0.03;

/* Lines used again would be served by constant L1, if it can hold them, and not by L1.5. */
static bool hidden_by_l1(const struct probe_context *context, const struct study *study,
                         const struct device_array *again)
{
    const struct study *before = &context->studies[STUDY_CONSTANT_L1];
    double lines = (double)(again->size_bytes / again->stride_bytes);
    return study->id == STUDY_CONSTANT_L15 &&
           lines * (double)before->touch_bytes < 2 * before->resident_bytes;
}

/* The patterns that can be tried. If all sets are loaded, whole runs of lines go to each. */
static size_t list_patterns(struct probe_context *context, const struct study *study,
                            const struct cache_sets *sets,
                            struct reuse_pattern out_patterns[PATTERNS_MAX])
{
    uint32_t ways = (uint32_t)sets->ways,
             run = replacement_one_set(study, sets) ? 1 : (uint32_t)sets->run;
    uint32_t half = ways / 2 / run * run, quarter = ways / 4 / run * run;
    uint64_t row = replacement_one_set(study, sets) ? 1 : sets->fits / sets->ways;
    uint64_t rows_kept = MISS_COUNTS_KEEP / row / run * run;
    uint32_t timed = rows_kept < ways ? (uint32_t)rows_kept : ways;
    const struct reuse_pattern tried[PATTERNS_MAX] = {
        {ways, 0, run, run, timed},
        {ways, 0, half, quarter ? quarter : run, timed},
        {ways, half, run, run, timed},
    };
    size_t count = 0;
    for (size_t i = 0; i < PATTERNS_MAX; i++) {
        const struct reuse_pattern *p = &tried[i];
        const struct device_array new = replacement_rows(study, sets, ways, ways + p->more);
        const struct device_array again =
            replacement_rows(study, sets, p->first, p->first + p->again);
        if (!timed || !p->again || p->again + p->more > ways || p->first + p->again > ways ||
            new.offset_bytes + new.size_bytes > study->limit_bytes ||
            hidden_by_l1(context, study, &again))
            continue;
        out_patterns[count++] = *p;
    }
    return count;
}

static struct device_job pattern_job(const struct study *study, const struct cache_sets *sets,
                                     const struct reuse_pattern *p)
{
    const struct device_array all = replacement_rows(study, sets, 0, p->ways);
    const struct device_array again = replacement_rows(study, sets, p->first, p->first + p->again);
    const struct device_array new = replacement_rows(study, sets, p->ways, p->ways + p->more);
    const struct device_array timed = replacement_rows(study, sets, 0, p->timed);
    uint32_t loads = (uint32_t)(timed.size_bytes / timed.stride_bytes);
    struct device_job job = miss_counts_job(study);
    chase_add(&job, DEVICE_WARM, &all, 0);
    chase_add(&job, DEVICE_WARM, &again, 0);
    chase_add(&job, DEVICE_WARM, &new, 0);
    miss_counts_time(&job, study, &timed, loads);
    return job;
}

/* Adds up in how many loads the sample differs from what LRU and FIFO would do. */
struct differences {
    double lru, fifo, loads;
};

static int compare_sample(const struct reuse_pattern *p, const struct device_sample *sample,
                          struct differences *d, struct err *err)
{
    bool *lru = mem_array(p->timed, sizeof *lru), *fifo = mem_array(p->timed, sizeof *fifo);
    int rc = lru && fifo ? 0 : -ENOMEM;
    if (!rc)
        rc = reuse_order_predict(p, false, lru);
    if (!rc)
        rc = reuse_order_predict(p, true, fifo);
    for (uint32_t k = 0; k < sample->kept_count && !rc; k++) {
        uint32_t line = (uint32_t)((uint64_t)k * p->timed / sample->kept_count);
        bool missed = sample->kept[k] > 0;
        d->lru += missed != lru[line];
        d->fifo += missed != fifo[line];
        d->loads++;
    }
    free(lru);
    free(fifo);
    return rc ? err_no_memory(err) : 0;
}

static size_t jobs_of(const struct study *study, const struct cache_sets *sets,
                      const struct reuse_pattern *p)
{
    const struct device_array timed = replacement_rows(study, sets, 0, p->timed);
    uint64_t jobs = PATTERN_LOADS / (timed.size_bytes / timed.stride_bytes);
    return jobs < PATTERN_JOBS ? PATTERN_JOBS : jobs < PATTERN_JOBS_MAX ? jobs : PATTERN_JOBS_MAX;
}

/* How many loads of a pattern differ. */
static int try_pattern(struct probe_context *context, const struct study *study,
                       const struct cache_sets *sets, const struct reuse_pattern *p,
                       struct differences *out, struct err *err)
{
    struct device_job jobs[PATTERN_JOBS_MAX];
    struct device_answer *answers;
    size_t count = jobs_of(study, sets, p);
    for (size_t i = 0; i < count; i++)
        jobs[i] = pattern_job(study, sets, p);
    int rc = chase_run(context, jobs, count, study->at_once, &answers, err);
    if (rc)
        return rc;
    *out = (struct differences){0};
    for (size_t i = 0; i < count && !rc; i++)
        rc = compare_sample(p, &answers[i].samples[0], out, err);
    device_answers_fini(answers, count);
    free(answers);
    return rc;
}

/* The shares of loads that differ, of the pattern in which most do. */
static int try_patterns(struct probe_context *context, const struct study *study,
                        const struct cache_sets *sets, const struct reuse_pattern *patterns,
                        size_t count, struct differences *out, struct err *err)
{
    *out = (struct differences){0};
    for (size_t i = 0; i < count; i++) {
        struct differences d;
        int rc = try_pattern(context, study, sets, &patterns[i], &d, err);
        if (rc)
            return rc;
        out->lru = fmax(out->lru, d.lru / d.loads);
        out->fifo = fmax(out->fifo, d.fifo / d.loads);
        out->loads += d.loads;
    }
    return 0;
}

int replacement_by_reuse(struct probe_context *context, const struct study *study,
                         const struct cache_sets *sets, struct replacement *r, struct err *err)
{
    struct reuse_pattern patterns[PATTERNS_MAX];
    struct differences d;
    size_t count =
        sets->ways <= PATTERN_WAYS_MAX ? list_patterns(context, study, sets, patterns) : 0;
    if (!count) {
        snprintf(r->reason, sizeof r->reason, "LRU or FIFO: no room for the loads that tell");
        return 0;
    }
    int rc = try_patterns(context, study, sets, patterns, count, &d, err);
    if (rc)
        return rc;
    double misjudged = fmax(sets->stray, study->slip_share) + AGREEMENT;
    r->n = (uint32_t)d.loads;
    r->policy = d.lru < misjudged    ? REPLACEMENT_LRU
                : d.fifo < misjudged ? REPLACEMENT_FIFO
                                     : REPLACEMENT_NOT_LRU;
    if (r->policy == REPLACEMENT_NOT_LRU)
        snprintf(r->reason, sizeof r->reason,
                 "neither LRU nor FIFO: %.0f and %.0f %% of the loads are not as they would be",
                 100 * d.lru, 100 * d.fifo);
    return 0;
}
