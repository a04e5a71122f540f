/* The probes of L2 and what they report. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "probes/caches/l2_capacity.h"
#include "probes/caches/l2_step.h"
#include "probes/caches/sweep.h"
#include "probes/method/repeats.h"
#include "probes/method/timer.h"

enum { REASON_MAX = 160 };

/* The step of the latency and the resident share agree if they differ by no more than this
 * share. */
static const double AGREEMENT = 0.03;

/* Single loads and long chases may differ by this share. */
static const double LATENCY_AGREEMENT = 0.1;

/* If more than this share of loads, one line per page, is slow, capacity and line are uncertain. */
static const double SLOW_PAGES_MAX = 0.02;

/* If bytes / tags is this far from a whole number of fetch units, the line is uncertain. */
static const double LINE_TOSS_UP = 0.35;

/* The evidence for the parts of L2 may be weak. */
static void l2_note_doubt(const struct probe_context *context, struct measure *m)
{
    const char *doubt = context->l2.doubt;
    if (doubt[0])
        measure_set_status(m, MEASURE_NOISY, doubt);
}

static struct measure *add_latency(struct probe_context *context, const char *metric,
                                   const struct l2_latency *latency, const char *method)
{
    const struct l2_study *l2 = &context->l2;
    double cycles = latency->cycles - timer_overhead(context, DEVICE_GLOBAL_CG);
    struct measure *m = measures_add(context->measures, metric, cycles, "cycles", method);
    m->spread = latency->spread;
    m->n = l2->level_n;
    repeats_settle(m);
    if (l2->cycles_per_ns > 0)
        facts_set_real(&m->notes, "ns", cycles / l2->cycles_per_ns);
    return m;
}

/* Latencies without timer overhead. */
static void set_list(const struct probe_context *context, struct measure *m, const char *note,
                     int decimals, const double *cycles, size_t count)
{
    double overhead = timer_overhead(context, DEVICE_GLOBAL_CG);
    double *values = mem_array(count, sizeof *values);
    for (size_t i = 0; i < count; i++)
        values[i] = facts_decimals(cycles[i] - overhead, decimals);
    facts_set_numbers(&m->notes, note, values, count);
    free(values);
}

static void report_near(struct probe_context *context)
{
    const struct l2_study *l2 = &context->l2;
    double overhead = timer_overhead(context, DEVICE_GLOBAL_CG);
    struct measure *near =
        add_latency(context, "l2.latency", &l2->near, "median SM's mean of single near loads");
    set_list(context, near, "map", 1, l2->map, l2->map_count);
    if (l2->parts > 1)
        facts_set_real(&near->notes, "far", l2->far.cycles - overhead);
    double single = l2->single_cycles - overhead;
    if (fabs(single - l2->average_cycles) <= LATENCY_AGREEMENT * single)
        return;
    char reason[REASON_MAX];
    snprintf(reason, sizeof reason,
             "single loads take %.1f cycles after correction, long chases %.1f per load", single,
             l2->average_cycles);
    near->confidence = 0.5;
    measure_set_status(near, MEASURE_NOISY, reason);
}

static void l2_report_penalty(struct probe_context *context)
{
    const struct l2_study *l2 = &context->l2;
    struct measure *m = measures_add(context->measures, "l2.miss_penalty", l2->penalty.cycles,
                                     "cycles", "mean cold load less mean hit at the line's home");
    m->spread = l2->penalty.spread;
    m->n = l2->level_n;
    m->confidence = repeats_confidence(m->value, m->spread);
    l2_note_doubt(context, m);
}

static void report_far(struct probe_context *context)
{
    const struct l2_study *l2 = &context->l2;
    if (l2->parts < 2) {
        bool sure = !l2->doubt[0];
        measures_add_missing(context->measures, "l2.latency_far",
                             sure ? MEASURE_UNSUPPORTED : MEASURE_FAILED,
                             sure ? "all of L2 is equally far from an SM" : l2->doubt);
        return;
    }
    struct measure *m =
        add_latency(context, "l2.latency_far", &l2->far, "mean of single far loads, many SMs");
    set_list(context, m, "levels", 0, l2->levels, l2->level_count);
    l2_note_doubt(context, m);
}

static void report_parts(struct probe_context *context)
{
    const struct l2_study *l2 = &context->l2;
    struct measure *m = measures_add(context->measures, "l2.parts", l2->parts, "",
                                     "groups of SMs that see the same lines near");
    m->n = l2->level_n;
    m->confidence = l2->parts_confidence;
    l2_note_doubt(context, m);
}

static int l2_report_latency(struct probe_context *context, struct err *err)
{
    int rc = l2_reach(context, L2_LEVEL, err);
    if (rc)
        return rc;
    report_near(context);
    report_far(context);
    report_parts(context);
    l2_report_penalty(context);
    return 0;
}

