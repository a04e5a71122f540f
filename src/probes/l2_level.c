/* Latencies of L2 and behind it, and in how many parts one SM sees it.
 *
 * On large dies L2 has two parts. A line has its home in one of them, and an SM's own part may
 * keep copies of lines whose home is the other. So an array that one SM loaded is loaded by
 * another SM for the first time and once more: where the two are near different parts, half of the
 * first loads are served from afar, and none of the second. It is the same half each time, since
 * the home follows from the address; that tells two parts from noise. And each load is compared
 * with the same load, since the slices of one part are not equally far either.
 *
 * Without copies the far half stays far. Slices would look like that too; but of two parts the
 * near half of one SM is the far half of another. */
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
    TRIMMED_OF = 32, /* one in so many elements is left out at each end */
    MAIN_ELEMENTS = 256,
    MAIN_STRIDE_BYTES = 17 * 64, /* beyond the fetch of any L2 */
};

/* A quarter of L2, and less: fits, copies included, even where some of L2 is broken. */
static const uint64_t ARRAY_MIN_BYTES = 16 * 1024, ARRAY_MAX_BYTES = 256 * 1024;
static const double ARRAY_SHARE = 0.25;

/* Scatter of single loads, as a share of the latency, from which on more repeats are needed. */
static const double NOISY_SHARE = 0.02;

/* Two levels: so far apart (share of a near hit, cycles), so few elements in the middle third
 * between them (normal scatter has 20 % there), so many elements in the smaller one, and so many
 * on the same side in both halves of the repeats. */
static const double GAP_SHARE = 0.03, GAP_CYCLES = 4, VALLEY_MAX = 0.08, SIDE_MIN = 0.2,
                    AGREEMENT_MIN = 0.9;

/* And so many steps of the timer: neighbouring readings are no levels. */
static const double GAP_STEPS = 3;

/* Latencies of the same elements, repeat by repeat; or, with one repeat, of many elements. */
struct table {
    double *cycles; /* repeats rows of `elements` */
    size_t repeats, elements;
};

