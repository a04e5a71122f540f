/* Which line of a set goes when a new one comes.
 *
 * If every line of an overflowing set misses in every pass, the policy is LRU or FIFO: using some
 * lines again before a new one comes tells them apart. Otherwise the order of the misses says which
 * way each of them took. */
#include "probes/method/replacement.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "probes/method/chase.h"
#include "probes/method/eviction_order.h"
#include "probes/method/miss_counts.h"
#include "probes/method/reuse_order.h"

enum {
    PATTERNS_MAX = 3,
    PATTERN_JOBS = 8,
    PATTERN_WAYS_MAX = 4096,
    EVICTIONS = 9000, /* a share of one half is then known to 0.005 */
    EVICTIONS_FEW = 3000,
    ORDER_JOBS_MAX = 4096,
    IMITATED = 4, /* times as many jobs as were followed */
};

/* Share of misses of an overflowing set under LRU and FIFO: all, less what noise hides. */
static const double ALL_MISS = 0.97;

/* Share of loads that may differ from what a policy would do, besides those misjudged. */
static const double AGREEMENT = 0.03;

/* Loads of one job that follow the order of misses: few enough that strays rarely mix up ways. */
static const double STRAYS_PER_JOB = 0.03;

/* Timed loads in all, where each is executed by itself. */
static const double LOADS_MOST = 4e6, LOADS_MOST_REAL = 4e7;

/* Deviations by which chance may look unequal or dependent. */
static const double BY_CHANCE = 4;

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

/* One set alone can be loaded if its lines are known to lie a period apart. Constant L1.5 is seen
 * only past L1, which would hold so few lines itself: there all sets are loaded. */
static bool one_set(const struct study *study, const struct cache_sets *sets)
{
    return sets->index != CACHE_SETS_HASHED && study->id != STUDY_CONSTANT_L15;
}

/* Lines number `from` to `to` of one set, or of every set. */
static struct device_array rows(const struct study *study, const struct cache_sets *sets,
                                uint64_t from, uint64_t to)
{
    uint64_t line = study->line_bytes;
    uint64_t step = one_set(study, sets) ? sets->period : sets->fits / sets->ways;
    uint64_t first = one_set(study, sets) ? sets->group[0] : 0;
    return (struct device_array){.path = study->path,
                                 .offset_bytes = (first + from * step) * line,
                                 .size_bytes = (to - from) * step * line,
                                 .stride_bytes = one_set(study, sets) ? step * line : line};
}

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
    uint32_t ways = (uint32_t)sets->ways, run = one_set(study, sets) ? 1 : (uint32_t)sets->run;
    uint32_t half = ways / 2 / run * run, quarter = ways / 4 / run * run;
    uint64_t row = one_set(study, sets) ? 1 : sets->fits / sets->ways;
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
        const struct device_array new = rows(study, sets, ways, ways + p->more);
        const struct device_array again = rows(study, sets, p->first, p->first + p->again);
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
    const struct device_array all = rows(study, sets, 0, p->ways);
    const struct device_array again = rows(study, sets, p->first, p->first + p->again);
    const struct device_array new = rows(study, sets, p->ways, p->ways + p->more);
    const struct device_array timed = rows(study, sets, 0, p->timed);
    uint32_t loads = (uint32_t)(timed.size_bytes / timed.stride_bytes);
    struct device_job job = miss_counts_job(study);
    chase_add(&job, DEVICE_WARM, &all, 0);
    chase_add(&job, DEVICE_WARM, &again, 0);
    chase_add(&job, DEVICE_WARM, &new, 0);
    chase_add(&job, DEVICE_CHASE, &timed, loads)->keep = loads;
    return job;
}

/* Adds up in how many loads the sample differs from what LRU and FIFO would do. */
struct differences {
    double lru, fifo, loads;
};

static int compare_sample(const struct study *study, const struct reuse_pattern *p,
                          const struct device_sample *sample, struct differences *d,
                          struct err *err)
{
    bool *lru = mem_array(p->timed, sizeof *lru), *fifo = mem_array(p->timed, sizeof *fifo);
    int rc = lru && fifo ? 0 : -ENOMEM;
    if (!rc)
        rc = reuse_order_predict(p, false, lru);
    if (!rc)
        rc = reuse_order_predict(p, true, fifo);
    for (uint32_t k = 0; k < sample->kept_count && !rc; k++) {
        uint32_t line = (uint32_t)((uint64_t)k * p->timed / sample->kept_count);
        bool missed = sample->kept[k] > study->threshold;
        d->lru += missed != lru[line];
        d->fifo += missed != fifo[line];
        d->loads++;
    }
    free(lru);
    free(fifo);
    return rc ? err_no_memory(err) : 0;
}

