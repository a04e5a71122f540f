/* Sweeps sizes around the result of a probe, in the same way as the probe, over a wider range. */
#include "probes/method/curve_note.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "probes/method/chase.h"
#include "probes/method/timer.h"

enum {
    LOADS_MIN = 512, /* timed per size, as in the probes' sweeps */
    L2_POINTS = 36,
    L2_LOADS = 2048,
    METRIC_MAX = 64,
};

/* The range kept, as shares of the size. */
static const double CACHE_LOW = 0.5, CACHE_HIGH = 1.5, L2_LOW = 0.3, L2_HIGH = 1.35;

/* L2: the part of the array that is timed, filled first and evicted first (as in the probe). */
static const double L2_WINDOW = 0.5;

static double mean_cycles(const struct device_sample *sample)
{
    double sum = 0, count = 0;
    for (uint32_t i = 0; i < sample->bin_count; i++) {
        sum += sample->bins[i].count * device_bin_cycles(sample->bins[i].bin);
        count += sample->bins[i].count;
    }
    return count > 0 ? sum / count : NAN;
}

/* Sizes from low to high in whole units, evenly spread, at most `most` of them. */
static void spread_sizes(struct curve *curve, double low, double high, uint64_t unit, size_t most)
{
    double first = ceil(low / (double)unit), last = floor(high / (double)unit);
    double step = fmax(1, ceil((last - first) / (double)(most - 1)));
    for (double at = first; at <= last && curve->count < most; at += step)
        curve->points[curve->count++].bytes = at * (double)unit;
}

static int run_jobs(struct probe_context *context, const struct device_job *jobs, uint32_t at_once,
                    double threshold, struct curve *curve, struct err *err)
{
    double overhead = timer_overhead(context, jobs->steps[0].array.path);
    struct device_answer *answers;
    int rc = chase_run(context, jobs, curve->count, at_once, &answers, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < curve->count; i++) {
        curve->points[i].cycles = mean_cycles(&answers[i].samples[0]) - overhead;
        curve->points[i].missed = chase_share_above(&answers[i].samples[0], threshold);
    }
    device_answers_fini(answers, curve->count);
    free(answers);
    return 0;
}

int curve_sweep_cache(struct probe_context *context, const struct study *study,
                      struct curve *out_curve, struct err *err)
{
    double overhead = timer_overhead(context, study->path);
    uint64_t stride = study->touch_bytes ? study->touch_bytes : study->fetch_bytes;
    double low = CACHE_LOW * study->resident_bytes, high = CACHE_HIGH * study->resident_bytes;
    struct curve curve = {.hit = study->hit_cycles - overhead,
                          .miss = study->miss_cycles - overhead};
    if (study->unbounded) {
        low = (double)study->floor_bytes;
        high = (double)study->limit_bytes;
    }
    low = fmax(low, (double)study->floor_bytes);
    high = fmin(high, (double)study->limit_bytes);
    spread_sizes(&curve, low, high, stride, CURVE_POINTS_MAX);
    struct device_job *jobs = mem_array(curve.count, sizeof *jobs);
    if (!jobs)
        return err_no_memory(err);
    for (size_t i = 0; i < curve.count; i++) {
        const struct device_array array = {.path = study->path,
                                           .size_bytes = (uint64_t)curve.points[i].bytes,
                                           .stride_bytes = stride};
        jobs[i] = chase_twice(&array, LOADS_MIN);
        jobs[i].shared_bytes = study->shared_bytes;
    }
    int rc = run_jobs(context, jobs, study->at_once, study->threshold, &curve, err);
    free(jobs);
    if (rc)
        return rc;
    *out_curve = curve;
    return 0;
}

/* All warps fill L2, then one thread times a random sample of what was filled first. */
static struct device_job l2_job(struct probe_context *context, uint64_t size, uint64_t line)
{
    struct device_array all = {.path = DEVICE_GLOBAL_CG, .size_bytes = size, .stride_bytes = line};
    struct device_array timed = all;
    uint64_t elements = (uint64_t)(L2_WINDOW * (double)(size / line));
    timed.size_bytes = (elements ? elements : 1) * line;
    timed.order = DEVICE_RANDOM;
    timed.seed = probe_seed(context);
    struct device_job job = chase_job();
    job.agents[0].sm = 0;
    job.cold_l2 = true;
    chase_add(&job, DEVICE_FILL, &all, 0);
    chase_add(&job, DEVICE_CHASE, &timed, elements < L2_LOADS ? elements : L2_LOADS);
    return job;
}

int curve_sweep_l2(struct probe_context *context, struct curve *out_curve, struct err *err)
{
    const struct l2_study *l2 = &context->l2;
    double overhead = timer_overhead(context, DEVICE_GLOBAL_CG);
    struct curve curve = {.hit = l2->near.cycles - overhead, .miss = l2->main.cycles - overhead};
    struct device_job jobs[L2_POINTS];
    if (l2->parts > 1)
        curve.far = l2->far.cycles - overhead;
    spread_sizes(&curve, L2_LOW * l2->resident_bytes, L2_HIGH * l2->resident_bytes, l2->line_bytes,
                 L2_POINTS);
    for (size_t i = 0; i < curve.count; i++)
        jobs[i] = l2_job(context, (uint64_t)curve.points[i].bytes, l2->line_bytes);
    int rc = run_jobs(context, jobs, 1, l2->far_threshold, &curve, err);
    if (rc)
        return rc;
    *out_curve = curve;
    return 0;
}

static int add_note(struct probe_context *context, const char *metric, const struct curve *curve,
                    struct err *err)
{
    struct strbuf text = {0};
    for (size_t i = 0; i < context->measures->count; i++) {
        struct measure *m = &context->measures->items[i];
        if (!str_equal(m->metric, metric))
            continue;
        curve_print(curve, &text);
        bool failed = text.failed || facts_set_text(&m->notes, "curve", text.data);
        strbuf_fini(&text);
        return failed ? err_no_memory(err) : 0;
    }
    return 0;
}

int curve_note_cache(struct probe_context *context, const struct study *study, struct err *err)
{
    struct curve curve;
    char metric[METRIC_MAX];
    if (context->options->profile != PROFILE_FULL || context->repeating)
        return 0;
    snprintf(metric, sizeof metric, "%s.size", study_name(study->id));
    int rc = curve_sweep_cache(context, study, &curve, err);
    return rc ? rc : add_note(context, metric, &curve, err);
}

int curve_note_l2(struct probe_context *context, struct err *err)
{
    struct curve curve;
    if (context->options->profile != PROFILE_FULL || context->repeating)
        return 0;
    int rc = curve_sweep_l2(context, &curve, err);
    return rc ? rc : add_note(context, "l2.size", &curve, err);
}