/* How the elements of a table part into a lower and an upper level. */
struct levels {
    bool two;
    double parting;
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

/* Of all elements within [from, to), over every GROUPS-th repeat, or of every GROUPS-th element. */
static int group_latency(const struct table *table, const double *medians, double from, double to,
                         size_t group, double *out_cycles)
{
    double *values = mem_array(table->elements, sizeof *values);
    size_t count = 0;
    if (!values)
        return -ENOMEM;
    bool repeated = table->repeats >= GROUPS;
    for (size_t e = 0; e < table->elements; e++)
        if (medians[e] >= from && medians[e] < to && (repeated || e % GROUPS == group))
            values[count++] = element_median(table, e, repeated ? group : 0, GROUPS);
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

/* The step in which the timer counts: the greatest that divides all differences. */
static double timer_step(const struct table *table)
{
    long long step = 0;
    for (size_t i = 1; i < table->repeats * table->elements && step != 1; i++) {
        long long rest = llabs(llround(table->cycles[i] - table->cycles[0]));
        while (rest) {
            long long next = step % rest;
            step = rest;
            rest = next;
        }
    }
    return (double)step;
}

/* Where the elements part best into a lower and an upper level, and whether they do. near: what the
 * gap is held against. */
static bool find_parting(const struct table *table, const double *medians, const double *sorted,
                         double near, double *out_parting)
{
    size_t n = table->elements, split;
    double gain;
    /* Without the outermost: single slow loads would be a level of their own. */
    size_t cut = n / TRIMMED_OF, inner = n - 2 * cut;
    sorted += cut;
    if (cpd_single(sorted, inner, CPD_COST_MEAN, &split, &gain) || !split)
        return false;
    double low = cpd_mean(sorted, split), high = cpd_mean(sorted + split, inner - split);
    double gap = high - low, middle = (low + high) / 2;
    if (gap < fmax(GAP_CYCLES, GAP_STEPS * timer_step(table)) || gap < GAP_SHARE * near)
        return false;
    size_t valley = 0, agreeing = 0, upper = 0;
    for (size_t e = 0; e < n; e++) {
        valley += fabs(medians[e] - middle) < gap / 6;
        upper += medians[e] > middle;
        agreeing += table->repeats < 2 || (element_median(table, e, 0, 2) > middle) ==
                                              (element_median(table, e, 1, 2) > middle);
    }
    double smaller = (double)(upper < n - upper ? upper : n - upper);
    *out_parting = middle;
    return (double)valley <= VALLEY_MAX * (double)n && smaller >= SIDE_MIN * (double)n &&
           (double)agreeing >= AGREEMENT_MIN * (double)n;
}

/* Parts the elements by `parted`, and gives the levels that `table` (the same elements) has on
 * both sides. near 0: no parting is looked for. */
static int find_levels(const struct table *table, const struct table *parted, double near,
                       struct levels *out_levels, struct err *err)
{
    double *medians = mem_array(2 * parted->elements, sizeof *medians);
    if (!medians)
        return err_no_memory(err);
    double *sorted = medians + parted->elements;
    for (size_t e = 0; e < parted->elements; e++)
        medians[e] = element_median(parted, e, 0, 1);
    memcpy(sorted, medians, parted->elements * sizeof *sorted);
    qsort(sorted, parted->elements, sizeof *sorted, compare_doubles);
    struct levels levels = {0};
    levels.two = near > 0 && find_parting(parted, medians, sorted, near, &levels.parting);
    if (!levels.two)
        levels.parting = INFINITY;
    int rc = level_latency(table, medians, -INFINITY, levels.parting, &levels.low);
    if (!rc && levels.two)
        rc = level_latency(table, medians, levels.parting, INFINITY, &levels.high);
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

/* What SM 0 sees of an array, by itself or after another SM loaded it. */
struct trial {
    struct device_array array;
    size_t repeats;
    struct table own;   /* SM 0 loaded the array and loads it again */
    struct table first; /* another SM loaded it, SM 0 loads it for the first time */
    struct table extra; /* first, less what SM 0's second load took */
    double average, per_ns;
};

static void trial_fini(struct trial *trial)
{
    free(trial->own.cycles);
    free(trial->first.cycles);
    free(trial->extra.cycles);
    trial->own.cycles = trial->first.cycles = trial->extra.cycles = NULL;
}

static int table_init(struct table *table, size_t repeats, size_t elements, struct err *err)
{
    free(table->cycles);
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

static size_t elements_of(const struct device_array *array)
{
    return array->size_bytes / array->stride_bytes;
}

/* `sm` loads the array and times it. */
static int run_own(struct probe_context *context, struct trial *trial, int32_t sm,
                   struct table *out_table, struct err *err)
{
    size_t elements = elements_of(&trial->array);
    struct device_job jobs[REPEATS_NOISY];
    struct device_answer *answers;
    double averages[REPEATS_NOISY], clocks[REPEATS_NOISY];
    int rc = table_init(out_table, trial->repeats, elements, err);
    for (size_t r = 0; r < trial->repeats; r++) {
        jobs[r] = (struct device_job){.agent_count = 1, .agents = {{.sm = sm}}, .cold_l2 = true};
        chase_add(&jobs[r], DEVICE_WARM, &trial->array, 0);
        chase_add(&jobs[r], DEVICE_CHASE, &trial->array, elements)->keep = (uint32_t)elements;
        chase_add(&jobs[r], DEVICE_AVERAGE, &trial->array, AVERAGE_LOADS);
    }
    if (!rc)
        rc = chase_run(context, jobs, trial->repeats, 1, &answers, err);
    if (rc)
        return rc;
    for (size_t r = 0; r < trial->repeats; r++) {
        const struct device_sample *average = &answers[r].samples[1];
        double cycles = (double)average->total_cycles, ns = (double)average->elapsed_ns;
        table_put(out_table, r, &answers[r].samples[0]);
        averages[r] = cycles / AVERAGE_LOADS;
        clocks[r] = ns > 0 ? cycles / ns : 0;
    }
    trial->average = cpd_median(averages, trial->repeats);
    trial->per_ns = cpd_median(clocks, trial->repeats);
    device_answers_fini(answers, trial->repeats);
    free(answers);
    return 0;
}

/* `other` loads the array, then SM 0 times it twice. Where single loads are quiet enough, each
 * repeat has memory of its own, so that its first touch is one on any hardware; otherwise the same
 * elements are timed again and again, to take medians. */
static int run_pair(struct probe_context *context, struct trial *trial, int32_t other,
                    struct err *err)
{
    size_t elements = elements_of(&trial->array), all = trial->repeats * elements;
    bool fresh = trial->repeats == REPEATS_QUIET;
    size_t rows = fresh ? 1 : trial->repeats;
    struct device_job jobs[REPEATS_NOISY];
    struct device_answer *answers;
    int rc = table_init(&trial->first, rows, all / rows, err);
    if (!rc)
        rc = table_init(&trial->extra, rows, all / rows, err);
    for (size_t r = 0; r < trial->repeats; r++) {
        struct device_array array = trial->array;
        if (fresh)
            array.offset_bytes = probe_fresh(context, array.size_bytes);
        jobs[r] = (struct device_job){
            .agent_count = 2, .agents = {{.sm = other}, {.sm = 0}}, .cold_l2 = true};
        chase_add(&jobs[r], DEVICE_WARM, &array, 0);
        for (int touch = 0; touch < 2; touch++) {
            struct device_step *step = chase_add(&jobs[r], DEVICE_CHASE, &array, elements);
            step->agent = 1;
            step->keep = (uint32_t)elements;
        }
    }
    if (!rc)
        rc = chase_run(context, jobs, trial->repeats, 1, &answers, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < all; i++) {
        const struct device_sample *samples = answers[i / elements].samples;
        trial->first.cycles[i] = samples[0].kept[i % elements];
        trial->extra.cycles[i] = trial->first.cycles[i] - samples[1].kept[i % elements];
    }
    device_answers_fini(answers, trial->repeats);
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

/* SM 0 by itself, with as many repeats as the noise needs. */
static int look_alone(struct probe_context *context, struct trial *trial, struct levels *out_own,
                      struct err *err)
{
    double sigma = 0;
    trial->repeats = REPEATS_QUIET;
    int rc = run_own(context, trial, 0, &trial->own, err);
    if (!rc)
        rc = find_levels(&trial->own, &trial->own, 0, out_own, err);
    if (!rc)
        rc = measure_scatter(&trial->own, &sigma, err);
    if (!rc && sigma > NOISY_SHARE * out_own->low.cycles) {
        trial->repeats = REPEATS_NOISY;
        rc = run_own(context, trial, 0, &trial->own, err);
    }
    return rc ? rc : find_levels(&trial->own, &trial->own, out_own->low.cycles, out_own, err);
}

/* Whether what is far for SM 0 is near for the other one, and the other way round. */
static int sees_swapped(struct probe_context *context, struct trial *trial,
                        const struct levels *own, int32_t other, bool *out_swapped, struct err *err)
{
    struct table table = {0};
    struct levels levels;
    size_t swapped = 0;
    int rc = run_own(context, trial, other, &table, err);
    if (!rc)
        rc = find_levels(&table, &table, own->low.cycles, &levels, err);
    if (!rc && levels.two)
        for (size_t e = 0; e < table.elements; e++)
            swapped += (element_median(&trial->own, e, 0, 1) > own->parting) !=
                       (element_median(&table, e, 0, 1) > levels.parting);
    free(table.cycles);
    if (!rc)
        *out_swapped = (double)swapped >= AGREEMENT_MIN * (double)trial->own.elements;
    return rc;
}

/* Looks for a second part: levels.two of out_seen, with the latencies of near and far. */
static int look_for_parts(struct probe_context *context, struct trial *trial, struct l2_study *l2,
                          struct levels *own, struct levels *out_seen, struct err *err)
{
    uint32_t sm_count = device_limits(context->device)->sm_count;
    bool swapped = false;
    int rc = 0;
    *out_seen = (struct levels){0};
    for (size_t i = 0; i < OTHERS && !rc && !out_seen->two && !swapped; i++) {
        int32_t sm = other_sm(sm_count, i);
        if (sm < 0)
            continue;
        l2->other_sm = sm;
        rc = run_pair(context, trial, sm, err);
        if (!rc)
            rc = find_levels(&trial->first, &trial->extra, own->low.cycles, out_seen, err);
        if (!rc && !out_seen->two && own->two)
            rc = sees_swapped(context, trial, own, sm, &swapped, err);
    }
    l2->copies = out_seen->two;
    if (swapped)
        *out_seen = *own;
    else if (own->two && !rc) /* slices of one part: one level */
        rc = find_levels(&trial->own, &trial->own, 0, own, err);
    return rc;
}

/* Cold, each element once and none in the fetch of another. */
static int measure_main(struct probe_context *context, size_t repeats, struct table *table,
                        struct err *err)
{
    struct device_array array = {.path = DEVICE_GLOBAL_CG,
                                 .size_bytes = MAIN_ELEMENTS * MAIN_STRIDE_BYTES,
                                 .stride_bytes = MAIN_STRIDE_BYTES};
    struct device_job jobs[REPEATS_NOISY];
    struct device_answer *answers;
    int rc = table_init(table, 1, repeats * MAIN_ELEMENTS, err);
    for (size_t r = 0; r < repeats; r++) {
        jobs[r] = chase_job();
        jobs[r].cold_l2 = true;
        jobs[r].agents[0].sm = 0;
        array.offset_bytes = probe_fresh(context, array.size_bytes);
        chase_add(&jobs[r], DEVICE_CHASE, &array, 0)->keep = MAIN_ELEMENTS;
    }
    if (!rc)
        rc = chase_run(context, jobs, repeats, 1, &answers, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < repeats * MAIN_ELEMENTS; i++)
        table->cycles[i] = answers[i / MAIN_ELEMENTS].samples[0].kept[i % MAIN_ELEMENTS];
    device_answers_fini(answers, repeats);
    free(answers);
    return 0;
}

/* Main memory behind both parts: their mean, since half of the misses go each way. */
static int main_latency(const struct table *table, struct l2_study *l2, double *out_fastest,
                        struct err *err)
{
    struct levels levels;
    double gap = l2->parts > 1 ? l2->far.cycles - l2->near.cycles : 0;
    int rc = find_levels(table, table, l2->near.cycles, &levels, err);
    if (rc)
        return rc;
    l2->main = levels.low;
    *out_fastest = levels.low.cycles;
    if (levels.two && l2->parts > 1) {
        l2->main.cycles = (levels.low.cycles + levels.high.cycles) / 2;
        l2->main.spread = fmax(levels.low.spread, levels.high.spread);
        gap = levels.high.cycles - levels.low.cycles;
    } else if (levels.two) {
        rc = find_levels(table, table, 0, &levels, err);
        l2->main = levels.low;
        *out_fastest = l2->main.cycles;
    } else {
        *out_fastest = l2->main.cycles - gap / 2;
    }
    l2->far_miss_threshold = l2->copies ? *out_fastest + gap / 2 : 0;
    return rc;
}

static int set_thresholds(struct l2_study *l2, const struct trial *trial, const struct table *main,
                          double fastest_miss, struct err *err)
{
    double gap = l2->parts > 1 ? l2->far.cycles - l2->near.cycles : 0;
    double slowest_hit = l2->near.cycles + gap;
    l2->miss_threshold = (slowest_hit + fastest_miss) / 2;
    l2->far_threshold = l2->parts > 1 ? l2->near.cycles + gap / 2 : l2->miss_threshold;
    if (!l2->copies)
        l2->far_miss_threshold = l2->miss_threshold;
    if (fastest_miss <= slowest_hit)
        return err_set(err, -ENODATA,
                       "hits of up to %.0f cycles cannot be told from misses of %.0f", slowest_hit,
                       fastest_miss);
    l2->hit_stray = share_above(&trial->own, l2->miss_threshold);
    l2->near_stray = l2->copies ? share_above(&trial->own, l2->far_threshold) : 0;
    l2->miss_slip = 1 - share_above(main, l2->miss_threshold);
    return 0;
}

int l2_measure_level(struct probe_context *context, struct l2_study *l2, struct err *err)
{
    struct trial trial = {.array = trial_array(device_limits(context->device)->l2_reported_bytes)};
    struct table main = {0};
    struct levels own, seen;
    double fastest_miss;
    int rc = look_alone(context, &trial, &own, err);
    double average = trial.average, per_ns = trial.per_ns;
    if (!rc)
        rc = look_for_parts(context, &trial, l2, &own, &seen, err);
    if (!rc)
        rc = measure_main(context, trial.repeats, &main, err);
    if (rc)
        goto out;
    l2->parts = seen.two ? 2 : 1;
    l2->near = own.low;
    l2->far = seen.high;
    l2->average_cycles = average;
    l2->single_cycles = own.two ? (own.low.cycles + own.high.cycles) / 2 : own.low.cycles;
    l2->cycles_per_ns = per_ns;
    l2->level_n = (uint32_t)(trial.own.repeats * trial.own.elements);
    rc = main_latency(&main, l2, &fastest_miss, err);
    if (!rc)
        rc = set_thresholds(l2, &trial, &main, fastest_miss, err);
out:
    trial_fini(&trial);
    free(main.cycles);
    return rc;
}