/* The share of loads that differ, of the pattern in which most do. */
static int try_patterns(struct probe_context *context, const struct study *study,
                        const struct cache_sets *sets, const struct reuse_pattern *patterns,
                        size_t count, struct differences *out, struct err *err)
{
    struct device_job jobs[PATTERNS_MAX * PATTERN_JOBS];
    struct device_answer *answers;
    for (size_t i = 0; i < count * PATTERN_JOBS; i++)
        jobs[i] = pattern_job(study, sets, &patterns[i / PATTERN_JOBS]);
    int rc = chase_run(context, jobs, count * PATTERN_JOBS, study->at_once, &answers, err);
    if (rc)
        return rc;
    *out = (struct differences){0};
    for (size_t i = 0; i < count && !rc; i++) {
        struct differences d = {0};
        for (size_t k = 0; k < PATTERN_JOBS && !rc; k++)
            rc = compare_sample(study, &patterns[i], &answers[i * PATTERN_JOBS + k].samples[0], &d,
                                err);
        out->lru = fmax(out->lru, d.lru / d.loads);
        out->fifo = fmax(out->fifo, d.fifo / d.loads);
        out->loads += d.loads;
    }
    device_answers_fini(answers, count * PATTERN_JOBS);
    free(answers);
    return rc;
}

