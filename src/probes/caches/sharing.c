/* Which caches are one array, and how many of each an SM has: one agent is the victim, another
 * intrudes.
 *
 * An array that fits the victim's cache is loaded, then the intruder loads more than its own cache
 * holds, then the victim's loads are timed. Misses mean that both caches are one array (thesis
 * 4.5), or that two warps use the same instance (thesis 4.6). */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "probes/method/chase.h"
#include "probes/method/repeats.h"

enum {
    REPEATS = 3,
    REPEATS_MAX = 32,
    TIMED_MIN = 64, /* loads of a victim in total: small arrays are repeated more often */
    MEMORIES = 4,
    ROUNDED_BYTES = 1024, /* the second array in constant memory begins at a multiple of this */
    METRIC_MAX = 64,
    REASON_MAX = 120,
};

/* The caches that could be one array. */
static const enum study_id memories[MEMORIES] = {STUDY_L1_DATA, STUDY_TEXTURE, STUDY_READ_ONLY,
                                                 STUDY_CONSTANT_L1};

/* The victim's array as a share of its cache, and the intruder's of its own. */
static const double VICTIM_SHARE = 0.7, INTRUDER_SHARE = 2;

/* An intruder in the same array evicts most of it under any policy; otherwise it evicts nothing. */
static const double EVICTED = 0.3;

/* How near a share of evicted lines is to that limit: 1 on it, 0 if nothing was evicted. */
static double doubt_of(double evicted)
{
    return 1 - fabs(evicted - EVICTED) / EVICTED;
}

/* Far behind any victim's array. */
static const uint64_t INTRUDER_OFFSET_BYTES = 16 * 1024 * 1024;

static bool size_known(const struct study *study)
{
    return study->stage == STUDY_RESIDENT && study->supported && !study->unbounded;
}

/* In constant memory both arrays must fit, one behind the other. */
static bool usable(const struct study *study)
{
    double bytes = (VICTIM_SHARE + INTRUDER_SHARE) * study->resident_bytes + ROUNDED_BYTES;
    return size_known(study) &&
           (study->path != DEVICE_CONSTANT || bytes <= (double)study->limit_bytes);
}

static int study_all(struct probe_context *context, struct err *err)
{
    for (size_t i = 0; i < MEMORIES; i++) {
        int rc = study_reach(context, memories[i], STUDY_RESIDENT, err);
        if (rc && rc != -ENODATA)
            return rc;
    }
    return 0;
}

static struct device_array array_of(const struct study *study, double share, uint64_t offset)
{
    struct device_array array = {.path = study->path, .stride_bytes = study->touch_bytes};
    double lines = floor(share * study->resident_bytes / (double)study->touch_bytes);
    array.size_bytes = (uint64_t)fmax(lines, 1) * study->touch_bytes;
    /* Constant memory is small, and separate from the memory of other paths. */
    if (study->path != DEVICE_CONSTANT)
        array.offset_bytes = offset;
    return array;
}

struct intrusion {
    const struct study *victim, *intruder;
    uint32_t warp; /* of the intruder; the victim is in warp 0 of the same block */
};

/* Agent 0 is the victim, agent 1 the intruder. */
static struct device_job intrusion_job(const struct intrusion *i)
{
    const struct device_array mine = array_of(i->victim, VICTIM_SHARE, 0);
    struct device_array theirs = array_of(i->intruder, INTRUDER_SHARE, INTRUDER_OFFSET_BYTES);
    struct device_job job = chase_job();
    /* Two warps in constant memory: the intruder's array begins where the victim's ends. */
    if (i->victim->path == DEVICE_CONSTANT && i->intruder->path == DEVICE_CONSTANT)
        theirs.offset_bytes = (mine.size_bytes / ROUNDED_BYTES + 1) * ROUNDED_BYTES;
    job.agent_count = 2;
    job.agents[1] = (struct device_agent){.sm = DEVICE_SM_SAME, .warp = i->warp};
    chase_add(&job, DEVICE_WARM, &mine, 0);
    chase_add(&job, DEVICE_WARM, &theirs, 0)->agent = 1;
    chase_add(&job, DEVICE_CHASE, &mine, 0);
    return job;
}

