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

#include "base/mem.h"
#include "cpd/cpd.h"
#include "probes/chase.h"
#include "probes/l2_table.h"

enum {
    ELEMENTS_MAX = 512,
    STRIDE_MIN_BYTES = 128,
    REPEATS_QUIET = 6, /* of each job; single loads are medians over them */
    OTHERS = 6,        /* SMs that are tried as the other one */
    AVERAGE_LOADS = 2048,
    MAIN_ELEMENTS = 256,
    MAIN_STRIDE_BYTES = 17 * 64, /* beyond the fetch of any L2 */
};

/* A quarter of L2, and less: fits, copies included, even where some of L2 is broken. */
static const uint64_t ARRAY_MIN_BYTES = 16 * 1024, ARRAY_MAX_BYTES = 256 * 1024;
static const double ARRAY_SHARE = 0.25;

/* Scatter of single loads, as a share of the latency, from which on more repeats are needed. */
static const double NOISY_SHARE = 0.02;

/* What SM 0 sees of an array, by itself or after another SM loaded it. */
struct trial {
    struct device_array array;
    size_t repeats;
    struct l2_table own;   /* SM 0 loaded the array and loads it again */
    struct l2_table first; /* another SM loaded it, SM 0 loads it for the first time */
    struct l2_table extra; /* first, less what SM 0's second load took */
    double average, per_ns;
};

static void trial_fini(struct trial *trial)
{
    l2_table_fini(&trial->own);
    l2_table_fini(&trial->first);
    l2_table_fini(&trial->extra);
}

static size_t elements_of(const struct device_array *array)
{
    return array->size_bytes / array->stride_bytes;
}