static int tell_lru(struct probe_context *context, const struct study *study,
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

/* The jobs that follow one set: the array, which of its elements are in the set, how many loads
 * fill it. */
struct followed {
    struct device_array array;
    uint64_t elements, fill, loads;
    uint32_t *line_of; /* line of the set + 1; 0: another set */
    size_t jobs;
};

static int plan_followed(const struct study *study, const struct cache_sets *sets,
                         struct followed *f, struct err *err)
{
    bool alone = one_set(study, sets);
    double stray = fmax(sets->stray, 5e-4), per_set = (double)sets->ways + 1;
    f->array = alone ? rows(study, sets, 0, sets->ways + 1)
                     : (struct device_array){.path = study->path,
                                             .size_bytes = (sets->fits + 1) * study->line_bytes,
                                             .stride_bytes = study->line_bytes};
    f->elements = alone ? sets->ways + 1 : sets->fits + 1;
    f->fill = f->elements - 1;
    double share = per_set / (double)f->elements; /* of the loads that are in the set */
    double loads = fmax(STRAYS_PER_JOB / stray, 4 * per_set) / share;
    f->loads = (uint64_t)fmin(loads, MISS_COUNTS_KEEP);
    double each = fmax((double)f->loads * share * sets->miss_share - 2, 0.5);
    double wanted = sets->ways > REPLACEMENT_WAYS_MAX ? EVICTIONS_FEW : EVICTIONS;
    double most =
        (study->loads_are_dear ? LOADS_MOST : LOADS_MOST_REAL) / (double)(f->loads + f->fill);
    f->jobs = (size_t)fmax(fmin(fmin(wanted / each, most), ORDER_JOBS_MAX), 1);
    f->line_of = mem_array(f->elements, sizeof *f->line_of);
    if (!f->line_of)
        return err_no_memory(err);
    for (uint64_t i = 0; i <= sets->ways; i++)
        f->line_of[alone ? i : sets->group[i]] = (uint32_t)i + 1;
    return 0;
}

static int follow(struct probe_context *context, const struct study *study,
                  const struct followed *f, struct eviction_order *order, struct err *err)
{
    struct device_answer *answers = NULL;
    struct device_job *jobs = mem_array(f->jobs, sizeof *jobs);
    if (!jobs)
        return err_no_memory(err);
    for (size_t i = 0; i < f->jobs; i++) {
        jobs[i] = miss_counts_job(study);
        chase_add(&jobs[i], DEVICE_WARM, &f->array, f->fill);
        chase_add(&jobs[i], DEVICE_CHASE, &f->array, f->loads)->keep = (uint32_t)f->loads;
    }
    int rc = chase_run(context, jobs, f->jobs, study->at_once, &answers, err);
    free(jobs);
    if (rc)
        return rc;
    for (size_t i = 0; i < f->jobs; i++) {
        const struct device_sample *sample = &answers[i].samples[0];
        eviction_order_begin(order);
        for (uint32_t k = 0; k < sample->kept_count; k++) {
            uint32_t line = f->line_of[(f->fill + k) % f->elements];
            if (line)
                eviction_order_add(order, line - 1, sample->kept[k] > study->threshold);
        }
    }
    device_answers_fini(answers, f->jobs);
    free(answers);
    return 0;
}

/* Follows an imitated policy with these shares in the same way, with more jobs. */
static void imitate(struct probe_context *context, const struct study *study,
                    const struct cache_sets *sets, const struct followed *f, const double *shares,
                    struct eviction_order *out)
{
    double in_set = (double)f->loads * (double)(sets->ways + 1) / (double)f->elements;
    const struct eviction_null null = {.shares = shares,
                                       .stray = sets->stray,
                                       .slip = study->slip_share,
                                       .loads = (uint64_t)in_set,
                                       .jobs = IMITATED * f->jobs,
                                       .seed = probe_analysis_seed(context)};
    eviction_order_imitate(out, &null);
}

static void set_shares(const struct eviction_order *order, struct replacement *r)
{
    for (uint32_t i = 0; i < order->ways && i < REPLACEMENT_WAYS_MAX; i++)
        r->shares[i] = (double)order->counts[i] / (double)order->total;
}

/* Ways that are taken independently of each other are random, with equal shares or not. */
static int judge_order(struct probe_context *context, const struct study *study,
                       const struct cache_sets *sets, const struct followed *f,
                       const struct eviction_order *order, struct replacement *r, struct err *err)
{
    struct eviction_order equal = {0}, own = {0};
    r->n = (uint32_t)order->total;
    r->policy = REPLACEMENT_NOT_LRU;
    if (order->total < 10ull * order->ways || order->stepped < 5ull * order->ways) {
        snprintf(r->reason, sizeof r->reason, "only %llu evictions of %u ways were followed",
                 (unsigned long long)order->total, order->ways);
        return 0;
    }
    if (eviction_order_init(&equal, order->ways))
        return err_no_memory(err);
    if (eviction_order_init(&own, order->ways)) {
        eviction_order_fini(&equal);
        return err_no_memory(err);
    }
    set_shares(order, r);
    imitate(context, study, sets, f, NULL, &equal);
    bool biased = eviction_order_unequal(order, &equal) > BY_CHANCE;
    bool countable = order->ways <= REPLACEMENT_WAYS_MAX;
    imitate(context, study, sets, f, biased && countable ? r->shares : NULL, &own);
    double dependent = eviction_order_dependent(order, &own);
    if (dependent > BY_CHANCE)
        snprintf(r->reason, sizeof r->reason,
                 "which way goes depends on the one before (%.0f standard deviations)", dependent);
    else if (biased && !countable)
        snprintf(r->reason, sizeof r->reason, "some ways go more often than others");
    else
        r->policy = biased ? REPLACEMENT_BIASED : REPLACEMENT_RANDOM;
    eviction_order_fini(&equal);
    eviction_order_fini(&own);
    return 0;
}

static int tell_order(struct probe_context *context, const struct study *study,
                      const struct cache_sets *sets, struct replacement *r, struct err *err)
{
    struct eviction_order order;
    struct followed f = {0};
    if (eviction_order_init(&order, (uint32_t)sets->ways))
        return err_no_memory(err);
    int rc = plan_followed(study, sets, &f, err);
    if (!rc)
        rc = follow(context, study, &f, &order, err);
    if (!rc)
        rc = judge_order(context, study, sets, &f, &order, r, err);
    free(f.line_of);
    eviction_order_fini(&order);
    return rc;
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
    device_answers_fini(answers, 1);
    free(answers);
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
    } else {
        rc = sets->miss_share > ALL_MISS ? tell_lru(context, study, sets, &r, err)
                                         : tell_order(context, study, sets, &r, err);
    }
    if (!rc)
        *out_replacement = r;
    return rc;
}
