/* The stages of the study of L2: the latencies of L2 and of main memory behind it, the thresholds
 * between them, and the fetch unit. */
#include "probes/caches/l2_study.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cpd/cpd.h"
#include "probes/caches/l2_capacity.h"
#include "probes/caches/l2_copies.h"
#include "probes/caches/l2_parts.h"
#include "probes/method/chase.h"
#include "probes/probe.h"

/* Latencies of L2 and of main memory behind it: near and far hits, cold loads, and the thresholds
 * between them.
 *
 * All SMs time the same array: they are not equally far from the slices of L2, so that one SM does
 * not represent the GPU. l2_copies.c and l2_parts.c find how many parts L2 has. */

enum {
    STRIDE_MIN_BYTES = 128,
    AVERAGE_LOADS = 512,
    COLD_ELEMENTS = 256,
    COLD_STRIDE_BYTES = 17 * 64, /* more than the fetch of any L2 */
    COLD_BYTES = COLD_ELEMENTS * COLD_STRIDE_BYTES,
    COLD_MORE = 112, /* jobs, on all SMs: single cold loads differ by a quarter of their latency */
    COLD_ROUNDS = 4, /* of these jobs, each in other memory */
    LARGE_PAGE_BYTES = 64 * 1024, /* the least for a large allocation on a GPU */
};

/* Of the chases that find the fetch unit. */
enum {
    WORD_BYTES = 8, /* the smallest stride of a chase */
    CHASED_BYTES = 16384,
    JOBS = 6,
};

/* At most a quarter of L2: it fits even if a part of L2 is broken. */
static const uint64_t ARRAY_MIN_BYTES = 16 * 1024, ARRAY_MAX_BYTES = 256 * 1024;

static const double ARRAY_SHARE = 0.25;

/* A load that takes longer than this many cold loads was interrupted. */
static const double INTERRUPTED = 5;

static struct device_array hits_array(uint64_t reported_bytes)
{
    double wanted = ARRAY_SHARE * (double)reported_bytes;
    uint64_t size = (uint64_t)fmin(fmax(wanted, (double)ARRAY_MIN_BYTES), (double)ARRAY_MAX_BYTES);
    uint64_t stride = size / L2_ELEMENTS_MAX / STRIDE_MIN_BYTES * STRIDE_MIN_BYTES;
    stride = stride ? stride : STRIDE_MIN_BYTES;
    uint64_t elements = size / stride < L2_ELEMENTS_MAX ? size / stride : L2_ELEMENTS_MAX;
    return (struct device_array){
        .path = DEVICE_GLOBAL_CG, .size_bytes = elements * stride, .stride_bytes = stride};
}

/* SMs begin at different elements, so that they do not all use the same slice at once. The first
 * job empties L2; the others find the array in it. */
static struct device_job hits_job(const struct l2_hits *hits, const struct device_array *array,
                                  size_t sm)
{
    struct device_job job = chase_job();
    job.agents[0].sm = (int32_t)sm;
    job.cold_l2 = sm == 0;
    chase_add(&job, DEVICE_WARM, array, 0)->start = sm * hits->elements / hits->sms;
    for (int pass = 0; pass < L2_PASSES; pass++)
        chase_add(&job, DEVICE_CHASE, array, hits->elements)->keep = (uint32_t)hits->elements;
    chase_add(&job, DEVICE_AVERAGE, array, AVERAGE_LOADS);
    return job;
}

static void take_hits(struct l2_hits *hits, const struct device_answer *answers, double *averages,
                      double *clocks)
{
    size_t n = hits->elements;
    for (size_t sm = 0; sm < hits->sms; sm++) {
        const struct device_sample *samples = answers[sm].samples, *average = &samples[L2_PASSES];
        double cycles = (double)average->total_cycles, ns = (double)average->elapsed_ns;
        size_t start = sm * n / hits->sms;
        for (size_t i = 0; i < L2_PASSES * n; i++)
            hits->cycles[(sm * L2_PASSES + i / n) * n + (start + i) % n] =
                samples[i / n].kept[i % n];
        averages[sm] = cycles / AVERAGE_LOADS;
        clocks[sm] = ns > 0 ? cycles / ns : 0;
    }
    hits->average = cpd_median(averages, hits->sms);
    hits->per_ns = cpd_median(clocks, hits->sms);
}

