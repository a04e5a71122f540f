/* LRU, FIFO or pseudo-LRU where no set can be loaded by itself, since there are tags for more lines
 * than data: lines scattered over all sets are loaded, some of them are used again, and others
 * come. How many are then gone is held against imitated caches. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/quadrature.h"
#include "probes/method/chase.h"
#include "probes/method/miss_counts.h"
#include "probes/method/replacement_kinds.h"
#include "probes/method/reuse_scattered.h"
#include "probes/method/tag_scatter.h"

enum {
    PATTERNS = 3,
    JOBS = 128, /* of each pattern: each draws other lines */
    IMITATED = 256,
    LINES_MIN = 8,
};

/* Lines loaded first, and others that come, as shares of what the cache holds: together as much as
 * tag_scatter.c looks at, so that data has room for all of them. */
static const struct {
    double first, again, more; /* again: share of the first lines */
} SHARES[PATTERNS] = {
    {0.45, 0, 0.3},   /* the oldest go, under both policies */
    {0.45, 0.5, 0.3}, /* LRU spares the half that was used again, FIFO does not */
    {0.15, 1, 0.6},   /* LRU does not spare lines for ever because they were used twice */
};

/* Shares are known within LEAST_ERROR, and strays within a part of themselves. Imitated shares are
 * right within SPREAD_ERROR: hashing does not spread lines quite as chance does. */
static const double LEAST_ERROR = 0.002, STRAY_ERROR = 0.2, SPREAD_ERROR = 0.02;

/* Deviations, in standard errors, up to which a policy explains what is seen, and from which on it
 * surely does not. */
static const double EXPLAINS = 4, CONTRADICTS = 6;

/* How far a policy is from what was seen, in the half of a pattern in which it is furthest. */
struct distance {
    double errors; /* in standard errors */
    double share;  /* of the loads */
};

static struct reuse_scattered loads_of(const struct study *study, size_t pattern)
{
    double held = study->resident_bytes / (double)study->line_bytes;
    struct reuse_scattered loads = {.first = (uint64_t)(SHARES[pattern].first * held)};
    double sum = (SHARES[pattern].first + SHARES[pattern].more) * held;
    loads.first = loads.first < MISS_COUNTS_KEEP ? loads.first : MISS_COUNTS_KEEP;
    loads.again = (uint64_t)(SHARES[pattern].again * (double)loads.first);
    loads.more = (uint64_t)sum - loads.first;
    return loads;
}

static struct device_job pattern_job(struct probe_context *context, const struct study *study,
                                     const struct reuse_scattered *loads)
{
    const struct device_array first = tag_scatter_lines(context, study);
    const struct device_array more = tag_scatter_lines(context, study);
    const struct device_array other = tag_scatter_other(study);
    struct device_job job = miss_counts_job(study);
    chase_add(&job, DEVICE_WARM, &first, loads->first);
    if (loads->again) {
        chase_add(&job, DEVICE_WARM, &other, 0);
        chase_add(&job, DEVICE_WARM, &first, loads->again);
    }
    chase_add(&job, DEVICE_WARM, &more, loads->more);
    miss_counts_time(&job, study, &first, loads->first);
    return job;
}

static void add_sample(const struct study *study, const struct device_sample *sample,
                       struct reuse_sums *sums)
{
    double missed[REUSE_HALVES] = {0}, all[REUSE_HALVES] = {0};
    for (uint32_t k = 0; k < sample->kept_count; k++) {
        size_t half = 2 * (uint64_t)k >= sample->kept_count;
        missed[half] += sample->kept[k] > 0;
        all[half]++;
    }
    for (size_t half = 0; half < REUSE_HALVES; half++)
        missed[half] = (missed[half] / fmax(all[half], 1) - study->stray_share) /
                       (1 - study->stray_share - study->slip_share);
    reuse_sums_add(sums, missed);
}

static int look_at(struct probe_context *context, const struct study *study,
                   const struct reuse_scattered *loads, struct reuse_shares *out_seen,
                   struct err *err)
{
    struct device_job jobs[JOBS];
    struct device_answer *answers;
    struct reuse_sums sums = {0};
    for (size_t i = 0; i < JOBS; i++)
        jobs[i] = pattern_job(context, study, loads);
    int rc = chase_run(context, jobs, JOBS, study->at_once, &answers, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < JOBS; i++)
        add_sample(study, &answers[i].samples[0], &sums);
    device_answers_fini(answers, JOBS);
    free(answers);
    *out_seen = reuse_sums_shares(&sums);
    return 0;
}

