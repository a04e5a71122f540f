/* Hit and miss latency of a cache and the threshold between them: stage STUDY_LEVEL. */
#include "probes/caches/level.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/portable_math.h"
#include "cpd/cpd.h"
#include "probes/method/chase.h"
#include "probes/method/pool.h"
#include "probes/method/timer.h"

/* Largest sum of both shares: hits that look like misses, and misses that look like hits. */
static const double MISJUDGED_MAX = 0.15;

int32_t level_sm(const struct probe_context *context, size_t number, size_t count)
{
    return (int32_t)(number * device_limits(context->device)->sm_count / count);
}

size_t level_sm_count(const struct probe_context *context, size_t most)
{
    size_t sms = device_limits(context->device)->sm_count;
    return sms < most ? sms : most;
}

void level_settle(struct study *study, const struct pool *hits, const struct pool *misses)
{
    const struct pool_centre hit = pool_centre(hits);
    const struct pool_centre miss = pool_centre(misses);
    const struct contrast contrast = contrast_between(hits, misses);
    study->hit_cycles = pool_lower_mean(hits, 1 - hit.spike_share);
    study->miss_cycles = pool_lower_mean(misses, 1 - miss.spike_share);
    study->penalty_error = portable_hypot(hit.error, miss.error);
    study->level_n = (uint32_t)(hits->all + misses->all);
    study->sigma_cycles = hit.sigma;
    study->spike_share = hit.spike_share;
    study->threshold = contrast.threshold;
    study->stray_share = contrast.stray_share;
    study->slip_share = contrast.slip_share;
}

int level_check(const struct study *study, struct err *err)
{
    if (study->stray_share + study->slip_share <= MISJUDGED_MAX)
        return 0;
    return err_set(err, -ENODATA,
                   "hits of %.0f cycles are not told from misses of %.0f by single loads",
                   study->hit_cycles, study->miss_cycles);
}

/* Hits and misses of the caches of global memory: L1 data, texture and read-only.
 *
 * Several SMs run at once, each with its own memory: a cache that SMs share must not hold for one
 * SM what another has loaded. Every load is compared with a load of the same line past the cache,
 * by the same SM, since SMs and slices of L2 are not equally far from each other. */

enum {
    WORD_BYTES = 8,
    SMALL_BYTES = 256,  /* fits into any cache */
    SMALL_LOADS = 1024, /* timed per SM */
    SMALL_PASSES = 3,   /* to warm it */
    APART_BYTES = 1088, /* more than any line, and not always in the same set */
    APART_COUNT = 128,
    APART_AT = 4096, /* behind the small array */
    SPAN_BYTES = APART_AT + APART_BYTES * APART_COUNT,
};

/* Loads that take at most this share of the time of the same loads past the cache are cached. */
static const double SUPPORTED_SHARE = 0.9;

/* So are loads that a repetition makes faster by SAVED_CYCLES and more than SAVED_SURELY standard
 * errors. Above SAVED_PERHAPS nothing is concluded. */
static const double SAVED_CYCLES = 2, SAVED_SURELY = 6, SAVED_PERHAPS = 3;

/* The slowest loads, which may be spikes, do not count for that. */
static const double SAVED_SHARE = 0.9;

/* Misses slower than this many times the slowest loads of the next level were served by a further
 * level. */
static const double FURTHER = 1.2;

/* Loads the small array by the path and past the cache, then lines far apart that are in L2 but in
 * no other cache yet, and these once more past the cache. */
static struct device_job global_make_job(const struct study *study, size_t number, int32_t sm)
{
    const struct device_array small = {.path = study->path,
                                       .offset_bytes = number * SPAN_BYTES,
                                       .size_bytes = SMALL_BYTES,
                                       .stride_bytes = WORD_BYTES};
    const struct device_array apart = {.path = study->path,
                                       .offset_bytes = number * SPAN_BYTES + APART_AT,
                                       .size_bytes = APART_BYTES * APART_COUNT,
                                       .stride_bytes = APART_BYTES};
    struct device_array past = small, apart_past = apart;
    struct device_job job = chase_job();
    past.path = apart_past.path = DEVICE_GLOBAL_CG;
    job.agents[0].sm = sm;
    chase_add(&job, DEVICE_WARM, &small, SMALL_PASSES * SMALL_BYTES / WORD_BYTES);
    chase_add(&job, DEVICE_CHASE, &small, SMALL_LOADS);
    chase_add(&job, DEVICE_CHASE, &past, SMALL_LOADS);
    chase_add(&job, DEVICE_WARM, &apart_past, 0);
    chase_add(&job, DEVICE_CHASE, &apart, 0);
    chase_add(&job, DEVICE_CHASE, &apart_past, 0);
    return job;
}