/* `sm` loads the array and times it. */
static int run_own(struct probe_context *context, struct trial *trial, int32_t sm,
                   struct l2_table *out_table, struct err *err)
{
    size_t elements = elements_of(&trial->array);
    struct device_job jobs[L2_REPEATS_MAX];
    struct device_answer *answers;
    double averages[L2_REPEATS_MAX], clocks[L2_REPEATS_MAX];
    int rc = l2_table_init(out_table, trial->repeats, elements, err);
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
        l2_table_put(out_table, r, &answers[r].samples[0]);
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
    struct device_job jobs[L2_REPEATS_MAX];
    struct device_answer *answers;
    int rc = l2_table_init(&trial->first, rows, all / rows, err);
    if (!rc)
        rc = l2_table_init(&trial->extra, rows, all / rows, err);
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
static int look_alone(struct probe_context *context, struct trial *trial, struct l2_levels *out_own,
                      struct err *err)
{
    double sigma = 0;
    trial->repeats = REPEATS_QUIET;
    int rc = run_own(context, trial, 0, &trial->own, err);
    if (!rc)
        rc = l2_table_levels(&trial->own, &trial->own, 0, out_own, err);
    if (!rc)
        rc = l2_table_scatter(&trial->own, &sigma, err);
    if (!rc && sigma > NOISY_SHARE * out_own->low.cycles) {
        trial->repeats = L2_REPEATS_MAX;
        rc = run_own(context, trial, 0, &trial->own, err);
    }
    return rc ? rc : l2_table_levels(&trial->own, &trial->own, out_own->low.cycles, out_own, err);
}

/* Whether what is far for SM 0 is near for the other one, and the other way round. */
static int sees_swapped(struct probe_context *context, struct trial *trial,
                        const struct l2_levels *own, int32_t other, bool *out_swapped,
                        struct err *err)
{
    struct l2_table table = {0};
    struct l2_levels levels;
    size_t swapped = 0;
    int rc = run_own(context, trial, other, &table, err);
    if (!rc)
        rc = l2_table_levels(&table, &table, own->low.cycles, &levels, err);
    if (!rc && levels.two)
        for (size_t e = 0; e < table.elements; e++)
            swapped += (l2_table_median(&trial->own, e, 0, 1) > own->parting) !=
                       (l2_table_median(&table, e, 0, 1) > levels.parting);
    l2_table_fini(&table);
    if (!rc)
        *out_swapped = (double)swapped >= L2_TABLE_AGREEMENT * (double)trial->own.elements;
    return rc;
}

/* Looks for a second part: levels.two of out_seen, with the latencies of near and far. */
static int look_for_parts(struct probe_context *context, struct trial *trial, struct l2_study *l2,
                          struct l2_levels *own, struct l2_levels *out_seen, struct err *err)
{
    uint32_t sm_count = device_limits(context->device)->sm_count;
    bool swapped = false;
    int rc = 0;
    *out_seen = (struct l2_levels){0};
    for (size_t i = 0; i < OTHERS && !rc && !out_seen->two && !swapped; i++) {
        int32_t sm = other_sm(sm_count, i);
        if (sm < 0)
            continue;
        l2->other_sm = sm;
        rc = run_pair(context, trial, sm, err);
        if (!rc)
            rc = l2_table_levels(&trial->first, &trial->extra, own->low.cycles, out_seen, err);
        if (!rc && !out_seen->two && own->two)
            rc = sees_swapped(context, trial, own, sm, &swapped, err);
    }
    l2->copies = out_seen->two;
    if (swapped)
        *out_seen = *own;
    else if (own->two && !rc) /* slices of one part: one level */
        rc = l2_table_levels(&trial->own, &trial->own, 0, own, err);
    return rc;
}

/* Cold, each element once and none in the fetch of another. */
static int measure_main(struct probe_context *context, size_t repeats, struct l2_table *table,
                        struct err *err)
{
    struct device_array array = {.path = DEVICE_GLOBAL_CG,
                                 .size_bytes = MAIN_ELEMENTS * MAIN_STRIDE_BYTES,
                                 .stride_bytes = MAIN_STRIDE_BYTES};
    struct device_job jobs[L2_REPEATS_MAX];
    struct device_answer *answers;
    int rc = l2_table_init(table, 1, repeats * MAIN_ELEMENTS, err);
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
static int main_latency(const struct l2_table *table, struct l2_study *l2, double *out_fastest,
                        struct err *err)
{
    struct l2_levels levels;
    double gap = l2->parts > 1 ? l2->far.cycles - l2->near.cycles : 0;
    int rc = l2_table_levels(table, table, l2->near.cycles, &levels, err);
    if (rc)
        return rc;
    l2->main = levels.low;
    *out_fastest = levels.low.cycles;
    if (levels.two && l2->parts > 1) {
        l2->main.cycles = (levels.low.cycles + levels.high.cycles) / 2;
        l2->main.spread = fmax(levels.low.spread, levels.high.spread);
        gap = levels.high.cycles - levels.low.cycles;
    } else if (levels.two) {
        rc = l2_table_levels(table, table, 0, &levels, err);
        l2->main = levels.low;
        *out_fastest = l2->main.cycles;
    } else {
        *out_fastest = l2->main.cycles - gap / 2;
    }
    l2->far_miss_threshold = l2->copies ? *out_fastest + gap / 2 : 0;
    return rc;
}

static int set_thresholds(struct l2_study *l2, const struct trial *trial,
                          const struct l2_table *main, double fastest_miss, struct err *err)
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
    l2->hit_stray = l2_table_share_above(&trial->own, l2->miss_threshold);
    l2->near_stray = l2->copies ? l2_table_share_above(&trial->own, l2->far_threshold) : 0;
    l2->miss_slip = 1 - l2_table_share_above(main, l2->miss_threshold);
    return 0;
}

int l2_measure_level(struct probe_context *context, struct l2_study *l2, struct err *err)
{
    struct trial trial = {.array = trial_array(device_limits(context->device)->l2_reported_bytes)};
    struct l2_table main = {0};
    struct l2_levels own, seen;
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
    l2_table_fini(&main);
    return rc;
}