static void add_distance(const struct study *study, const struct reuse_shares *seen,
                         const struct reuse_shares *imitated, struct distance *distance)
{
    double least = LEAST_ERROR + STRAY_ERROR * study->stray_share;
    for (size_t half = 0; half < REUSE_HALVES; half++) {
        double chance = quadrature(seen->error[half], imitated->error[half]);
        double error = quadrature(quadrature(chance, least), SPREAD_ERROR * imitated->mean[half]);
        double share = fabs(seen->mean[half] - imitated->mean[half]);
        distance->errors = fmax(distance->errors, share / error);
        distance->share = fmax(distance->share, share);
    }
}

static int compare_pattern(struct probe_context *context, const struct study *study,
                           const struct cache_sets *sets, size_t pattern,
                           struct distance distances[REUSE_POLICIES], struct err *err)
{
    const struct reuse_scattered loads = loads_of(study, pattern);
    const struct reuse_sets shape = {tag_scatter_region(study), sets->sets, sets->ways};
    struct reuse_shares seen, imitated;
    int rc = look_at(context, study, &loads, &seen, err);
    if (rc)
        return rc;
    uint64_t seed = probe_analysis_seed(context);
    for (size_t policy = 0; policy < REUSE_POLICIES; policy++) {
        if (reuse_scattered_imitate(&loads, &shape, (enum reuse_policy)policy, IMITATED, seed,
                                    &imitated))
            return err_no_memory(err);
        add_distance(study, &seen, &imitated, &distances[policy]);
    }
    return 0;
}

/* The one policy that explains what is seen, if the two others surely do not; otherwise -1. */
static int only_policy(const struct distance distances[REUSE_POLICIES])
{
    for (int only = 0; only < REUSE_POLICIES; only++) {
        bool alone = distances[only].errors < EXPLAINS;
        for (int other = 0; other < REUSE_POLICIES; other++)
            alone = alone && (other == only || distances[other].errors > CONTRADICTS);
        if (alone)
            return only;
    }
    return -1;
}

static void judge(const struct cache_sets *sets, const struct distance d[REUSE_POLICIES],
                  struct replacement *r)
{
    /* A tree of two ways is LRU: then only two policies are compared. */
    struct distance compared[REUSE_POLICIES] = {d[REUSE_LRU], d[REUSE_FIFO], d[REUSE_TREE]};
    if (sets->ways == 2)
        compared[REUSE_TREE].errors = INFINITY;
    int only = only_policy(compared);
    bool against_both = d[REUSE_LRU].errors > CONTRADICTS && d[REUSE_FIFO].errors > CONTRADICTS;
    r->unexplained = d[REUSE_LRU].errors > EXPLAINS && d[REUSE_FIFO].errors > EXPLAINS &&
                     d[REUSE_TREE].errors > EXPLAINS;
    if (only == REUSE_LRU || only == REUSE_FIFO) {
        r->policy = only == REUSE_LRU ? REPLACEMENT_LRU : REPLACEMENT_FIFO;
    } else if (against_both) {
        r->policy = REPLACEMENT_NOT_LRU;
        if (only == REUSE_TREE)
            snprintf(r->reason, sizeof r->reason,
                     "lines stay as under pseudo-LRU by a binary tree");
        else
            snprintf(
                r->reason, sizeof r->reason,
                "neither LRU nor FIFO: %.0f and %.0f %% of some lines are not as they would be",
                100 * d[REUSE_LRU].share, 100 * d[REUSE_FIFO].share);
    } else {
        snprintf(r->reason, sizeof r->reason,
                 r->unexplained ? "neither LRU nor FIFO explains which lines stay"
                                : "LRU, FIFO or like them: which lines stay does not tell");
    }
}

int replacement_by_scatter(struct probe_context *context, const struct study *study,
                           const struct cache_sets *sets, struct replacement *r, struct err *err)
{
    struct distance distances[REUSE_POLICIES] = {0};
    struct err own = {0};
    int rc = 0;
    r->n = 0;
    if (sets->ways > REUSE_WAYS_MAX) {
        snprintf(r->reason, sizeof r->reason, "LRU, FIFO or like them: too many ways to tell");
        return 0;
    }
    for (size_t i = 0; i < PATTERNS && !rc; i++) {
        const struct reuse_scattered loads = loads_of(study, i);
        if (loads.first < LINES_MIN)
            continue;
        rc = compare_pattern(context, study, sets, i, distances, &own);
        r->n += (uint32_t)(JOBS * loads.first);
    }
    if (rc == -ENOENT) {
        snprintf(r->reason, sizeof r->reason,
                 "LRU, FIFO or like them: this old record does not have the loads that tell");
        return 0;
    }
    if (rc)
        return err_set(err, rc, "%s", own.text);
    judge(sets, distances, r);
    return 0;
}