struct global_pools {
    struct pool hits, past;         /* the small array */
    struct pool misses, apart_past; /* the lines apart */
};

static int global_run_jobs(struct probe_context *context, const struct study *study,
                           struct global_pools *pools, struct err *err)
{
    struct device_job jobs[LEVEL_SMS];
    struct device_answer *answers;
    uint64_t memory = device_limits(context->device)->global_bytes;
    size_t count = level_sm_count(context, LEVEL_SMS);
    if (memory && memory / SPAN_BYTES < count)
        count = memory < SPAN_BYTES ? 1 : (size_t)(memory / SPAN_BYTES);
    for (size_t i = 0; i < count; i++)
        jobs[i] = global_make_job(study, i, level_sm(context, i, count));
    int rc = chase_run(context, jobs, count, 0, &answers, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < count; i++) {
        pool_add(&pools->hits, &answers[i].samples[0]);
        pool_add(&pools->past, &answers[i].samples[1]);
        pool_add(&pools->misses, &answers[i].samples[2]);
        pool_add(&pools->apart_past, &answers[i].samples[3]);
    }
    chase_free(answers, count);
    return 0;
}

/* By how many standard errors, beyond SAVED_CYCLES, a repeated load is faster than a first one,
 * apart from what the loads past the cache say of the same lines: the path may take longer than
 * theirs, and the lines of the small array may be nearer. A cache may save only a few cycles, so
 * the noise decides. */
static double global_saved(const struct global_pools *pools)
{
    const struct pool *const all[] = {&pools->misses, &pools->apart_past, &pools->hits,
                                      &pools->past};
    static const double signs[] = {1, -1, -1, 1};
    double saved = 0, error = 0;
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        double range = pool_quantile(all[i], SAVED_SHARE) - pool_quantile(all[i], 1 - SAVED_SHARE);
        saved += signs[i] * pool_lower_mean(all[i], SAVED_SHARE);
        error = portable_hypot(error, range / 2 / sqrt((double)all[i]->all));
    }
    return (saved - SAVED_CYCLES) / error;
}

int level_measure_global(struct probe_context *context, struct study *study, struct err *err)
{
    struct global_pools *pools = mem_array(1, sizeof *pools);
    int rc = global_run_jobs(context, study, pools, err);
    if (rc)
        goto out;
    /* With a tiny L2, some of the misses go on to main memory; they do not count. The path may take
     * longer than the one past the cache. */
    double longer = pool_quantile(&pools->misses, 0.25) - pool_quantile(&pools->apart_past, 0.25);
    pool_cut(&pools->misses, FURTHER * (pool_quantile(&pools->apart_past, 0.95) + fmax(0, longer)));
    level_settle(study, &pools->hits, &pools->misses);
    double hit = study->hit_cycles - timer_overhead(context, study->path);
    double past = pool_lower_mean(&pools->past, 1 - pool_centre(&pools->past).spike_share) -
                  timer_overhead(context, DEVICE_GLOBAL_CG);
    double saved = global_saved(pools);
    study->supported = hit < SUPPORTED_SHARE * past || saved > SAVED_SURELY;
    if (study->supported)
        rc = level_check(study, err);
    else if (saved > SAVED_PERHAPS)
        rc = err_set(err, -ENODATA,
                     "repeated loads of %.0f cycles are hardly told from first ones of %.0f",
                     study->hit_cycles, study->miss_cycles);
out:
    free(pools);
    return rc;
}

/* The levels that serve loads from constant memory: L1, perhaps L1.5, and L2.
 *
 * GPUs empty both caches at each launch. So the first touch of a line in a launch is served by L2,
 * into which an earlier launch has brought it. Then other lines push it out of L1, and it is
 * touched again: now L1.5 serves it, or L2 again if there is no L1.5. Each element is compared with
 * itself on the same SM, since slices of L2 are not equally far. The noise is how much the first
 * touches of one element differ between launches.
 *
 * An L1.5 with fewer lines than there are elements loses them all before they are touched again. So
 * if none is seen, it is searched again with fewer elements.
 *
 * One job runs at a time: SMs may share an L1.5, and all load the same constant memory. */