static size_t repeats_of(const struct study *victim)
{
    const struct device_array mine = array_of(victim, VICTIM_SHARE, 0);
    uint64_t repeats = TIMED_MIN * mine.stride_bytes / mine.size_bytes;
    return repeats < REPEATS ? REPEATS : repeats > REPEATS_MAX ? REPEATS_MAX : (size_t)repeats;
}

/* Miss shares of the victims, each measured repeats_of times: the mean, less the loads that only
 * look like misses. */
static int run_intrusions(struct probe_context *context, const struct intrusion *intrusions,
                          size_t count, double *out_evicted, struct err *err)
{
    size_t all = 0, at = 0;
    for (size_t i = 0; i < count; i++)
        all += repeats_of(intrusions[i].victim);
    struct device_job *jobs = mem_array(all, sizeof *jobs);
    struct device_answer *answers;
    for (size_t i = 0; i < count; i++)
        for (size_t r = 0; r < repeats_of(intrusions[i].victim); r++)
            jobs[at++] = intrusion_job(&intrusions[i]);
    int rc = chase_run(context, jobs, all, 0, &answers, err);
    free(jobs);
    if (rc)
        return rc;
    at = 0;
    for (size_t i = 0; i < count; i++) {
        const struct study *victim = intrusions[i].victim;
        double sum = 0;
        for (size_t r = 0; r < repeats_of(victim); r++)
            sum += chase_share_above(&answers[at++].samples[0], victim->threshold);
        out_evicted[i] = sum / (double)repeats_of(victim) - victim->stray_share;
    }
    chase_free(answers, all);
    return 0;
}

static const char *sharing_metric_of(char name[METRIC_MAX], const struct study *study,
                                     const char *what)
{
    snprintf(name, METRIC_MAX, "%s.%s", study_name(study->id), what);
    return name;
}

/* Reports which caches share the victim's array, after every pair was tried in both directions. */
static void report_shared(struct probe_context *context, size_t victim,
                          double evicted[MEMORIES][MEMORIES])
{
    const struct study *study = &context->studies[memories[victim]];
    const char *words[MEMORIES];
    size_t count = 0;
    double unclear = 0;
    char name[METRIC_MAX], doubt[REASON_MAX] = "";
    for (size_t other = 0; other < MEMORIES; other++) {
        const struct study *second = &context->studies[memories[other]];
        if (other != victim && second->supported && !usable(second))
            snprintf(doubt, sizeof doubt, "not tried with %s, %s", study_name(second->id),
                     size_known(second) ? "which constant memory cannot fill"
                                        : "whose size is not known");
        if (other == victim || isnan(evicted[victim][other]))
            continue;
        bool there = evicted[victim][other] > EVICTED, back = evicted[other][victim] > EVICTED;
        unclear =
            fmax(unclear, fmax(doubt_of(evicted[victim][other]), doubt_of(evicted[other][victim])));
        if (there && back)
            words[count++] = study_name(memories[other]);
        if (there != back)
            snprintf(doubt, sizeof doubt, "%s evicts %.0f %% of it, it evicts %.0f %% of %s",
                     study_name(memories[other]), 100 * evicted[victim][other],
                     100 * evicted[other][victim], study_name(memories[other]));
    }
    struct measure *m =
        measures_add_words(context->measures, sharing_metric_of(name, study, "shared_with"), words,
                           count, "two agents, each way round");
    m->n = (uint32_t)repeats_of(study);
    m->confidence = *doubt ? 0.5 : fmax(0.5, 1 - unclear);
    if (*doubt)
        measure_set_status(m, MEASURE_NOISY, doubt);
}

static void sharing_report_missing(struct probe_context *context, const struct study *study,
                                   const char *what)
{
    char name[METRIC_MAX];
    const char *reason = !study->supported   ? "this GPU has no such cache"
                         : size_known(study) ? "constant memory is too small to push its lines out"
                                             : "the size of the cache is not known";
    measures_add_missing(context->measures, sharing_metric_of(name, study, what),
                         study->supported ? MEASURE_FAILED : MEASURE_UNSUPPORTED, reason);
}