static int measure_hits(struct probe_context *context, struct l2_hits *hits, struct err *err)
{
    const struct device_limits *limits = device_limits(context->device);
    const struct device_array array = hits_array(limits->l2_reported_bytes);
    hits->sms = limits->sm_count < L2_MAP_MAX ? limits->sm_count : L2_MAP_MAX;
    hits->sms = hits->sms ? hits->sms : 1;
    hits->elements = array.size_bytes / array.stride_bytes;
    hits->cycles = mem_array(hits->sms * L2_PASSES * hits->elements, sizeof *hits->cycles);
    struct device_job *jobs = mem_array(hits->sms, sizeof *jobs);
    double *averages = mem_array(2 * hits->sms, sizeof *averages);
    struct device_answer *answers;
    for (size_t sm = 0; sm < hits->sms; sm++)
        jobs[sm] = hits_job(hits, &array, sm);
    int rc = chase_run(context, jobs, hits->sms, 0, &answers, err);
    if (rc)
        goto out;
    take_hits(hits, answers, averages, averages + hits->sms);
    chase_free(answers, hits->sms);
out:
    free(jobs);
    free(averages);
    return rc;
}

static bool is_near(const struct l2_parts *parts, size_t sm, size_t element)
{
    return !parts->count || !parts->part_of_sm ||
           parts->part_of_sm[sm] == parts->home_of_element[element];
}

/* Adds the near hits of an SM in all passes to values. */
static void collect_near(const struct l2_hits *hits, const struct l2_parts *parts, size_t sm,
                         struct l2_values *values)
{
    for (size_t p = 0; p < L2_PASSES; p++)
        for (size_t e = 0; e < hits->elements; e++) {
            if (!is_near(parts, sm, e))
                continue;
            l2_values_add(values, l2_hit(hits, sm, p, e));
        }
}

/* The mean near hit of an SM without spikes: of each pass, and (last) of all. A pass that lies
 * mostly outside the fence is no spike. */
static void near_means(const struct l2_hits *hits, const struct l2_parts *parts, size_t sm,
                       double out_means[L2_PASSES + 1])
{
    struct l2_values own = {0};
    collect_near(hits, parts, sm, &own);
    const struct l2_fence fence = l2_values_fence(&own);
    double all = 0, all_count = 0;
    l2_values_fini(&own);
    for (size_t p = 0; p < L2_PASSES; p++) {
        double sum = 0, count = 0, beyond = 0, beyond_count = 0;
        for (size_t e = 0; e < hits->elements; e++) {
            double cycles = l2_hit(hits, sm, p, e);
            bool inside = cycles >= fence.low && cycles <= fence.high;
            if (!is_near(parts, sm, e))
                continue;
            *(inside ? &sum : &beyond) += cycles;
            *(inside ? &count : &beyond_count) += 1;
        }
        bool displaced = beyond_count > count;
        out_means[p] = displaced ? (sum + beyond) / (count + beyond_count) : sum / count;
        all += sum;
        all_count += count;
    }
    out_means[L2_PASSES] = all / all_count;
}

/* Sets the mean of the median SM, the map of all SMs, and how much the passes differ. out_near: the
 * hits of all SMs, sorted; its old content is released. */