enum {
    LINE_BYTES = 64,      /* loads this far apart push out enough, whatever the line */
    ELEMENT_BYTES = 1088, /* more than any line, and not always in the same set */
    ELEMENTS_MAX = 64,
    DOUBLINGS_MAX = 10, /* of the array that pushes lines out of L1 */
    PUSH_MIN_BYTES = 1024,
    FEWER = 4,            /* elements are divided by this while no L1.5 is seen */
    FEW_PUSH_BYTES = 256, /* the smallest push then: such an L1.5 may hold no more than 1 KiB */
    FEW_LOADS = 128,      /* second touches per size then, by repetition */
    PAST_BYTES = ELEMENT_BYTES * 128,
};

/* L1 did not serve the second touches if at least this share of them is slower than L1's own loads,
 * without spikes. There is an L1.5 if most of those are faster than from L2, or a few certainly
 * are: its lines may evict each other. */
static const double PUSHED_SHARE = 0.2, MOSTLY = 0.5, SURELY = 0.1;

/* L1's loads are at most as slow as this quantile of them, without spikes. */
static const double L1_QUANTILE = 0.99;

/* Ordinary noise ends this many interquartile ranges, and some cycles, beyond the quartiles. */
static const double FENCE_RANGES = 3, FENCE_CYCLES = 2;

/* A second touch was not served by L2 if it takes less than this share of the fastest first touches
 * (a few of which are left out). This holds even if first touches differ a lot, as they do if
 * copies of a line in L2 come and go. */
static const double FASTER_SHARE = 0.85, FASTEST_QUANTILE = 0.02;

/* With a coarse timer two caches are told apart if at least this share of what L1 lost is slower
 * than all of L1's own loads. */
static const double TOLD_APART = 0.85;

/* First touches below this share of the latency of L2 were not served by L2. */
static const double HELD_SHARE = 0.7;

/* Jobs by SM, and for each SM the growing sizes of the array that pushes lines out. */
struct trial {
    size_t sms, sizes, elements;
    size_t rows; /* jobs per size: one per SM, or as many on each */
    uint64_t push_bytes[DOUBLINGS_MAX];
    double *first, *second; /* [row][size][element], timer included */
    double *usual;          /* [sm][element]: median of the first touches */
    size_t usual_elements;  /* of usual: all, also if the trial has fewer */
    double low; /* a second touch is faster if it is below its usual first one by more than this */
    double floor; /* or if it is below this: no first touch was that fast */
};

static size_t trial_at(const struct trial *trial, size_t row, size_t size, size_t element)
{
    return (row * trial->sizes + size) * trial->elements + element;
}

static double trial_usual(const struct trial *trial, size_t row, size_t element)
{
    return trial->usual[row % trial->sms * trial->usual_elements + element];
}

static void trial_set_push(struct trial *trial, uint64_t least_bytes, uint64_t limit_bytes)
{
    trial->sizes = 0;
    for (uint64_t bytes = least_bytes; bytes <= limit_bytes && trial->sizes < DOUBLINGS_MAX;
         bytes *= 2)
        trial->push_bytes[trial->sizes++] = bytes;
}

static int trial_init(struct probe_context *context, struct trial *trial, struct err *err)
{
    uint64_t limit = device_limits(context->device)->constant_bytes;
    if (limit < 4 * ELEMENT_BYTES)
        return err_set(err, -ENOTSUP, "too little constant memory");
    *trial = (struct trial){.sms = level_sm_count(context, LEVEL_SMS)};
    trial->rows = trial->sms;
    trial_set_push(trial, PUSH_MIN_BYTES, limit);
    uint64_t room = limit / ELEMENT_BYTES - 1; /* the last one is for the first load */
    trial->elements = room < ELEMENTS_MAX ? (size_t)room : ELEMENTS_MAX;
    trial->usual_elements = trial->elements;
    size_t count = trial->sms * trial->sizes * trial->elements;
    trial->first = mem_array(2 * count + trial->sms * trial->elements, sizeof *trial->first);
    trial->second = trial->first + count;
    trial->usual = trial->second + count;
    return 0;
}

