/* Latency of a load.
 *
 * Chases of two lengths are timed as a whole. The latency is the difference of their times over the
 * difference of their lengths, so that constant costs (clock reads, loop set-up) cancel.
 *
 * If loads scatter by a large part of their latency, a sum of them hides spikes. And since no load
 * takes less than one cycle, the mean of the scatter is not its centre. Then the median of single
 * loads is the better figure, and the chases only confirm it. */
#include "probes/method/latency.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/portable_math.h"
#include "cpd/cpd.h"
#include "probes/method/chase.h"
#include "probes/method/pool.h"
#include "probes/method/repeats.h"
#include "probes/method/timer.h"

enum {
    REPEATS = 3, /* batches */
    PAIRS = 2,   /* short and long chases per job */
    JOBS_MIN = 64,
    JOBS_MAX = 4096,
    LONG_MAX = 2048,
    LONG_MIN = 32,
    SHORTER = 4,         /* long length / short length */
    AGAIN_MAX = 2,       /* further attempts if a latency does not repeat */
    SINGLE_LOADS = 1024, /* per job */
    SINGLE_JOBS_MIN = 16,
    SINGLE_JOBS_MAX = 128,
    REASON_MAX = 160,
};

/* Wanted standard error of one batch, as a share of the latency; the second for chases that only
 * confirm. */
static const double PRECISION = 0.004, CONFIRMING_PRECISION = 0.02;

/* If the half range of the batches is above this share, the latency does not repeat. */
static const double UNSTABLE = 0.02;

/* Expected spikes in a long chase: most chases must have none. */
static const double SPIKES_PER_CHASE = 0.3;

/* Loads that scatter by this share of their latency are timed one by one. */
static const double SCATTERED = 0.1;

/* Single loads and chases may differ by this share, by this many cycles, or by this many standard
 * errors. If loads scatter, the chases only confirm. */
static const double AGREEMENT = 0.02, AGREEMENT_CYCLES = 0.4, AGREEMENT_ERRORS = 4;

static const double AGREEMENT_SCATTERED = 0.1, AGREEMENT_CYCLES_SCATTERED = 2;

/* Chases through constant L1.5 need an array larger than L1, and some of its lines may evict each
 * other. So the two must agree more closely. */
static const double AGREEMENT_L15 = 0.02, AGREEMENT_CYCLES_L15 = 1, AGREEMENT_ERRORS_L15 = 2;

/* L1 may keep some of the lines: at most this share. */
static const double SERVED_BY_L1 = 0.02;

/* Largest share of slow loads that are hidden in the scatter: they move the median. */
static const double UNSEEN = 0.01;

struct estimate {
    double cycles;
    double spread; /* half the range of the repetitions, at least the standard error */
    double ns;     /* 0 if the device has no real-time clock */
    uint32_t n;    /* chases or loads behind it */
};

struct plan {
    uint64_t short_loads, long_loads;
    size_t jobs, batches;
};

static struct plan plan_chases(const struct study *study, double precision, size_t batches)
{
    double length = study->spike_share > 0 ? SPIKES_PER_CHASE / study->spike_share : LONG_MAX;
    struct plan plan = {.long_loads = (uint64_t)fmin(fmax(length, LONG_MIN), LONG_MAX),
                        .batches = batches};
    plan.short_loads = plan.long_loads / SHORTER;
    /* The median of m chases of n loads each has a standard error of up to 1.25 sigma sqrt(n / m),
     * divided by the difference of long and short loads. */
    double loads = (double)(plan.long_loads - plan.short_loads);
    double error = CPD_MEDIAN_ERROR * study->sigma_cycles * sqrt((double)plan.long_loads) / loads;
    double chases = square(error / (precision * study->hit_cycles));
    plan.jobs = (size_t)fmin(fmax(chases / PAIRS, JOBS_MIN), JOBS_MAX);
    return plan;
}

struct times {
    double *short_cycles, *long_cycles, *long_ns; /* PAIRS per job */
};

static void times_init(struct times *times, size_t jobs)
{
    times->short_cycles = mem_array(3 * PAIRS * jobs, sizeof *times->short_cycles);
    times->long_cycles = times->short_cycles + PAIRS * jobs;
    times->long_ns = times->long_cycles + PAIRS * jobs;
}

static int time_batch(struct probe_context *context, const struct device_array *array,
                      const struct plan *plan, struct times *times, struct err *err)
{
    struct device_job *jobs = mem_array(plan->jobs, sizeof *jobs);
    struct device_answer *answers;
    for (size_t i = 0; i < plan->jobs; i++) {
        jobs[i] = chase_job();
        chase_add(&jobs[i], DEVICE_WARM, array, 0);
        for (size_t p = 0; p < PAIRS; p++) {
            chase_add(&jobs[i], DEVICE_AVERAGE, array, plan->short_loads);
            chase_add(&jobs[i], DEVICE_AVERAGE, array, plan->long_loads);
        }
    }
    int rc = chase_run(context, jobs, plan->jobs, 0, &answers, err);
    free(jobs);
    if (rc)
        return rc;
    for (size_t i = 0; i < PAIRS * plan->jobs; i++) {
        const struct device_sample *pair = &answers[i / PAIRS].samples[2 * (i % PAIRS)];
        times->short_cycles[i] = (double)pair[0].total_cycles;
        times->long_cycles[i] = (double)pair[1].total_cycles;
        times->long_ns[i] = (double)pair[1].elapsed_ns;
    }
    chase_free(answers, plan->jobs);
    return 0;
}