/* In a further round the level is measured again; the other probes keep using what was learnt
 * first. */
static int l2_run_latency(struct probe_context *context, struct err *err)
{
    const struct l2_study known = context->l2;
    if (context->repeating)
        context->l2 = (struct l2_study){0};
    int rc = l2_report_latency(context, err);
    if (context->repeating)
        context->l2 = known;
    return rc;
}

/* The size changes by the same share as the step. */
static int l2_report_size_again(struct probe_context *context, struct err *err)
{
    const struct l2_study *l2 = &context->l2;
    double bytes, step;
    int rc;
    if (l2->step_confirms) {
        rc = l2_confirm_step(context, l2, &l2->whole, &step, err);
        bytes = rc ? 0 : l2->resident_bytes * step / l2->whole.bytes;
    } else {
        rc = l2_confirm_capacity(context, l2, &bytes, err);
    }
    if (rc)
        return rc;
    repeats_confirm(context, "l2.size", bytes, "B", 1);
    return 0;
}

/* Misses that are caused by a TLB: L2 holds those lines or bytes, although they were not
 * counted. */
static void doubt_pages(struct measure *measure, double slow_share)
{
    char reason[REASON_MAX];
    if (!(slow_share > SLOW_PAGES_MAX))
        return;
    snprintf(reason, sizeof reason,
             "%.0f %% of loads of one line per page, all in L2, are slow: a TLB reaches no further",
             100 * slow_share);
    measure->confidence = fmin(measure->confidence, 0.5);
    if (measure->status == MEASURE_OK)
        measure_set_status(measure, MEASURE_NOISY, reason);
}

static int run_line(struct probe_context *context, struct err *err)
{
    const struct l2_study *l2 = &context->l2;
    if (context->repeating && l2->stage >= L2_LINE) {
        uint64_t bytes;
        int rc = l2_confirm_line(context, &context->l2, &bytes, err);
        if (rc)
            return rc;
        repeats_confirm(context, "l2.line", (double)bytes, "B", 1);
        return 0;
    }
    int rc = l2_reach(context, L2_FETCH, err);
    if (rc)
        return rc;
    struct measure *fetch = measures_add(context->measures, "l2.fetch", (double)l2->fetch_bytes,
                                         "B", "cold chase, distance between misses");
    fetch->confidence = l2->fetch_agreement;
    fetch->n = l2->fetch_n;
    uint32_t limit = device_limits(context->device)->l2_fetch_limit_bytes;
    if (limit)
        facts_set_int(&fetch->notes, "driver_limit", limit);
    rc = l2_reach(context, L2_LINE, err);
    if (rc)
        return rc;
    if (l2->unbounded) {
        measures_add_missing(context->measures, "l2.line", MEASURE_FAILED,
                             "L2 could not be overfilled");
        return 0;
    }
    struct measure *line = measures_add(context->measures, "l2.line", (double)l2->line_bytes, "B",
                                        "resident bytes per tag");
    double off = fabs(l2->line_exact - (double)l2->line_bytes) / (double)l2->fetch_bytes;
    line->n = l2->resident_n;
    line->confidence = off < 0.5 ? 1 - off : 0.5;
    if (off > LINE_TOSS_UP)
        measure_set_status(line, MEASURE_NOISY,
                           "bytes per tag lie between two multiples of the fetch unit");
    doubt_pages(line, fmax(l2->slow_pages, l2->slow_tag_pages));
    return 0;
}

static void set_reported(struct probe_context *context, struct measure *size)
{
    uint64_t reported = device_limits(context->device)->l2_reported_bytes;
    if (reported)
        facts_set_int(&size->notes, "reported", (int64_t)reported);
}

static void l2_report_unbounded(struct probe_context *context)
{
    measures_add_missing(context->measures, "l2.part_size", MEASURE_FAILED,
                         "L2 could not be overfilled");
    struct measure *m = measures_add(context->measures, "l2.size", context->l2.resident_bytes, "B",
                                     "resident share");
    m->bound = MEASURE_AT_LEAST;
    m->n = context->l2.resident_n;
    m->confidence = 1;
    set_reported(context, m);
}

/* Without a step nothing confirms the resident share: then there is no size, only the reason. */
static void report_no_step(struct probe_context *context)
{
    char reason[REASON_MAX];
    snprintf(reason, sizeof reason, "no step of the latency near the %.0f B that stay resident",
             context->l2.resident_bytes);
    struct measure *size =
        measures_add_missing(context->measures, "l2.size", MEASURE_FAILED, reason);
    set_reported(context, size);
}

static bool confirms(const struct l2_study *l2, const struct l2_step *whole)
{
    double room = fmax(AGREEMENT * l2->resident_bytes, 3 * l2->resident_error);
    return whole->found && fabs(whole->bytes - l2->resident_bytes) <= room;
}