static struct device_array constant_array(uint64_t offset, uint64_t bytes, uint64_t stride)
{
    return (struct device_array){.path = DEVICE_CONSTANT,
                                 .offset_bytes = offset,
                                 .size_bytes = bytes,
                                 .stride_bytes = stride};
}

void level_prime_constant(const struct probe_context *context, struct device_job *job,
                          uint32_t agent)
{
    uint64_t limit = device_limits(context->device)->constant_bytes;
    const struct device_array last = constant_array(limit - LINE_BYTES, LINE_BYTES, LINE_BYTES);
    chase_add(job, DEVICE_WARM, &last, 0)->agent = agent;
}

static struct device_job trial_job(const struct probe_context *context, const struct trial *trial,
                                   size_t row, size_t size)
{
    const struct device_array elements =
        constant_array(0, trial->elements * ELEMENT_BYTES, ELEMENT_BYTES);
    const struct device_array push = constant_array(0, trial->push_bytes[size], LINE_BYTES);
    struct device_job job = chase_job();
    job.agents[0].sm = level_sm(context, row % trial->sms, trial->sms);
    level_prime_constant(context, &job, 0);
    chase_add(&job, DEVICE_CHASE, &elements, 0)->keep = (uint32_t)trial->elements;
    chase_add(&job, DEVICE_WARM, &push, 0);
    chase_add(&job, DEVICE_CHASE, &elements, 0)->keep = (uint32_t)trial->elements;
    return job;
}

static int run_trial(struct probe_context *context, struct trial *trial, struct err *err)
{
    size_t count = trial->rows * trial->sizes;
    struct device_job *jobs = mem_array(count, sizeof *jobs);
    struct device_answer *answers;
    for (size_t i = 0; i < count; i++)
        jobs[i] = trial_job(context, trial, i / trial->sizes, i % trial->sizes);
    int rc = chase_run(context, jobs, count, 1, &answers, err);
    free(jobs);
    if (rc)
        return rc;
    for (size_t i = 0; i < count * trial->elements; i++) {
        const struct device_sample *samples = answers[i / trial->elements].samples;
        trial->first[i] = samples[0].kept[i % trial->elements];
        trial->second[i] = samples[1].kept[i % trial->elements];
    }
    chase_free(answers, count);
    return 0;
}

/* The noise: how much the first touches of the same element differ. */
static void learn_noise(struct trial *trial)
{
    size_t count = trial->sms * trial->sizes * trial->elements;
    double *noise = mem_array(count, sizeof *noise);
    for (size_t sm = 0; sm < trial->sms; sm++)
        for (size_t e = 0; e < trial->elements; e++) {
            double touches[DOUBLINGS_MAX];
            for (size_t size = 0; size < trial->sizes; size++)
                touches[size] = trial->first[trial_at(trial, sm, size, e)];
            double usual = cpd_median(touches, trial->sizes);
            trial->usual[sm * trial->elements + e] = usual;
            for (size_t size = 0; size < trial->sizes; size++)
                noise[trial_at(trial, sm, size, e)] = touches[size] - usual;
        }

    double lower = cpd_quantile(noise, count, 0.25), upper = cpd_quantile(noise, count, 0.75);
    trial->low = lower - FENCE_RANGES * (upper - lower) - FENCE_CYCLES;
    free(noise);
}

/* For one size: the second touches that L1 did not serve, and how many of them were faster than
 * from L2. */
struct pushed {
    double missed, sooner; /* shares: of all; of those missed */
    double surely;         /* share of those missed: faster than any first touch */
    struct pool pool;      /* the faster ones */
};

static void constant_look_at(const struct trial *trial, size_t size, double l1_cut,
                             struct pushed *out)
{
    double missed = 0, sooner = 0, surely = 0, all = (double)(trial->rows * trial->elements);
    *out = (struct pushed){0};
    for (size_t row = 0; row < trial->rows; row++)
        for (size_t e = 0; e < trial->elements; e++) {
            double cycles = trial->second[trial_at(trial, row, size, e)];
            if (cycles <= l1_cut)
                continue;
            missed++;
            if (cycles - trial_usual(trial, row, e) >= trial->low && cycles >= trial->floor)
                continue;
            sooner++;
            surely += cycles < trial->floor;
            pool_add_load(&out->pool, cycles);
        }
    out->missed = missed / all;
    out->sooner = missed > 0 ? sooner / missed : 0;
    out->surely = missed > 0 ? surely / missed : 0;
}

