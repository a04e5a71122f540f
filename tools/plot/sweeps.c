/* The sweeps that are drawn. The probes find size and line; then sizes around what they found are
 * chased as the probes chase them, over a wider range. */
#include "plot.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "probes/cache.h"
#include "probes/chase.h"

enum {
    LOADS_MIN = 512, /* timed per size, as in the probes' sweeps */
    L2_POINTS = 36,
    L2_LOADS = 2048,
};

/* The range drawn, as shares of the size. */
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

static double overhead_of(const struct probe_context *context)
{
    return device_limits(context->device)->timer_overhead_cycles;
}

static void add_level(struct plot *plot, const char *label, double cycles)
{
    plot->levels[plot->level_count++] = (struct plot_level){label, cycles};
}

static void add_mark(struct plot *plot, const char *what, double bytes)
{
    char size[PLOT_TEXT_MAX];
    struct plot_mark *mark = &plot->marks[plot->mark_count++];
    plot_format_bytes(size, bytes);
    snprintf(mark->label, sizeof mark->label, "%s: %.30s", what, size);
    mark->bytes = bytes;
}

/* A mark for a metric that has a value. */
static void mark_metric(struct plot *plot, const struct measures *measures, const char *metric,
                        const char *what)
{
    double bytes;
    if (measures_value(measures, metric, &bytes))
        add_mark(plot, what, bytes);
}

/* Sizes from low to high in whole units, evenly spread, at most `most` of them. */
static void spread_sizes(struct plot *plot, double low, double high, uint64_t unit, size_t most)
{
    double first = ceil(low / (double)unit), last = floor(high / (double)unit);
    double step = fmax(1, ceil((last - first) / (double)(most - 1)));
    for (double at = first; at <= last && plot->count < most; at += step)
        plot->bytes[plot->count++] = at * (double)unit;
}

static int run_jobs(struct probe_context *context, const struct device_job *jobs, uint32_t at_once,
                    double threshold, struct plot *plot, struct err *err)
{
    struct device_answer *answers;
    int rc = chase_run(context, jobs, plot->count, at_once, &answers, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < plot->count; i++) {
        plot->cycles[i] = mean_cycles(&answers[i].samples[0]) - overhead_of(context);
        plot->slow[i] = chase_share_above(&answers[i].samples[0], threshold);
    }
    device_answers_fini(answers, plot->count);
    free(answers);
    return 0;
}

static int sweep_cache(struct probe_context *context, const struct study *study, struct plot *plot,
                       struct err *err)
{
    uint64_t stride = study->unbounded ? study->fetch_bytes : study->line_bytes;
    double low = CACHE_LOW * study->resident_bytes, high = CACHE_HIGH * study->resident_bytes;
    if (study->unbounded) {
        low = (double)study->floor_bytes;
        high = (double)study->limit_bytes;
    }
    low = fmax(low, (double)study->floor_bytes);
    high = fmin(high, (double)study->limit_bytes);
    spread_sizes(plot, low, high, stride, PLOT_POINTS_MAX);
    struct device_job *jobs = mem_array(plot->count, sizeof *jobs);
    if (!jobs)
        return err_no_memory(err);
    for (size_t i = 0; i < plot->count; i++) {
        const struct device_array array = {
            .path = study->path, .size_bytes = (uint64_t)plot->bytes[i], .stride_bytes = stride};
        jobs[i] = chase_twice(&array, LOADS_MIN);
    }
    int rc = run_jobs(context, jobs, study->at_once, study->threshold, plot, err);
    free(jobs);
    return rc;
}

static void mark_cache(const struct probe_context *context, const struct study *study,
                       struct plot *plot)
{
    char metric[PLOT_TEXT_MAX];
    if (study->unbounded) {
        add_mark(plot, "no change point up to the end of the memory",
                 (double)study->region_high_bytes);
        return;
    }
    snprintf(metric, sizeof metric, "%s.reach", study_name(study->id));
    mark_metric(plot, context->measures, metric, "change point of the sweep");
    add_mark(plot, "resident share", study->resident_bytes);
}

int plot_cache(struct probe_context *context, enum study_id id, struct plot *out_plot,
               struct err *err)
{
    const struct study *study = &context->studies[id];
    double overhead = overhead_of(context);
    struct plot plot = {0};
    int rc = cache_report_size(context, id, err);
    if (rc)
        return rc;
    if (!study->supported)
        return err_set(err, -ENODATA, "the GPU has no such cache");
    rc = sweep_cache(context, study, &plot, err);
    if (rc)
        return rc;
    mark_cache(context, study, &plot);
    add_level(&plot, "hit", study->hit_cycles - overhead);
    add_level(&plot, "miss", study->miss_cycles - overhead);
    *out_plot = plot;
    return 0;
}

/* "Fill with all warps, then time a random sample of what was filled first by one thread." */
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

static int sweep_l2(struct probe_context *context, struct plot *plot, struct err *err)
{
    const struct l2_study *l2 = &context->l2;
    struct device_job jobs[L2_POINTS];
    spread_sizes(plot, L2_LOW * l2->resident_bytes, L2_HIGH * l2->resident_bytes, l2->line_bytes,
                 L2_POINTS);
    for (size_t i = 0; i < plot->count; i++)
        jobs[i] = l2_job(context, (uint64_t)plot->bytes[i], l2->line_bytes);
    return run_jobs(context, jobs, 1, l2->far_threshold, plot, err);
}

int plot_l2(struct probe_context *context, struct plot *out_plot, struct err *err)
{
    const struct l2_study *l2 = &context->l2;
    double overhead = overhead_of(context);
    struct plot plot = {0};
    int rc = probe_l2_size.run(context, err);
    if (rc)
        return rc;
    if (l2->unbounded)
        return err_set(err, -ENODATA, "L2 could not be overfilled");
    rc = sweep_l2(context, &plot, err);
    if (rc)
        return rc;
    mark_metric(&plot, context->measures, "l2.step_half", "first step");
    mark_metric(&plot, context->measures, "l2.step_whole", "second step");
    add_mark(&plot, "resident share", l2->resident_bytes);
    add_level(&plot, "near", l2->near.cycles - overhead);
    if (l2->parts > 1)
        add_level(&plot, "far", l2->far.cycles - overhead);
    add_level(&plot, "main", l2->main.cycles - overhead);
    *out_plot = plot;
    return 0;
}