static double median_error(const double *cycles, size_t count)
{
    return CPD_MEDIAN_ERROR * CPD_MAD_SIGMA * cpd_mad(cycles, count) / sqrt((double)count);
}

static void latency_settle(const double *cycles, const double *errors, size_t count,
                           struct estimate *out_estimate)
{
    double error = cpd_quantile(errors, count, 1);
    out_estimate->cycles = cpd_median(cycles, count);
    out_estimate->spread = fmax(repeats_half_range(cycles, count), error);
}

static int chase_once(struct probe_context *context, const struct device_array *array,
                      const struct study *study, const struct plan *plan,
                      struct estimate *out_estimate, struct err *err)
{
    size_t count = PAIRS * plan->jobs;
    double loads = (double)(plan->long_loads - plan->short_loads), spikes = study->spike_share;
    double cycles[REPEATS], errors[REPEATS], clocks[REPEATS];
    struct times times;
    times_init(&times, plan->jobs);
    int rc = 0;
    for (size_t i = 0; i < plan->batches && !rc; i++) {
        rc = time_batch(context, array, plan, &times, err);
        if (rc)
            break;
        double longer = chase_undisturbed(times.long_cycles, count, plan->long_loads, spikes);
        double shorter = chase_undisturbed(times.short_cycles, count, plan->short_loads, spikes);
        double ns = cpd_median(times.long_ns, count);
        cycles[i] = (longer - shorter) / loads;
        errors[i] = portable_hypot(median_error(times.long_cycles, count),
                                   median_error(times.short_cycles, count)) /
                    loads;
        clocks[i] = ns > 0 ? cpd_median(times.long_cycles, count) / ns : 0;
    }
    free(times.short_cycles);
    if (rc)
        return rc;
    double clock = cpd_median(clocks, plan->batches);
    latency_settle(cycles, errors, plan->batches, out_estimate);
    out_estimate->ns = clock > 0 ? out_estimate->cycles / clock : 0;
    out_estimate->n = (uint32_t)(plan->batches * count);
    return 0;
}

/* Both methods; `scattered` says which one is the answer. */
struct latency {
    struct estimate chased, single;
    bool scattered;
    struct pool loads; /* single ones, timer included; empty in a further round that needs none */
};

/* Adds the single loads of `count` jobs, timer included, to a pool. */
static int single_batch(struct probe_context *context, const struct device_array *array,
                        size_t count, struct pool *pool, struct err *err)
{
    struct device_job *jobs = mem_array(count, sizeof *jobs);
    struct device_answer *answers;
    for (size_t i = 0; i < count; i++)
        jobs[i] = chase_twice(array, SINGLE_LOADS);
    int rc = chase_run(context, jobs, count, 0, &answers, err);
    free(jobs);
    if (rc)
        return rc;
    for (size_t i = 0; i < count; i++)
        pool_add(pool, &answers[i].samples[0]);
    chase_free(answers, count);
    return 0;
}

static int single_once(struct probe_context *context, const struct device_array *array,
                       const struct study *study, size_t batches, struct latency *both,
                       struct err *err)
{
    double overhead = timer_overhead(context, array->path);
    double latency = fmax(study->hit_cycles - overhead, 1);
    double loads = square(CPD_MEDIAN_ERROR * study->sigma_cycles / (PRECISION * latency));
    size_t jobs = (size_t)fmin(fmax(loads / SINGLE_LOADS, SINGLE_JOBS_MIN), SINGLE_JOBS_MAX);
    double cycles[REPEATS], errors[REPEATS];
    for (size_t i = 0; i < batches; i++) {
        struct pool batch = {0};
        int rc = single_batch(context, array, jobs, &batch, err);
        if (rc)
            return rc;
        const struct pool_centre centre = pool_centre(&batch);
        pool_join(&both->loads, &batch);
        cycles[i] = centre.cycles - overhead;
        errors[i] = portable_hypot(centre.error, UNSEEN * CPD_MEDIAN_ERROR * centre.sigma);
    }
    latency_settle(cycles, errors, batches, &both->single);
    both->single.n = (uint32_t)(batches * jobs * SINGLE_LOADS);
    return 0;
}

bool latency_scatters(const struct probe_context *context, const struct study *study,
                      double timed_cycles)
{
    double overhead = timer_overhead(context, study->path);
    return study->sigma_cycles > SCATTERED * (timed_cycles - overhead);
}