struct constant_pools {
    struct pool l1_hits, l15_hits, first, past;
    struct pushed pushed; /* for find_l15 */
};

/* Finds the size with the largest share pushed out of L1 while L1.5 still held it. out_missed: that
 * share. */
static bool find_l15(const struct trial *trial, const struct study *l1, struct study *l15,
                     struct constant_pools *pools, double *out_missed)
{
    struct pushed *pushed = &pools->pushed;
    double ordinary = L1_QUANTILE * (1 - l1->spike_share);
    double cut = pool_reading(&pools->l1_hits, ordinary) + FENCE_CYCLES, best = 0;
    *out_missed = 0;
    for (size_t size = 0; size < trial->sizes; size++) {
        constant_look_at(trial, size, cut, pushed);
        double weight = pushed->missed * pushed->sooner;
        /* Slow loads of L1 are faster than L2 too. */
        double strays = l1->spike_share + 1 - L1_QUANTILE;
        bool surely = pushed->missed * (pushed->surely - SURELY) >= strays;
        bool seen = pushed->sooner >= MOSTLY || surely;
        if (pushed->missed < l1->spike_share + PUSHED_SHARE || !seen || weight <= best)
            continue;
        best = weight;
        *out_missed = pushed->missed;
        pools->l15_hits = pushed->pool;
        l15->push_bytes = trial->push_bytes[size];
    }
    return best > 0;
}

/* The same with fewer and fewer elements, as long as none is seen. */
static int find_few_lines(struct probe_context *context, const struct trial *whole,
                          const struct study *l1, struct study *l15, struct constant_pools *pools,
                          double *out_missed, struct err *err)
{
    int rc = 0;
    for (size_t elements = whole->elements / FEWER; !rc && !l15->supported && elements > 1;
         elements /= FEWER) {
        struct trial few = *whole; /* what was learnt of first touches remains true */
        trial_set_push(&few, FEW_PUSH_BYTES, device_limits(context->device)->constant_bytes);
        few.elements = elements;
        few.rows = (FEW_LOADS / (few.sms * elements) + 1) * few.sms;
        size_t count = few.rows * few.sizes * elements;
        few.first = mem_array(2 * count, sizeof *few.first);
        few.second = few.first + count;
        rc = run_trial(context, &few, err);
        l15->supported = !rc && find_l15(&few, l1, l15, pools, out_missed);
        free(few.first);
    }
    return rc;
}

/* Loads served by constant L1, and loads past all caches before L2. The former bring constant
 * memory into L2. */
static int measure_ends(struct probe_context *context, struct constant_pools *pools,
                        struct err *err)
{
    uint64_t limit = device_limits(context->device)->constant_bytes;
    const struct device_array all = constant_array(0, limit, LINE_BYTES);
    const struct device_array small = constant_array(0, SMALL_BYTES, WORD_BYTES);
    const struct device_array past = {
        .path = DEVICE_GLOBAL_CG, .size_bytes = PAST_BYTES, .stride_bytes = ELEMENT_BYTES};
    size_t sms = level_sm_count(context, LEVEL_SMS);
    struct device_job jobs[2 * LEVEL_SMS];
    struct device_answer *answers;
    for (size_t i = 0; i < 2 * sms; i++) {
        jobs[i] = chase_twice(i < sms ? &small : &past, SMALL_LOADS);
        jobs[i].agents[0].sm = level_sm(context, i % sms, sms);
    }
    chase_add(&jobs[0], DEVICE_WARM, &all, 0);
    int rc = chase_run(context, jobs, 2 * sms, 1, &answers, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < 2 * sms; i++)
        pool_add(i < sms ? &pools->l1_hits : &pools->past, &answers[i].samples[0]);
    chase_free(answers, 2 * sms);
    return 0;
}

/* If something kept constant memory from one launch to the next, the absence of L1.5 cannot be
 * concluded. */
static int check_emptied(const struct probe_context *context, const struct constant_pools *pools,
                         struct err *err)
{
    double first = pool_centre(&pools->first).cycles - timer_overhead(context, DEVICE_CONSTANT);
    double past = pool_centre(&pools->past).cycles - timer_overhead(context, DEVICE_GLOBAL_CG);
    if (first >= HELD_SHARE * past)
        return 0;
    return err_set(err, -ENODATA,
                   "first loads of constant memory take %.0f cycles where L2 takes %.0f: it was "
                   "cached before the launch",
                   first, past);
}

