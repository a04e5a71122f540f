/* Latencies of L2 and behind it, and in how many parts one SM sees it.
 *
 * On large dies L2 has two parts. A line has its home in one of them, and an SM's own part may
 * keep copies of lines whose home is the other. So an array that one SM loaded is loaded by
 * another SM for the first time: where that one is near the other part, half of its loads are
 * served from afar. It is the same half each time, since the home follows from the address; that
 * tells two parts from noise. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cpd/cpd.h"
#include "probes/chase.h"

enum {
    ELEMENTS_MAX = 512,
    STRIDE_MIN_BYTES = 128,
    REPEATS_QUIET = 6, /* of each job; single loads are medians over them */
    REPEATS_NOISY = 30,
    GROUPS = 3, /* of repeats: each latency is measured so often */
    OTHERS = 6, /* SMs that are tried as the other one */
    AVERAGE_LOADS = 2048,
    MAIN_ELEMENTS = 256,
    MAIN_STRIDE_BYTES = 17 * 64, /* beyond the fetch of any L2 */
};

/* A quarter of L2, and less: fits, copies included, even where some of L2 is broken. */
static const uint64_t ARRAY_MIN_BYTES = 16 * 1024, ARRAY_MAX_BYTES = 256 * 1024;
static const double ARRAY_SHARE = 0.25;

/* Scatter of single loads, as a share of the latency, from which on more repeats are needed. */
static const double NOISY_SHARE = 0.02;

/* Two levels: so far apart (share of the lower, cycles), so few elements in the middle third
 * between them (normal scatter has 20 % there), so many elements in the smaller one, and so many
 * on the same side in both halves of the repeats. */
static const double GAP_SHARE = 0.03, GAP_CYCLES = 4, VALLEY_MAX = 0.08, SIDE_MIN = 0.2,
                    AGREEMENT_MIN = 0.9;

/* Latencies of the same elements, repeat by repeat. */
struct table {
    double *cycles; /* repeats rows of `elements` */
    size_t repeats, elements;
};

struct levels {
    bool two;
    struct l2_latency low, high; /* low only, where there is one */
};

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of one element over the repeats first, first + step, ... */
static double element_median(const struct table *table, size_t element, size_t first, size_t step)
{
    double values[REPEATS_NOISY];
    size_t count = 0;
    for (size_t r = first; r < table->repeats; r += step)
        values[count++] = table->cycles[r * table->elements + element];
    return cpd_median(values, count);
}

/* As deaf to spikes as the median, and finer where all values are whole numbers. Sorts. */
static double middle_mean(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare_doubles);
    return cpd_mean(values + count / 4, count - 2 * (count / 4));
}

/* Of all elements within [from, to), over every GROUPS-th repeat. */
static int group_latency(const struct table *table, const double *medians, double from, double to,
                         size_t group, double *out_cycles)
{
    double *values = mem_array(table->elements, sizeof *values);
    size_t count = 0;
    if (!values)
        return -ENOMEM;
    for (size_t e = 0; e < table->elements; e++)
        if (medians[e] >= from && medians[e] < to)
            values[count++] = element_median(table, e, group, GROUPS);
    *out_cycles = middle_mean(values, count);
    free(values);
    return 0;
}

static int level_latency(const struct table *table, const double *medians, double from, double to,
                         struct l2_latency *out_latency)
{
    double groups[GROUPS];
    for (size_t g = 0; g < GROUPS; g++) {
        int rc = group_latency(table, medians, from, to, g, &groups[g]);
        if (rc)
            return rc;
    }
    out_latency->cycles = cpd_median(groups, GROUPS);
    out_latency->spread = (cpd_quantile(groups, GROUPS, 1) - cpd_quantile(groups, GROUPS, 0)) / 2;
    return 0;
}