/* The resident share is the capacity: it repeats within a thousandth (H200), while the step moves
 * by a hundredth, and it does not depend on the replacement policy. The step confirms it; otherwise
 * the status says that it does not. */
static void l2_report_size(struct probe_context *context, const struct l2_step *whole)
{
    double resident = context->l2.resident_bytes;
    if (!whole->found) {
        report_no_step(context);
        return;
    }
    bool agree = confirms(&context->l2, whole);
    context->l2.step_confirms = agree;
    struct measure *size =
        measures_add(context->measures, "l2.size", resident, "B", "resident share, fill+cpd");
    size->n = context->l2.resident_n;
    size->spread = context->l2.resident_error;
    size->confidence = agree ? whole->confidence : 0.5;
    facts_set_int(&size->notes, "by_sweep", llround(whole->bytes));
    facts_set_int(&size->notes, "width", llround(whole->width_bytes));
    facts_set_int(&size->notes, "by_residency", llround(resident));
    char reason[REASON_MAX];
    snprintf(reason, sizeof reason, "loads miss from %.0f B on, %.0f B stay resident", whole->bytes,
             resident);
    if (agree)
        l2_note_doubt(context, size);
    else
        measure_set_status(size, MEASURE_NOISY, reason);
    doubt_pages(size, context->l2.slow_pages);
    set_reported(context, size);
}

/* The step moves by one or two hundredths between repetitions: if it does not confirm the resident
 * share, the median of three counts. */
static int find_whole(struct probe_context *context, struct l2_step *out_step, struct err *err)
{
    struct l2_step steps[3];
    size_t count = 0;
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        int rc = l2_find_step(context, &context->l2, &steps[count], err);
        if (rc)
            return rc;
        if (i == 0 && (!steps[0].found || confirms(&context->l2, &steps[0]))) {
            *out_step = steps[0];
            return 0;
        }
        count += steps[count].found;
    }
    const struct l2_step *middle = &steps[0];
    for (size_t i = 0; i < count; i++) {
        size_t below = 0;
        for (size_t k = 0; k < count; k++)
            below += steps[k].bytes < steps[i].bytes;
        middle = below == count / 2 ? &steps[i] : middle;
    }
    *out_step = *middle;
    return 0;
}

/* The capacity of the parts, each counted from an SM near it. */
static void report_part_size(struct probe_context *context)
{
    const struct l2_study *l2 = &context->l2;
    if (!l2->copies) {
        measures_add_missing(context->measures, "l2.part_size", MEASURE_UNSUPPORTED,
                             l2->parts > 1 ? "an SM's own part keeps no copies of far lines"
                                           : "L2 has one part");
        return;
    }
    struct measure *m =
        measures_add(context->measures, "l2.part_size", l2->near_bytes, "B", "resident share");
    m->n = l2->resident_n;
    m->spread = l2->resident_error;
    m->confidence = repeats_confidence(m->value, m->spread);
    double sizes[L2_PARTS_MAX];
    for (uint32_t i = 0; i < l2->parts; i++)
        sizes[i] = round(l2->part_bytes[i]);
    facts_set_numbers(&m->notes, "sizes", sizes, l2->parts);
    l2_note_doubt(context, m);
}

static int run_size(struct probe_context *context, struct err *err)
{
    struct l2_study *l2 = &context->l2;
    struct l2_step whole;
    int rc = l2_reach(context, L2_LINE, err);
    if (rc)
        return rc;
    if (l2->unbounded) {
        l2_report_unbounded(context);
        return 0;
    }
    if (context->repeating)
        return l2_report_size_again(context, err);
    rc = find_whole(context, &whole, err);
    if (rc)
        return rc;
    l2->whole = whole;
    report_part_size(context);
    l2_report_size(context, &whole);
    return sweep_note_l2(context, err);
}

const struct probe probe_l2_latency = {
    .description = {"l2.latency", "latency of L2, near and far, its parts and miss penalty",
                    PROFILE_QUICK},
    .metrics = {"l2.latency", "l2.latency_far", "l2.parts", "l2.miss_penalty"},
    .again = true,
    .within = 0.03,
    .run = l2_run_latency,
};

const struct probe probe_l2_line = {
    .description = {"l2.line", "fetch unit and line of L2", PROFILE_STANDARD},
    .depends = {"l2.latency"},
    .metrics = {"l2.fetch", "l2.line"},
    .again = true,
    .run = run_line,
};

const struct probe probe_l2_size = {
    .description = {"l2.size", "size of L2 and of its parts", PROFILE_STANDARD},
    .depends = {"l2.line"},
    .metrics = {"l2.size", "l2.part_size"},
    .again = true,
    .within = 0.03,
    .run = run_size,
};