/* The greatest divisor of all readings: the step of a timer that counts several cycles at once. The
 * loads of one cache are not always enough, since all of them may read the same. */
static double common_divisor(const struct trial *trial, const struct pool *l1_hits)
{
    uint64_t divisor = (uint64_t)pool_reading(l1_hits, 0);
    for (size_t i = 0; i < trial->sms * trial->sizes * trial->elements; i++) {
        const uint64_t readings[] = {(uint64_t)trial->first[i], (uint64_t)trial->second[i]};
        for (size_t k = 0; k < COUNT_OF(readings); k++)
            for (uint64_t rest = readings[k]; rest;) {
                uint64_t next = divisor % rest;
                divisor = rest;
                rest = next;
            }
    }
    return (double)divisor;
}

/* Standard error of the mean first touch: slices of L2 are not equally far, and all SMs load the
 * same lines. So only loads of different lines are independent. */
static double error_between_lines(const struct trial *trial)
{
    double sum = 0, squares = 0, count = (double)trial->elements;
    for (size_t e = 0; e < trial->elements; e++) {
        double line = 0;
        for (size_t sm = 0; sm < trial->sms; sm++)
            line += trial_usual(trial, sm, e) / (double)trial->sms;
        sum += line;
        squares += line * line;
    }
    return sqrt(fmax(0, squares / count - sum / count * (sum / count)) / count);
}

static int constant_settle(struct probe_context *context, struct trial *trial,
                           struct constant_pools *pools, struct err *err)
{
    struct study *l1 = &context->studies[STUDY_CONSTANT_L1];
    struct study *l15 = &context->studies[STUDY_CONSTANT_L15];
    double missed = 0;
    learn_noise(trial);
    double lines_error = error_between_lines(trial);

    for (size_t i = 0; i < trial->sms * trial->sizes * trial->elements; i++)
        pool_add_load(&pools->first, trial->first[i]);
    trial->floor = FASTER_SHARE * pool_quantile(&pools->first, FASTEST_QUANTILE);
    level_settle(l1, &pools->l1_hits, &pools->first);
    l1->supported = l1->hit_cycles < l1->miss_cycles && l1->stray_share + l1->slip_share < MOSTLY;
    l15->supported = l1->supported && find_l15(trial, l1, l15, pools, &missed);
    int rc = l1->supported ? find_few_lines(context, trial, l1, l15, pools, &missed, err) : 0;
    if (rc)
        return rc;
    double step = fmax(pool_centre(&pools->l1_hits).step, common_divisor(trial, &pools->l1_hits));
    if (l1->supported && step > COARSE_CYCLES && missed < TOLD_APART)
        return err_set(err, -ENODATA,
                       "the timer counts in steps of %.0f cycles: L1 is not told from what may be "
                       "behind it",
                       step);
    if (!l15->supported) {
        l1->penalty_error = portable_hypot(l1->penalty_error, lines_error);
        return check_emptied(context, pools, err);
    }
    /* With a coarse timer, loads of L1.5 that read as fast as those of L1 are missing here. */
    double lost = step > COARSE_CYCLES ? (1 - missed) * step : 0;
    level_settle(l15, &pools->l15_hits, &pools->first);
    l15->penalty_error = portable_hypot(l15->penalty_error, portable_hypot(lines_error, lost));
    l15->spike_share = l1->spike_share; /* its own look like loads of L2 */
    level_settle(l1, &pools->l1_hits, &pools->l15_hits);
    l1->penalty_error = portable_hypot(l1->penalty_error, lost);
    return level_check(l1, err);
}

int level_measure_constant(struct probe_context *context, struct err *err)
{
    struct constant_pools *pools = mem_array(1, sizeof *pools);
    struct trial trial = {0};
    int rc = trial_init(context, &trial, err);
    if (rc)
        goto out;
    rc = measure_ends(context, pools, err);
    if (rc)
        goto out;
    rc = run_trial(context, &trial, err);
    if (rc)
        goto out;
    rc = constant_settle(context, &trial, pools, err);
out:
    free(trial.first);
    free(pools);
    return rc;
}
