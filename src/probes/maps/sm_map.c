/* The probes that measure each SM alone: its latency to L1 and to L2, so that a deviating SM is
 * found. */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/portable_math.h"
#include "base/str.h"
#include "cpd/cpd.h"
#include "probes/method/chase.h"
#include "probes/method/latency.h"
#include "probes/method/pool.h"
#include "probes/method/repeats.h"
#include "probes/method/timer.h"

enum {
    REPEATS = 3,  /* batches */
    JOBS_MIN = 2, /* per SM and batch */
    JOBS_MAX = 32,
    CHASES = 4, /* per job */
    LOADS_MIN = 32,
    LOADS_MAX = 512,
    L1_BYTES = 1024, /* inside the smallest L1 */
    /* Enough lines to lie in all slices of L2, so that differences come from the SMs and not from
     * the place of one line. */
    L2_BYTES = 16 * 1024,
    STRIDE_BYTES = 128,
};

/* Expected spikes in a chase: most chases must have none. */
static const double SPIKES_PER_CHASE = 0.3;

/* Wanted standard error of one SM's figure, as a share: differences must come from the SMs. */
static const double PRECISION = 0.01;

/* The figure of an SM is a median of chases, whose standard error is larger than that of a mean:
 * CPD_MEDIAN_ERROR, rounded. It decides how many jobs are asked for, so with more digits records
 * would no longer have the answers. */
static const double MEDIAN_ERROR = 1.25;

struct map {
    const char *metric;
    const char *worst_metric, *worst_sm_metric; /* NULL: SMs differ by their distance */
    struct device_array array;
    double expected_cycles;
    uint64_t loads;
    double spike_share;
    size_t sms, batches;
    size_t jobs, per_sm; /* jobs per SM and batch, chases per SM in all */
    double *chases;      /* per_sm of SM 0, then of SM 1, ...: cycles per load */
    struct pool *pools;  /* per SM: single loads instead, if they scatter too much; else NULL */
    double *cycles;      /* per SM */
};

static int run_batch(struct probe_context *context, struct map *map, size_t repeat, struct err *err)
{
    size_t count = map->jobs * map->sms;
    double overhead = timer_overhead(context, map->array.path);
    struct device_job *jobs = mem_array(count, sizeof *jobs);
    struct device_answer *answers;
    for (size_t i = 0; i < count; i++) {
        jobs[i] = chase_job();
        jobs[i].agents[0].sm = (int32_t)(i % map->sms);
        chase_add(&jobs[i], DEVICE_WARM, &map->array, 0);
        for (size_t c = 0; c < CHASES; c++)
            chase_add(&jobs[i], map->pools ? DEVICE_CHASE : DEVICE_AVERAGE, &map->array,
                      map->loads);
    }
    int rc = chase_run(context, jobs, count, 0, &answers, err);
    free(jobs);
    if (rc)
        return rc;
    for (size_t i = 0; i < count; i++) {
        double *chases = &map->chases[(i % map->sms) * map->per_sm +
                                      (repeat * map->jobs + i / map->sms) * CHASES];
        for (size_t c = 0; c < CHASES; c++) {
            const struct device_sample *sample = &answers[i].samples[c];
            /* Chases are timed once as a whole, single loads each by itself. */
            double timed = map->pools ? overhead * (double)map->loads : overhead;
            chases[c] = ((double)sample->total_cycles - timed) / (double)map->loads;
            if (map->pools)
                pool_add(&map->pools[i % map->sms], sample);
        }
    }
    chase_free(answers, count);
    return 0;
}

/* Spikes only add time: the chases without one are the lower part of all. */
static int measure_map(struct probe_context *context, struct map *map, struct err *err)
{
    double undisturbed = portable_pow(1 - map->spike_share, (double)map->loads);
    for (size_t i = 0; i < map->batches; i++) {
        int rc = run_batch(context, map, i, err);
        if (rc)
            return rc;
    }
    double overhead = timer_overhead(context, map->array.path);
    for (size_t i = 0; i < map->sms; i++)
        map->cycles[i] =
            map->pools ? pool_centre(&map->pools[i]).cycles - overhead
                       : cpd_quantile(&map->chases[i * map->per_sm], map->per_sm, undisturbed / 2);
    return 0;
}

/* The worst SM relative to the median one, for each third of its chases: what does not repeat is no
 * property of the SM. Further rounds measure the same SM. */
static void report_worst(struct probe_context *context, const struct map *map, size_t worst)
{
    size_t per_batch = map->per_sm / REPEATS;
    double median = cpd_median(map->cycles, map->sms), ratios[REPEATS];
    double undisturbed = portable_pow(1 - map->spike_share, (double)map->loads);
    for (size_t i = 0; i < REPEATS; i++)
        ratios[i] = cpd_quantile(&map->chases[worst * map->per_sm + i * per_batch], per_batch,
                                 undisturbed / 2) /
                    median;
    struct measure *m = repeats_add(context, map->worst_metric, ratios, REPEATS, "",
                                    "slowest SM over the median one");
    m->value = map->cycles[worst] / median;
    m = measures_add(context->measures, map->worst_sm_metric, (double)worst, "id", "slowest SM");
}

/* Half the range of all SMs except the worst: the scatter of the healthy ones. */
static double spread_without(const struct map *map, size_t worst)
{
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < map->sms; i++) {
        if (i == worst)
            continue;
        low = fmin(low, map->cycles[i]);
        high = fmax(high, map->cycles[i]);
    }
    return high > low ? (high - low) / 2 : 0;
}