/* Where the elements part best into a lower and an upper level, and whether they do. */
static bool find_parting(const struct table *table, const double *medians, const double *sorted,
                         double *out_parting)
{
    size_t n = table->elements, split;
    double gain;
    if (cpd_single(sorted, n, CPD_COST_MEAN, &split, &gain) || !split)
        return false;
    double low = cpd_mean(sorted, split), high = cpd_mean(sorted + split, n - split);
    double gap = high - low, middle = (low + high) / 2;
    if (gap < GAP_CYCLES || gap < GAP_SHARE * low)
        return false;
    size_t valley = 0, agreeing = 0, upper = 0;
    for (size_t e = 0; e < n; e++) {
        valley += fabs(medians[e] - middle) < gap / 6;
        upper += medians[e] > middle;
        agreeing +=
            (element_median(table, e, 0, 2) > middle) == (element_median(table, e, 1, 2) > middle);
    }
    double smaller = (double)(upper < n - upper ? upper : n - upper);
    *out_parting = middle;
    return (double)valley <= VALLEY_MAX * (double)n && smaller >= SIDE_MIN * (double)n &&
           (double)agreeing >= AGREEMENT_MIN * (double)n;
}

static int find_levels(const struct table *table, struct levels *out_levels, struct err *err)
{
    double *medians = mem_array(2 * table->elements, sizeof *medians);
    if (!medians)
        return err_no_memory(err);
    double *sorted = medians + table->elements, parting = INFINITY;
    for (size_t e = 0; e < table->elements; e++)
        medians[e] = element_median(table, e, 0, 1);
    memcpy(sorted, medians, table->elements * sizeof *sorted);
    qsort(sorted, table->elements, sizeof *sorted, compare_doubles);
    struct levels levels = {.two = find_parting(table, medians, sorted, &parting)};
    if (!levels.two)
        parting = INFINITY;
    int rc = level_latency(table, medians, 0, parting, &levels.low);
    if (!rc && levels.two)
        rc = level_latency(table, medians, parting, INFINITY, &levels.high);
    free(medians);
    if (rc)
        return err_no_memory(err);
    *out_levels = levels;
    return 0;
}

static double share_above(const struct table *table, double cycles)
{
    size_t above = 0, all = table->repeats * table->elements;
    for (size_t i = 0; i < all; i++)
        above += table->cycles[i] > cycles;
    return (double)above / (double)all;
}

/* Deviation of single loads from their element's median, in standard deviations of a normal
 * scatter. */
static int measure_scatter(const struct table *table, double *out_sigma, struct err *err)
{
    size_t all = table->repeats * table->elements;
    double *off = mem_array(all, sizeof *off);
    if (!off)
        return err_no_memory(err);
    for (size_t e = 0; e < table->elements; e++) {
        double median = element_median(table, e, 0, 1);
        for (size_t r = 0; r < table->repeats; r++) {
            size_t at = r * table->elements + e;
            off[at] = table->cycles[at] - median;
        }
    }
    *out_sigma = 1.4826 * cpd_mad(off, all);
    free(off);
    return 0;
}

/* Everything that is tried of one pair of SMs. */
struct trial {
    struct device_array array;
    struct table own;   /* the SM that loaded the array loads it again */
    struct table other; /* another SM loads it for the first time; no rows without another SM */
    double average, per_ns;
};

static void trial_fini(struct trial *trial)
{
    free(trial->own.cycles);
    free(trial->other.cycles);
    trial->own.cycles = trial->other.cycles = NULL;
}

static int table_init(struct table *table, size_t repeats, size_t elements, struct err *err)
{
    table->repeats = repeats;
    table->elements = elements;
    table->cycles = mem_array(repeats * elements, sizeof *table->cycles);
    return table->cycles ? 0 : err_no_memory(err);
}

static void table_put(struct table *table, size_t repeat, const struct device_sample *sample)
{
    for (size_t e = 0; e < table->elements && e < sample->kept_count; e++)
        table->cycles[repeat * table->elements + e] = sample->kept[e];
}

static struct device_job trial_job(const struct device_array *array, int32_t other_sm)
{
    uint32_t elements = (uint32_t)(array->size_bytes / array->stride_bytes);
    struct device_job job = {.agent_count = other_sm >= 0 ? 2 : 1,
                             .agents = {{.sm = 0}, {.sm = other_sm}},
                             .cold_l2 = true};
    chase_add(&job, DEVICE_WARM, array, 0);
    if (other_sm >= 0) {
        struct device_step *first_touch = chase_add(&job, DEVICE_CHASE, array, elements);
        first_touch->agent = 1;
        first_touch->keep = elements;
    }
    chase_add(&job, DEVICE_CHASE, array, elements)->keep = elements;
    chase_add(&job, DEVICE_AVERAGE, array, AVERAGE_LOADS);
    return job;
}

