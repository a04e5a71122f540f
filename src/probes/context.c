/* Runs a probe, and gives it what it takes from its context: seeds, fresh memory, repetitions,
 * turns at the host link. */
#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/rng.h"
#include "base/str.h"
#include "probes/probe.h"

enum { FRESH_UNIT = 4096 };

void probe_begin(struct probe_context *context, const char *probe, uint32_t round)
{
    char mark[128];
    context->probe = probe;
    context->round = round;
    context->jobs_drawn = context->analyses_drawn = 0;
    snprintf(mark, sizeof mark, round ? "%s, again %u" : "%s", probe, round);
    device_mark(context->device, mark);
}

int probe_run(const struct probe *probe, struct probe_context *context, struct err *err)
{
    return probe->run_study ? probe->run_study(context, probe->study, err)
                            : probe->run(context, err);
}

static uint64_t base_seed(const struct probe_context *context)
{
    return rng_derive(context->options->seed, context->probe ? context->probe : "", context->round);
}

uint64_t probe_seed(struct probe_context *context)
{
    return rng_derive(base_seed(context), "job", context->jobs_drawn++);
}

uint64_t probe_analysis_seed(struct probe_context *context)
{
    return rng_derive(base_seed(context), "analysis", context->analyses_drawn++);
}

double probe_left_s(const struct probe_context *context)
{
    double ends_s = context->options->ends_s;
    return ends_s > 0 ? ends_s - clock_monotonic_s() : INFINITY;
}

/* The loads of other probes end below this, except for rare large arrays. */
static uint64_t fresh_begins(const struct probe_context *context)
{
    static const uint64_t LEAST = 64 << 20;
    uint64_t bytes = 2 * device_limits(context->device)->l2_reported_bytes;
    return bytes > LEAST ? bytes : LEAST;
}

uint64_t probe_fresh_apart(const struct probe_context *context, uint64_t bytes)
{
    uint64_t end = fresh_begins(context), most = device_limits(context->device)->global_bytes;
    end = most && most < end ? most : end;
    return end > bytes ? (end - bytes) / FRESH_UNIT * FRESH_UNIT : 0;
}

uint64_t probe_fresh(struct probe_context *context, uint64_t bytes)
{
    static const uint64_t FRESH_MAX = UINT64_C(3) << 30;
    const struct device_limits *limits = device_limits(context->device);
    uint64_t behind = fresh_begins(context);
    uint64_t end = behind + FRESH_MAX;
    end = limits->global_bytes && limits->global_bytes < end ? limits->global_bytes : end;
    if (behind + bytes > end)
        return 0;
    if (behind + context->fresh_bytes + bytes > end)
        context->fresh_bytes = 0;
    uint64_t offset = behind + context->fresh_bytes;
    context->fresh_bytes += (bytes + FRESH_UNIT - 1) / FRESH_UNIT * FRESH_UNIT;
    return offset;
}

size_t probe_repeats(const struct probe_context *context, size_t first)
{
    return context->repeating || context->options->profile == PROFILE_QUICK ? 1 : first;
}

/* Confidence of a figure that another GPU's traffic may have changed. */
static const double SHARED_CONFIDENCE = 0.5;

void probe_begin_link(struct probe_context *context)
{
    struct device_link link;
    device_begin_link(context->device, &link);
    context->link.alone &= link.alone;
    context->link.near &= link.near;
}

void probe_end_link(struct probe_context *context)
{
    device_end_link(context->device);
}

static void link_remark(const struct device_link *link, struct measure *measure)
{
    if (!link->near)
        facts_set_text(&measure->notes, "cpus", "not near the GPU");
    if (link->alone)
        return;
    measure->confidence = fmin(measure->confidence, SHARED_CONFIDENCE);
    measure_set_status(measure, MEASURE_NOISY,
                       "another GPU of the node may have used its link at the same time");
}

void probe_remark_link(struct probe_context *context, const char *metric)
{
    for (size_t i = 0; i < context->measures->count; i++) {
        struct measure *measure = &context->measures->items[i];
        if (str_equal(measure->metric, metric) && measure_status_valued(measure->status)) {
            link_remark(&context->link, measure);
            return;
        }
    }
}