static void set_near(const struct l2_hits *hits, const struct l2_parts *parts, struct l2_study *l2,
                     struct l2_values *out_near)
{
    double passes[L2_PASSES][L2_MAP_MAX], medians[L2_PASSES];
    l2_values_fini(out_near);
    for (size_t sm = 0; sm < hits->sms; sm++) {
        double means[L2_PASSES + 1];
        near_means(hits, parts, sm, means);
        for (size_t p = 0; p < L2_PASSES; p++)
            passes[p][sm] = means[p];
        l2->map[sm] = means[L2_PASSES];
        collect_near(hits, parts, sm, out_near);
    }
    l2_values_sort(out_near);
    for (size_t p = 0; p < L2_PASSES; p++)
        medians[p] = cpd_median(passes[p], hits->sms);
    l2->map_count = (uint32_t)hits->sms;
    l2->near.cycles = cpd_median(l2->map, hits->sms);
    l2->near.spread =
        (cpd_quantile(medians, L2_PASSES, 1) - cpd_quantile(medians, L2_PASSES, 0)) / 2;
    l2->average_cycles = hits->average;
    l2->cycles_per_ns = hits->per_ns;
    l2->level_n = (uint32_t)(hits->sms * L2_PASSES * hits->elements);
}

/* Another part is further away by this share of a near hit, and by this many cycles. */
static const double GAP_SHARE = 0.03, GAP_CYCLES = 4;

/* First looks for copies; if there are none, for homes. near: all hits, sorted. */
static int find_parts(struct probe_context *context, const struct l2_hits *hits, double cycles,
                      const struct l2_values *near, struct l2_parts *parts, struct err *err)
{
    double width = l2_values_quantile(near, 0.95) - l2_values_quantile(near, 0.05);
    parts->confidence = NAN;
    int rc = l2_look_for_copies(context, cycles, width, parts, err);
    if (!rc && !parts->count)
        l2_look_for_homes(hits, fmax(GAP_CYCLES, GAP_SHARE * cycles), parts);
    double step = l2_timer_step(near);
    if (hits->sms < 2)
        snprintf(parts->doubt, sizeof parts->doubt, "there is only one SM to see L2 from");
    else if (!parts->count && !parts->doubt[0] && step > COARSE_CYCLES)
        snprintf(parts->doubt, sizeof parts->doubt,
                 "the timer counts in steps of %.0f cycles: parts that are no further apart look "
                 "like one",
                 step);
    return rc;
}

static void set_parts(const struct l2_parts *parts, size_t sms, struct l2_study *l2)
{
    size_t own = parts->part_of_sm ? parts->part_of_sm[0] : 0, next = 1;
    l2->parts = parts->count ? parts->count : 1;
    l2->copies = parts->count && !parts->part_of_sm;
    l2->parts_confidence = parts->confidence;
    memcpy(l2->doubt, parts->doubt, sizeof l2->doubt);
    l2->far = parts->far;
    l2->levels[0] = l2->near.cycles;
    l2->level_count = 1;
    for (size_t i = 0; i < parts->level_count; i++)
        l2->levels[l2->level_count++] = parts->levels[i];
    l2->part_sms[0] = 0;
    for (size_t part = 0; part < parts->count; part++)
        if (part != own)
            l2->part_sms[next++] = parts->sms[part];
    l2->other_sm = l2->parts > 1 ? l2->part_sms[1] : 0;
    for (size_t sm = 0; parts->count && sm < sms && sm < L2_MAP_MAX; sm++)
        l2->seen_part[sm] = (uint8_t)(parts->part_of_sm  ? parts->part_of_sm[sm] + 1
                                      : parts->seen_part ? parts->seen_part[sm]
                                                         : 0);
}

/* Loads each element once, none in the fetch of another, in memory that no job loaded before. Its
 * pages are touched first, between the elements: address translation is no part of main memory's
 * latency. */