static void report_map(struct probe_context *context, const struct map *map)
{
    size_t worst = 0;
    for (size_t i = 1; i < map->sms; i++)
        if (map->cycles[i] > map->cycles[worst])
            worst = i;
    if (map->worst_metric) {
        worst = context->repeating ? context->worst_sm : worst;
        context->worst_sm = worst;
    }
    double *rounded = mem_array(map->sms, sizeof *rounded);
    for (size_t i = 0; i < map->sms; i++)
        rounded[i] = facts_decimals(map->cycles[i], 1);
    struct measure *m = repeats_add(context, map->metric, map->cycles, map->sms, "cycles",
                                    map->pools ? "median of single loads on each SM"
                                               : "average of long chases on each SM");
    facts_set_int(&m->notes, "worst_sm", (int64_t)worst);
    facts_set_real(&m->notes, "worst_cycles", map->cycles[worst]);
    facts_set_numbers(&m->notes, "map", rounded, map->sms);
    free(rounded);
    m->spread = spread_without(map, worst);
    m->n = (uint32_t)(map->sms * map->per_sm);
    if (map->worst_metric)
        report_worst(context, map, worst);
    else /* SMs differ by where they and their lines are: that is no error */
        m->confidence = NAN;
}

/* Chases are short if spikes are frequent, and many if loads scatter. */
static void plan(const struct probe_context *context, struct map *map)
{
    const struct study *study = &context->studies[STUDY_L1_DATA];
    double loads = study->spike_share > 0 ? SPIKES_PER_CHASE / study->spike_share : LOADS_MAX;
    map->spike_share = study->spike_share;
    map->loads = (uint64_t)fmin(fmax(loads, LOADS_MIN), LOADS_MAX);
    double error = MEDIAN_ERROR * study->sigma_cycles / sqrt((double)map->loads);
    double chases = square(error / (PRECISION * map->expected_cycles));
    map->jobs = (size_t)fmin(fmax(chases / (REPEATS * CHASES), JOBS_MIN), JOBS_MAX);
    map->batches = probe_repeats(context, REPEATS);
    map->per_sm = map->batches * map->jobs * CHASES;
}

static int run_map(struct probe_context *context, struct map *map, struct err *err)
{
    plan(context, map);
    map->sms = device_limits(context->device)->sm_count;
    if (!map->sms) {
        repeats_unsupported(context, map->metric, "the number of SMs is not known");
        return 0;
    }
    map->chases = mem_array(map->sms * map->per_sm, sizeof *map->chases);
    map->cycles = mem_array(map->sms, sizeof *map->cycles);
    bool scattered =
        latency_scatters(context, &context->studies[STUDY_L1_DATA], map->expected_cycles);
    map->pools = scattered ? mem_array(map->sms, sizeof *map->pools) : NULL;
    int rc = measure_map(context, map, err);
    if (!rc)
        report_map(context, map);
    free(map->chases);
    free(map->pools);
    free(map->cycles);
    return rc;
}

/* Reports on how many SMs blocks ran, to compare with the driver's number. */
static void sm_map_report_count(struct probe_context *context)
{
    measures_add(context->measures, "sm.count", (double)device_limits(context->device)->sm_count,
                 "", "SMs that run blocks");
}

static int sm_map_run_l1(struct probe_context *context, struct err *err)
{
    struct map map = {
        .metric = "sm.l1_latency",
        .worst_metric = "sm.l1_worst",
        .worst_sm_metric = "sm.l1_worst_sm",
        .array = {.path = DEVICE_GLOBAL_CA, .size_bytes = L1_BYTES, .stride_bytes = STRIDE_BYTES}};
    sm_map_report_count(context);
    int rc = study_reach(context, STUDY_L1_DATA, STUDY_LEVEL, err);
    if (rc)
        return rc;
    if (!context->studies[STUDY_L1_DATA].supported) {
        repeats_unsupported(context, map.metric, "global loads are not cached in L1");
        return 0;
    }
    map.expected_cycles = context->studies[STUDY_L1_DATA].hit_cycles;
    return run_map(context, &map, err);
}

static int run_l2(struct probe_context *context, struct err *err)
{
    struct map map = {
        .metric = "sm.l2_latency",
        .array = {.path = DEVICE_GLOBAL_CG, .size_bytes = L2_BYTES, .stride_bytes = STRIDE_BYTES}};
    int rc = study_reach(context, STUDY_L1_DATA, STUDY_LEVEL, err);
    if (rc)
        return rc;
    map.expected_cycles = context->studies[STUDY_L1_DATA].miss_cycles;
    return run_map(context, &map, err);
}

const struct probe probe_sm_l1_latency = {
    .description = {"sm.l1_latency", "latency of each SM to its L1", PROFILE_QUICK},
    .metrics = {"sm.l1_latency", "sm.l1_worst", "sm.l1_worst_sm", "sm.count"},
    .again = true,
    .within = 0.02,
    .run = sm_map_run_l1,
};

const struct probe probe_sm_l2_latency = {
    .description = {"sm.l2_latency", "map of the SMs: how far each is from L2", PROFILE_STANDARD},
    .metrics = {"sm.l2_latency"},
    .run = run_l2,
};
