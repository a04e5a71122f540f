/* Which line of a set goes when a new one comes.
 *
 * If every line of an overflowing set misses in every pass, the policy is LRU or FIFO: using some
 * lines again before a new one comes tells them apart. Otherwise the order of the misses says which
 * way each of them took. Where no set can be loaded by itself, all sets are looked at together. */
#include "probes/caches/replacement.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/portable_math.h"
#include "probes/caches/miss_counts.h"
#include "probes/caches/replacement_order.h"
#include "probes/caches/reuse.h"
#include "probes/caches/tag_scatter.h"
#include "probes/method/chase.h"

/* LRU or FIFO: a set is filled, some lines are used again, and new ones come. */

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
static bool reuse_hidden_by_l1(const struct probe_context *context, const struct study *study,
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
            reuse_hidden_by_l1(context, study, &again))
            continue;
        out_patterns[count++] = *p;
    }
    return count;
}

static struct device_job reuse_pattern_job(const struct study *study, const struct cache_sets *sets,
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

static void compare_sample(const struct reuse_pattern *p, const struct device_sample *sample,
                           struct differences *d)
{
    bool *lru = mem_array(p->timed, sizeof *lru), *fifo = mem_array(p->timed, sizeof *fifo);
    reuse_pattern_predict(p, false, lru);
    reuse_pattern_predict(p, true, fifo);
    for (uint32_t k = 0; k < sample->kept_count; k++) {
        uint32_t line = (uint32_t)((uint64_t)k * p->timed / sample->kept_count);
        bool missed = sample->kept[k] > 0;
        d->lru += missed != lru[line];
        d->fifo += missed != fifo[line];
        d->loads++;
    }
    free(lru);
    free(fifo);
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
        jobs[i] = reuse_pattern_job(study, sets, p);
    int rc = chase_run(context, jobs, count, study->at_once, &answers, err);
    if (rc)
        return rc;
    *out = (struct differences){0};
    for (size_t i = 0; i < count && !rc; i++)
        compare_sample(p, &answers[i].samples[0], out);
    chase_free(answers, count);
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

/* If every line of an overflowing set misses in every pass: LRU, FIFO or another one. */
static int replacement_by_reuse(struct probe_context *context, const struct study *study,
                                const struct cache_sets *sets, struct replacement *r,
                                struct err *err)
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

/* LRU, FIFO or pseudo-LRU where no set can be loaded by itself, since there are tags for more lines
 * than data: lines scattered over all sets are loaded, some of them are used again, and others
 * come. How many are then gone is compared with imitated caches. */

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

static struct device_job scatter_pattern_job(struct probe_context *context,
                                             const struct study *study,
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

static void scatter_add_sample(const struct study *study, const struct device_sample *sample,
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

static int scatter_look_at(struct probe_context *context, const struct study *study,
                           const struct reuse_scattered *loads, struct reuse_shares *out_seen,
                           struct err *err)
{
    struct device_job jobs[JOBS];
    struct device_answer *answers;
    struct reuse_sums sums = {0};
    for (size_t i = 0; i < JOBS; i++)
        jobs[i] = scatter_pattern_job(context, study, loads);
    int rc = chase_run(context, jobs, JOBS, study->at_once, &answers, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < JOBS; i++)
        scatter_add_sample(study, &answers[i].samples[0], &sums);
    chase_free(answers, JOBS);
    *out_seen = reuse_sums_shares(&sums);
    return 0;
}

static void add_distance(const struct study *study, const struct reuse_shares *seen,
                         const struct reuse_shares *imitated, struct distance *distance)
{
    double least = LEAST_ERROR + STRAY_ERROR * study->stray_share;
    for (size_t half = 0; half < REUSE_HALVES; half++) {
        double chance = portable_hypot(seen->error[half], imitated->error[half]);
        double error =
            portable_hypot(portable_hypot(chance, least), SPREAD_ERROR * imitated->mean[half]);
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
    int rc = scatter_look_at(context, study, &loads, &seen, err);
    if (rc)
        return rc;
    uint64_t seed = probe_analysis_seed(context);
    for (size_t policy = 0; policy < REUSE_POLICIES; policy++) {
        reuse_scattered_imitate(&loads, &shape, (enum reuse_policy)policy, IMITATED, seed,
                                &imitated);
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

static void scatter_judge(const struct cache_sets *sets, const struct distance d[REUSE_POLICIES],
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

/* If lines scattered at random told the sets, and the same lines miss in every pass: LRU, FIFO or
 * another one. */
static int replacement_by_scatter(struct probe_context *context, const struct study *study,
                                  const struct cache_sets *sets, struct replacement *r,
                                  struct err *err)
{
    struct distance distances[REUSE_POLICIES] = {0};
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
        rc = compare_pattern(context, study, sets, i, distances, err);
        r->n += (uint32_t)(JOBS * loads.first);
    }
    if (!rc)
        scatter_judge(sets, distances, r);
    return rc;
}

/* Share of misses of an overflowing set under LRU and FIFO: all, less what noise hides. */
static const double ALL_MISS = 0.97;

/* Share of loads that constant L1 may serve while L1.5 is looked at. */
static const double SERVED_BEFORE = 0.01;

const char *replacement_name(enum replacement_policy policy)
{
    static const char *const names[] = {
        [REPLACEMENT_UNKNOWN] = "unknown", [REPLACEMENT_NONE] = "direct_mapped",
        [REPLACEMENT_LRU] = "lru",         [REPLACEMENT_FIFO] = "fifo",
        [REPLACEMENT_RANDOM] = "random",   [REPLACEMENT_BIASED] = "biased",
        [REPLACEMENT_NOT_LRU] = "not_lru",
    };
    return names[policy];
}

/* Constant L1.5 is looked at past L1. If L1 serves some of the loads, L1.5 does not see them. */
static int served_before(struct probe_context *context, const struct study *study,
                         const struct cache_sets *sets, double *out_share, struct err *err)
{
    struct device_job job = miss_counts_job(study);
    struct device_answer *answers;
    const struct device_array array = {.path = study->path,
                                       .size_bytes = (sets->fits + 1) * study->line_bytes,
                                       .stride_bytes = study->line_bytes};
    *out_share = 0;
    if (study->id != STUDY_CONSTANT_L15)
        return 0;
    const struct study *before = &context->studies[STUDY_CONSTANT_L1];
    chase_add(&job, DEVICE_WARM, &array, 2 * (sets->fits + 1));
    chase_add(&job, DEVICE_CHASE, &array, 16 * (sets->fits + 1));
    int rc = chase_run(context, &job, 1, 1, &answers, err);
    if (rc)
        return rc;
    *out_share = 1 - chase_share_above(&answers[0].samples[0], before->threshold);
    chase_free(answers, 1);
    return 0;
}

int replacement_measure(struct probe_context *context, const struct study *study,
                        const struct cache_sets *sets, struct replacement *out_replacement,
                        struct err *err)
{
    struct replacement r = {.n = sets->loads};
    double served;
    int rc = served_before(context, study, sets, &served, err);
    if (rc)
        return rc;
    if (served > SERVED_BEFORE) {
        snprintf(r.reason, sizeof r.reason, "constant L1 serves %.0f %% of the loads itself",
                 100 * served);
    } else if (sets->early) {
        r.policy = REPLACEMENT_NOT_LRU;
        snprintf(r.reason, sizeof r.reason, "lines are evicted although their set has room");
    } else if (sets->ways == 1) {
        r.policy = REPLACEMENT_NONE;
    } else if (sets->scattered) {
        rc = replacement_by_scatter(context, study, sets, &r, err);
    } else {
        rc = sets->miss_share > ALL_MISS ? replacement_by_reuse(context, study, sets, &r, err)
                                         : replacement_by_order(context, study, sets, &r, err);
    }
    if (!rc)
        *out_replacement = r;
    return rc;
}