static int latency_measure(struct probe_context *context, const struct device_array *array,
                           const struct study *study, struct latency *out_latency, struct err *err)
{
    double overhead = timer_overhead(context, array->path);
    size_t batches = probe_repeats(context, REPEATS);
    struct latency *l = out_latency;
    l->scattered = latency_scatters(context, study, study->hit_cycles);
    const struct plan plan =
        plan_chases(study, l->scattered ? CONFIRMING_PRECISION : PRECISION, batches);
    for (int attempt = 0; attempt <= AGAIN_MAX; attempt++) {
        int rc = chase_once(context, array, study, &plan, &l->chased, err);
        if (rc)
            return rc;
        l->single = (struct estimate){.cycles = study->hit_cycles - overhead};
        if (l->scattered)
            rc = single_once(context, array, study, batches, l, err);
        if (rc)
            return rc;
        const struct estimate *answer = l->scattered ? &l->single : &l->chased;
        if (answer->spread <= UNSTABLE * answer->cycles)
            break;
    }
    if (l->scattered || context->repeating)
        return 0;
    int rc = single_batch(context, array, SINGLE_JOBS_MIN, &l->loads, err);
    if (rc)
        return rc;
    if (study->id == STUDY_CONSTANT_L15) /* its lines are not equally far: compare the same ones */
        l->single.cycles = pool_centre(&l->loads).cycles - overhead;
    return 0;
}

/* How single loads are distributed; their mean where the value is their median. */
static void note_loads(const struct latency *latency, double overhead, struct facts *notes)
{
    const struct pool *loads = &latency->loads;
    if (!loads->all)
        return;
    if (latency->scattered)
        facts_set_real(notes, "mean", pool_mean(loads) - overhead);
    pool_note_distribution(loads, overhead, notes);
}

/* The two methods must agree; otherwise one of them does not time what it should. */
static bool latency_agree(const struct study *study, const struct latency *latency)
{
    const struct estimate *chased = &latency->chased, *single = &latency->single;
    bool l15 = study->id == STUDY_CONSTANT_L15;
    double share = latency->scattered ? AGREEMENT_SCATTERED : l15 ? AGREEMENT_L15 : AGREEMENT;
    double cycles = latency->scattered ? AGREEMENT_CYCLES_SCATTERED
                    : l15              ? AGREEMENT_CYCLES_L15
                                       : AGREEMENT_CYCLES;
    double errors = l15 ? AGREEMENT_ERRORS_L15 : AGREEMENT_ERRORS;
    double room = fmax(fmax(share * chased->cycles, cycles),
                       errors * portable_hypot(chased->spread, single->spread));
    return fabs(chased->cycles - single->cycles) <= room;
}

/* The share of loads meant for constant L1.5 that are nearer to L1. */
static double served_by_l1(const struct probe_context *context, const struct study *study,
                           const struct latency *latency)
{
    const struct study *l1 = &context->studies[STUDY_CONSTANT_L1];
    if (study->id != STUDY_CONSTANT_L15 || !latency->loads.all)
        return 0;
    return pool_share_below(&latency->loads, (l1->hit_cycles + study->hit_cycles) / 2);
}

/* Marks a latency as noisy if its loads are not the intended ones. */
static void check_loads(const struct probe_context *context, const struct study *study,
                        const struct latency *latency, struct measure *measure)
{
    const struct estimate *chased = &latency->chased, *single = &latency->single;
    double l1_share = served_by_l1(context, study, latency);
    char reason[REASON_MAX];
    if (!latency_agree(study, latency))
        snprintf(reason, sizeof reason,
                 "single loads take %.1f cycles after correction, long chases %.1f per load",
                 single->cycles, chased->cycles);
    else if (l1_share > SERVED_BY_L1)
        snprintf(reason, sizeof reason, "L1 served %.1f %% of the loads", 100 * l1_share);
    else
        return;
    measure->confidence = 0.5;
    measure_set_status(measure, MEASURE_NOISY, reason);
}

int latency_report(struct probe_context *context, const char *metric,
                   const struct device_array *array, const struct study *study, struct err *err)
{
    struct latency latency = {0};
    int rc = latency_measure(context, array, study, &latency, err);
    if (rc)
        return rc;
    const struct estimate *answer = latency.scattered ? &latency.single : &latency.chased;
    double ns = latency.chased.ns * answer->cycles / latency.chased.cycles;
    struct measure *m =
        measures_add(context->measures, metric, answer->cycles, "cycles",
                     latency.scattered ? "median of single loads" : "average of long chases");
    m->spread = answer->spread;
    m->n = answer->n;
    repeats_settle(m);
    if (ns > 0)
        facts_set_real(&m->notes, "ns", ns);
    note_loads(&latency, timer_overhead(context, array->path), &m->notes);
    check_loads(context, study, &latency, m);
    return 0;
}