static struct device_job cold_job(uint64_t offset_bytes, int32_t sm)
{
    const struct device_array cold = {.path = DEVICE_GLOBAL_CG,
                                      .offset_bytes = offset_bytes,
                                      .size_bytes = COLD_BYTES,
                                      .stride_bytes = COLD_STRIDE_BYTES};
    struct device_array pages = cold;
    pages.offset_bytes += COLD_STRIDE_BYTES / 2;
    pages.stride_bytes = LARGE_PAGE_BYTES / COLD_STRIDE_BYTES * COLD_STRIDE_BYTES;
    pages.size_bytes = cold.size_bytes / pages.stride_bytes * pages.stride_bytes;
    struct device_job job = chase_job();
    job.cold_l2 = true;
    job.agents[0].sm = sm;
    chase_add(&job, DEVICE_WARM, &pages, 0);
    chase_add(&job, DEVICE_CHASE, &cold, 0)->keep = COLD_ELEMENTS;
    return job;
}

/* groups: every third job's loads. */
static int run_cold(struct probe_context *context, const struct device_job *jobs, size_t count,
                    struct l2_values *all, struct l2_values groups[L2_GROUPS], struct err *err)
{
    struct device_answer *answers;
    int rc = chase_run(context, jobs, count, 0, &answers, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < count; i++)
        for (size_t e = 0; e < COLD_ELEMENTS; e++) {
            double cycles = answers[i].samples[0].kept[e];
            l2_values_add(all, cycles);
            l2_values_add(&groups[i % L2_GROUPS], cycles);
        }
    chase_free(answers, count);
    return 0;
}

static int measure_cold(struct probe_context *context, struct l2_values *all,
                        struct l2_values groups[L2_GROUPS], struct err *err)
{
    int32_t sms[L2_SAMPLE_MAX];
    struct device_job jobs[COLD_MORE];
    size_t known = l2_sample_sms(context, sms);
    const struct device_limits *limits = device_limits(context->device);
    for (size_t i = 0; i < L2_SAMPLE_MAX; i++)
        jobs[i] = cold_job(probe_fresh(context, COLD_BYTES), known ? sms[i % known] : 0);
    int rc = run_cold(context, jobs, L2_SAMPLE_MAX, all, groups, err);
    for (size_t round = 1; round <= COLD_ROUNDS && !rc && !limits->loads_max; round++) {
        uint64_t apart =
            probe_fresh_apart(context, round * COLD_MORE * COLD_BYTES + JOBS * CHASED_BYTES);
        if (!apart)
            break;
        for (size_t i = 0; i < COLD_MORE; i++) {
            jobs[i] = cold_job(apart + i * COLD_BYTES, (int32_t)(i * limits->sm_count / COLD_MORE));
            jobs[i].cold_l2 = i == 0;
        }
        rc = run_cold(context, jobs, COLD_MORE, all, groups, err);
        if (rc == -ENOENT) { /* tests/records has records with one of these rounds, or with none */
            rc = 0;
            break;
        }
    }
    l2_values_sort(all);
    return rc;
}

/* Hits at the lines' homes, as a chase through cold memory meets them: with copies, all timed hits
 * were near. */
static double mean_hit(const struct l2_hits *hits, const struct l2_study *l2, double cap)
{
    double sum = 0, count = 0;
    for (size_t i = 0; i < hits->sms * L2_PASSES * hits->elements; i++)
        if (hits->cycles[i] <= cap) {
            sum += hits->cycles[i];
            count++;
        }
    double far_share = l2->copies ? 1 - 1.0 / l2->parts : 0;
    return sum / count + far_share * (l2->far.cycles - l2->near.cycles);
}