static void read_trial(struct trial *trial, const struct device_answer *answers, size_t repeats)
{
    double averages[REPEATS_NOISY], clocks[REPEATS_NOISY];
    for (size_t r = 0; r < repeats; r++) {
        const struct device_sample *samples = answers[r].samples;
        if (trial->other.repeats)
            table_put(&trial->other, r, samples++);
        table_put(&trial->own, r, samples++);
        double cycles = (double)samples->total_cycles, ns = (double)samples->elapsed_ns;
        averages[r] = cycles / AVERAGE_LOADS;
        clocks[r] = ns > 0 ? cycles / ns : 0;
    }
    trial->average = cpd_median(averages, repeats);
    trial->per_ns = cpd_median(clocks, repeats);
}

/* trial->array is set by the caller; trial_fini in any case. */
static int run_trial(struct probe_context *context, struct trial *trial, int32_t other_sm,
                     size_t repeats, struct err *err)
{
    size_t elements = trial->array.size_bytes / trial->array.stride_bytes;
    struct device_job jobs[REPEATS_NOISY];
    struct device_answer *answers;
    trial_fini(trial);
    int rc = table_init(&trial->own, repeats, elements, err);
    if (!rc)
        rc = table_init(&trial->other, other_sm >= 0 ? repeats : 0, elements, err);
    if (rc)
        return rc;
    for (size_t r = 0; r < repeats; r++)
        jobs[r] = trial_job(&trial->array, other_sm);
    rc = chase_run(context, jobs, repeats, 1, &answers, err);
    if (rc)
        return rc;
    read_trial(trial, answers, repeats);
    device_answers_fini(answers, repeats);
    free(answers);
    return 0;
}

/* SMs are numbered along the GPCs or across them: try far and near numbers. -1: none. */
static int32_t other_sm(uint32_t sm_count, size_t i)
{
    const uint32_t candidates[OTHERS] = {sm_count - 1, sm_count / 2, 2, 4, 6, 10};
    return candidates[i] > 0 && candidates[i] < sm_count ? (int32_t)candidates[i] : -1;
}

static struct device_array trial_array(uint64_t reported_bytes)
{
    double wanted = ARRAY_SHARE * (double)reported_bytes;
    uint64_t size = (uint64_t)fmin(fmax(wanted, (double)ARRAY_MIN_BYTES), (double)ARRAY_MAX_BYTES);
    uint64_t stride = size / ELEMENTS_MAX / STRIDE_MIN_BYTES * STRIDE_MIN_BYTES;
    stride = stride ? stride : STRIDE_MIN_BYTES;
    return (struct device_array){
        .path = DEVICE_GLOBAL_CG, .size_bytes = size / stride * stride, .stride_bytes = stride};
}

/* Tries pairs of SMs until one sees two levels. trial then holds that pair, or the last one. */
static int try_pairs(struct probe_context *context, struct trial *trial, struct levels *out_own,
                     struct levels *out_seen, struct err *err)
{
    uint32_t sm_count = device_limits(context->device)->sm_count;
    size_t repeats = REPEATS_QUIET;
    double sigma = 0;
    int rc = run_trial(context, trial, -1, repeats, err);
    if (!rc)
        rc = find_levels(&trial->own, out_own, err);
    if (!rc)
        rc = measure_scatter(&trial->own, &sigma, err);
    if (!rc && sigma > NOISY_SHARE * out_own->low.cycles) {
        repeats = REPEATS_NOISY;
        rc = run_trial(context, trial, -1, repeats, err);
        if (!rc)
            rc = find_levels(&trial->own, out_own, err);
    }
    *out_seen = *out_own;
    for (size_t i = 0; i < OTHERS && !rc && !out_seen->two; i++) {
        int32_t sm = other_sm(sm_count, i);
        if (sm < 0)
            continue;
        rc = run_trial(context, trial, sm, repeats, err);
        if (!rc)
            rc = find_levels(&trial->other, out_seen, err);
    }
    return rc;
}