static int sharing_run_shared(struct probe_context *context, struct err *err)
{
    struct intrusion intrusions[MEMORIES * MEMORIES];
    size_t pairs[MEMORIES * MEMORIES], count = 0;
    double evicted[MEMORIES][MEMORIES], shares[MEMORIES * MEMORIES];
    int rc = study_all(context, err);
    if (rc)
        return rc;
    for (size_t pair = 0; pair < MEMORIES * MEMORIES; pair++) {
        const struct study *victim = &context->studies[memories[pair / MEMORIES]];
        const struct study *intruder = &context->studies[memories[pair % MEMORIES]];
        evicted[pair / MEMORIES][pair % MEMORIES] = NAN;
        if (victim == intruder || !usable(victim) || !usable(intruder))
            continue;
        intrusions[count] = (struct intrusion){victim, intruder, 0};
        pairs[count++] = pair;
    }
    if (count)
        rc = run_intrusions(context, intrusions, count, shares, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < count; i++)
        evicted[pairs[i] / MEMORIES][pairs[i] % MEMORIES] = shares[i];
    for (size_t i = 0; i < MEMORIES; i++) {
        const struct study *study = &context->studies[memories[i]];
        if (usable(study))
            report_shared(context, i, evicted);
        else
            sharing_report_missing(context, study, "shared_with");
        if (rc)
            return rc;
    }
    return 0;
}

/* Warp 0 against every other warp: those that evict its lines use the same instance. */
static int count_instances(struct probe_context *context, const struct study *study,
                           struct err *err)
{
    uint32_t warps = device_limits(context->device)->warp_count;
    char name[METRIC_MAX];
    if (warps < 2) {
        repeats_unsupported(context, sharing_metric_of(name, study, "per_sm"),
                            "a block has no second warp to compare with");
        return 0;
    }
    struct intrusion *intrusions = mem_array(warps, sizeof *intrusions);
    double *evicted = mem_array(warps, sizeof *evicted);
    for (uint32_t w = 1; w < warps; w++)
        intrusions[w - 1] = (struct intrusion){study, study, w};
    int rc = run_intrusions(context, intrusions, warps - 1, evicted, err);
    uint32_t together = 1;
    double doubt = 0;
    for (uint32_t w = 1; w < warps && !rc; w++) {
        together += evicted[w - 1] > EVICTED;
        doubt = fmax(doubt, doubt_of(evicted[w - 1]));
    }
    free(intrusions);
    free(evicted);
    if (rc)
        return rc;
    struct measure *m =
        measures_add(context->measures, sharing_metric_of(name, study, "per_sm"),
                     round((double)warps / together), "", "warp 0 against every other warp");
    m->n = (uint32_t)repeats_of(study) * (warps - 1);
    m->confidence = fmax(0.5, 1 - doubt);
    const char *reason = warps % together ? "the warps do not fall into groups of one size"
                         : doubt > 0.5    ? "some warps evict a part of the lines only"
                                          : NULL;
    if (reason)
        measure_set_status(m, MEASURE_NOISY, reason);
    return 0;
}

static int run_per_sm(struct probe_context *context, struct err *err)
{
    int rc = study_all(context, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < MEMORIES; i++) {
        const struct study *study = &context->studies[memories[i]];
        if (usable(study))
            rc = count_instances(context, study, err);
        else
            sharing_report_missing(context, study, "per_sm");
        if (rc)
            return rc;
    }
    return 0;
}

const struct probe probe_cache_shared = {
    .description = {"cache.shared", "which caches of an SM are one array", PROFILE_STANDARD},
    .depends = {"l1_data.line", "texture.line", "read_only.line", "constant_l1.line"},
    .metrics = {"l1_data.shared_with", "texture.shared_with", "read_only.shared_with",
                "constant_l1.shared_with"},
    .run = sharing_run_shared,
};

const struct probe probe_cache_per_sm = {
    .description = {"cache.per_sm", "how many of each cache an SM has", PROFILE_STANDARD},
    .depends = {"l1_data.line", "texture.line", "read_only.line", "constant_l1.line"},
    .metrics = {"l1_data.per_sm", "texture.per_sm", "read_only.per_sm", "constant_l1.per_sm"},
    .run = run_per_sm,
};