/* Means of everything except interruptions: hits have as many spikes, so that they cancel out. */
static int set_main(struct probe_context *context, const struct l2_hits *hits, struct l2_study *l2,
                    struct l2_values *cold, struct err *err)
{
    struct l2_values groups[L2_GROUPS] = {{0}};
    int rc = measure_cold(context, cold, groups, err);
    double cap = INTERRUPTED * l2_values_quantile(cold, 0.5), low = INFINITY, high = -INFINITY;
    for (size_t g = 0; g < L2_GROUPS; g++) {
        double mean = l2_values_mean_below(&groups[g], cap);
        low = fmin(low, mean);
        high = fmax(high, mean);
        l2_values_fini(&groups[g]);
    }
    if (rc)
        return rc;
    l2->main = (struct l2_latency){l2_values_mean_below(cold, cap), (high - low) / 2};
    l2->penalty.cycles = l2->main.cycles - mean_hit(hits, l2, cap);
    l2->penalty.spread = l2->main.spread;
    l2->single_cycles = mean_hit(hits, &(struct l2_study){0}, cap);
    return 0;
}

/* near, cold: sorted. */
static void set_thresholds(struct l2_study *l2, const struct l2_parts *parts,
                           const struct l2_values *near, const struct l2_values *cold)
{
    const struct l2_values *far = l2->parts > 1 ? &parts->far_loads : near;
    double slowest_hit = l2->levels[l2->level_count - 1];
    double step = l2->level_count > 1 ? l2->levels[1] - l2->levels[0] : 0;
    /* One in `parts` misses goes through the near part; the median of those is the quantile
     * below. */
    double fastest_miss = l2_values_quantile(cold, 0.5 / l2->parts);
    l2->blurred = fastest_miss <= slowest_hit;
    l2->miss_threshold = l2_values_parting(far, cold, slowest_hit, fastest_miss);
    l2->far_threshold = l2->parts > 1 ? l2_values_parting(near, far, l2->near.cycles, l2->levels[1])
                                      : l2->miss_threshold;
    l2->far_miss_threshold = l2->copies ? fastest_miss + step / 2 : l2->miss_threshold;
    /* With copies, the hits of an SM are all near. */
    double far_share = l2->copies ? 0 : 1 - 1.0 / l2->parts;
    l2->hit_stray = (1 - far_share) * l2_values_share_above(near, l2->miss_threshold) +
                    far_share * l2_values_share_above(far, l2->miss_threshold);
    l2->far_slip = l2->copies ? 1 - l2_values_share_above(far, l2->far_threshold) : 0;
    l2->near_stray = l2->copies ? l2_values_share_above(near, l2->far_threshold) : 0;
    l2->miss_slip = 1 - l2_values_share_above(cold, l2->miss_threshold);
}

static int l2_measure_level(struct probe_context *context, struct l2_study *l2, struct err *err)
{
    struct l2_hits hits = {0};
    struct l2_parts parts = {0};
    struct l2_values near = {0}, cold = {0};
    int rc = measure_hits(context, &hits, err);
    if (rc)
        goto out;
    set_near(&hits, &parts, l2, &near);
    rc = find_parts(context, &hits, l2->near.cycles, &near, &parts, err);
    if (rc)
        goto out;
    if (parts.count && parts.part_of_sm) /* the first call took all hits for near ones */
        set_near(&hits, &parts, l2, &near);
    set_parts(&parts, hits.sms, l2);
    rc = set_main(context, &hits, l2, &cold, err);
    if (rc)
        goto out;
    set_thresholds(l2, &parts, &near, &cold);
out:
    free(hits.cycles);
    l2_parts_fini(&parts);
    l2_values_fini(&near);
    l2_values_fini(&cold);
    return rc;
}

/* The fetch unit of L2.
 *
 * A cold chase word by word misses once per fetch unit. In ascending order a prefetch may bring the
 * next units before they are needed, and the unit seems longer; in descending order it does not.
 * The shorter of both is the unit. */

enum { DISTANCES_MAX = 1024 / WORD_BYTES + 1 };

/* How often two misses were so many words apart. */
struct distances {
    uint32_t counts[DISTANCES_MAX], all;
    size_t best; /* the most frequent one; 0: none */
};