/* Cold, each element once and none in the fetch of another. */
static int measure_main(struct probe_context *context, size_t repeats, struct table *table,
                        struct err *err)
{
    const struct device_limits *limits = device_limits(context->device);
    struct device_array array = {.path = DEVICE_GLOBAL_CG,
                                 .size_bytes = MAIN_ELEMENTS * MAIN_STRIDE_BYTES,
                                 .stride_bytes = MAIN_STRIDE_BYTES};
    /* Lines that are asked for again and again outlast a flush by loading (seen on Hopper): each
     * repeat has memory of its own, behind all that other probes use, where there is enough. */
    uint64_t behind = 2 * limits->l2_reported_bytes;
    bool enough = behind + repeats * array.size_bytes <= limits->global_bytes;
    struct device_job jobs[REPEATS_NOISY];
    struct device_answer *answers;
    int rc = table_init(table, repeats, MAIN_ELEMENTS, err);
    if (rc)
        return rc;
    for (size_t r = 0; r < repeats; r++) {
        jobs[r] = chase_job();
        jobs[r].cold_l2 = true;
        jobs[r].agents[0].sm = 0;
        array.offset_bytes = enough ? behind + r * array.size_bytes : 0;
        chase_add(&jobs[r], DEVICE_CHASE, &array, 0)->keep = MAIN_ELEMENTS;
    }
    rc = chase_run(context, jobs, repeats, 1, &answers, err);
    if (rc)
        return rc;
    for (size_t r = 0; r < repeats; r++)
        table_put(table, r, &answers[r].samples[0]);
    device_answers_fini(answers, repeats);
    free(answers);
    return 0;
}

/* Main memory behind both parts together: their mean, since half of the misses go each way. */
static int main_latency(const struct table *table, struct l2_latency *out_main, struct err *err)
{
    struct levels levels;
    int rc = find_levels(table, &levels, err);
    if (rc)
        return rc;
    *out_main = levels.low;
    if (levels.two) {
        out_main->cycles = (levels.low.cycles + levels.high.cycles) / 2;
        out_main->spread = fmax(levels.low.spread, levels.high.spread);
    }
    return 0;
}

static int set_thresholds(struct l2_study *l2, const struct trial *trial, const struct table *main,
                          bool own_two, struct err *err)
{
    double gap = l2->parts > 1 ? l2->far.cycles - l2->near.cycles : 0;
    double slowest_hit = l2->near.cycles + gap, fastest_miss = l2->main.cycles - gap / 2;
    l2->miss_threshold = (slowest_hit + fastest_miss) / 2;
    l2->far_threshold = l2->parts > 1 ? l2->near.cycles + gap / 2 : l2->miss_threshold;
    if (fastest_miss <= slowest_hit)
        return err_set(err, -ENODATA,
                       "hits of up to %.0f cycles cannot be told from misses of %.0f", slowest_hit,
                       fastest_miss);
    l2->hit_stray = share_above(&trial->own, l2->miss_threshold);
    l2->near_stray = own_two ? 0 : share_above(&trial->own, l2->far_threshold);
    l2->miss_slip = 1 - share_above(main, l2->miss_threshold);
    return 0;
}

int l2_measure_level(struct probe_context *context, struct l2_study *l2, struct err *err)
{
    struct trial trial = {.array = trial_array(device_limits(context->device)->l2_reported_bytes)};
    struct table main = {0};
    struct levels own, seen;
    int rc = try_pairs(context, &trial, &own, &seen, err);
    if (!rc)
        rc = measure_main(context, trial.own.repeats, &main, err);
    if (!rc)
        rc = main_latency(&main, &l2->main, err);
    if (rc)
        goto out;
    l2->parts = seen.two ? 2 : 1;
    l2->near = seen.two ? seen.low : own.low;
    l2->far = seen.high;
    l2->average_cycles = trial.average;
    l2->single_cycles = own.two ? (own.low.cycles + own.high.cycles) / 2 : own.low.cycles;
    l2->cycles_per_ns = trial.per_ns;
    l2->level_n = (uint32_t)(trial.own.repeats * trial.own.elements);
    rc = set_thresholds(l2, &trial, &main, own.two, err);
out:
    trial_fini(&trial);
    free(main.cycles);
    return rc;
}