static void count_distances(const struct device_sample *sample, double threshold,
                            struct distances *distances)
{
    size_t last = SIZE_MAX;
    for (size_t i = 0; i < sample->kept_count; i++) {
        if (sample->kept[i] <= threshold)
            continue;
        if (last != SIZE_MAX && i - last < DISTANCES_MAX) {
            distances->counts[i - last]++;
            distances->all++;
        }
        last = i;
    }
}

/* A stray latency splits a few of the distances between misses, so the most frequent one counts. */
static int chase_cold(struct probe_context *context, const struct l2_study *l2,
                      enum device_order order, struct distances *out_distances, struct err *err)
{
    struct device_array words = {.path = DEVICE_GLOBAL_CG,
                                 .size_bytes = CHASED_BYTES,
                                 .stride_bytes = WORD_BYTES,
                                 .order = order};
    struct device_job jobs[JOBS];
    struct device_answer *answers;
    bool down = order == DEVICE_DESCENDING;
    for (size_t i = 0; i < JOBS; i++) {
        words.offset_bytes =
            down ? probe_fresh_apart(context, JOBS * CHASED_BYTES) + i * CHASED_BYTES
                 : probe_fresh(context, CHASED_BYTES);
        jobs[i] = chase_job();
        jobs[i].cold_l2 = true;
        struct device_step *step = chase_add(&jobs[i], DEVICE_CHASE, &words, 0);
        step->keep = CHASED_BYTES / WORD_BYTES;
        step->start = down ? CHASED_BYTES / WORD_BYTES - 1 : 0;
    }
    int rc = chase_run(context, jobs, JOBS, 1, &answers, err);
    if (rc)
        return rc;
    struct distances found = {0};
    for (size_t i = 0; i < JOBS; i++)
        count_distances(&answers[i].samples[0], l2->miss_threshold, &found);
    for (size_t d = 0; d < DISTANCES_MAX; d++)
        if (found.counts[d] > found.counts[found.best])
            found.best = d;
    chase_free(answers, JOBS);
    *out_distances = found;
    return 0;
}

/* Stage L2_FETCH. */
static int l2_measure_fetch(struct probe_context *context, struct l2_study *l2, struct err *err)
{
    struct distances up, down = {0};
    int rc = chase_cold(context, l2, DEVICE_SEQUENTIAL, &up, err);
    if (rc)
        return rc;
    rc = chase_cold(context, l2, DEVICE_DESCENDING, &down, err);
    /* h200-full and h200-standard-1 to -4 of tests/records were made without this chase. */
    if (rc && rc != -ENOENT)
        return rc;
    bool shorter = down.best && (!up.best || down.best < up.best);
    const struct distances *found = shorter ? &down : &up;
    if (!found->best)
        return err_set(err, -ENODATA, "a cold word-by-word chase shows no regular misses");
    l2->fetch_bytes = found->best * WORD_BYTES;
    l2->fetch_agreement = (double)found->counts[found->best] / found->all;
    l2->fetch_n = found->all;
    return 0;
}

int l2_reach(struct probe_context *context, enum l2_stage stage, struct err *err)
{
    static int (*const stages[])(struct probe_context *, struct l2_study *, struct err *) = {
        [L2_LEVEL] = l2_measure_level,
        [L2_FETCH] = l2_measure_fetch,
        [L2_CAPACITY] = l2_measure_capacity,
        [L2_LINE] = l2_measure_line,
    };
    struct l2_study *l2 = &context->l2;
    while (l2->stage < stage && !(l2->stage >= L2_CAPACITY && l2->unbounded) &&
           !(l2->stage >= L2_LEVEL && l2->blurred)) {
        int rc = stages[l2->stage + 1](context, l2, err);
        if (rc)
            return rc;
        l2->stage++;
    }
    if (stage > L2_LEVEL && l2->blurred)
        return err_set(err, -ENODATA,
                       "hits of up to %.0f cycles cannot be told from misses of %.0f on average",
                       l2->levels[l2->level_count - 1], l2->main.cycles);
    return 0;
}
