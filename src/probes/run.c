/* Runs a selection of probes on one device.
 *
 * Judged figures are measured three times, before everything else, in the middle and at the end, so
 * that a drift shows in their spread. What was measured several times is merged into one figure
 * each. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"
#include "catalogue/metrics.h"
#include "cpd/cpd.h"
#include "probes/method/repeats.h"
#include "probes/method/timer.h"
#include "probes/probe.h"
#include "probes/sums.h"

/* A judged figure is measured this often: at the beginning, in the middle and at the end. */
enum { ROUNDS = 3 };

/* Zero-initialised is empty. */
struct rounds {
    struct round_values *items;
    size_t count, capacity;
};

/* Merges what was measured several times in a run into one figure each. */

enum { REASON_MAX = 240 };

struct round_values {
    const char *metric; /* the probe table's */
    double within;      /* the probe's */
    bool highest;       /* the probe's */
    double values[ROUNDS];
    size_t count;   /* of values, without that of the first round */
    bool confirm;   /* the values only confirm that of the first round */
    uint32_t n;     /* samples behind them */
    size_t without; /* rounds that gave no value */
    char *reason;   /* NULL, or why the first of those did not */
};

/* Bounds, names and missing values cannot be averaged: there the result of the first round
 * stays. */
static bool rounds_is_number(const struct measure *m)
{
    return m && m->kind == MEASURE_NUMBER && measure_status_valued(m->status) &&
           m->bound == MEASURE_EXACT;
}

static struct round_values *values_of(struct rounds *rounds, const struct probe *probe,
                                      const char *metric)
{
    for (size_t i = 0; i < rounds->count; i++)
        if (strcmp(rounds->items[i].metric, metric) == 0)
            return &rounds->items[i];
    struct round_values *grown =
        mem_grow(rounds->items, &rounds->capacity, rounds->count + 1, sizeof *grown);
    rounds->items = grown;
    struct round_values *values = &grown[rounds->count++];
    *values =
        (struct round_values){.metric = metric, .within = probe->within, .highest = probe->highest};
    return values;
}

/* m: the result of this round, NULL for none. A repetition may leave out what is not judged. */
static void rounds_keep(struct rounds *rounds, const struct probe *probe, const char *metric,
                        const struct measure *m, const char *reason)
{
    bool judged = strcmp(metric, probe->description.name) == 0;
    if (m ? metric_is_name(m->metric, m->unit) : !judged)
        return;
    struct round_values *values = values_of(rounds, probe, metric);
    if (rounds_is_number(m) && values->count < ROUNDS - 1) {
        values->values[values->count++] = m->value;
        values->confirm = strcmp(m->method, repeats_confirming) == 0;
        values->n += m->n;
        return;
    }
    values->without++;
    if (!values->reason) {
        values->reason = str_copy(m && m->reason ? m->reason : reason);
        return;
    }
}

/* Runs a probe again. Its results, and missing ones, are kept for the merge. -EIO: the device is
 * unusable. */
static int rounds_repeat(struct rounds *rounds, struct probe_context *context,
                         const struct probe *probe, struct err *err)
{
    struct measures *first = context->measures, own = {0};
    struct err failure = {0};
    context->measures = &own;
    context->repeating = true;
    int rc = probe_run(probe, context, &failure);
    context->measures = first;
    context->repeating = false;
    for (size_t i = 0; i < PROBE_LIST_MAX && probe->metrics[i]; i++)
        if (rounds_is_number(measures_get(first, probe->metrics[i])))
            rounds_keep(rounds, probe, probe->metrics[i], measures_get(&own, probe->metrics[i]),
                        failure.text);
    measures_fini(&own);
    return rc == -EIO ? err_set(err, rc, "%s again: %s", probe->description.name, failure.text) : 0;
}

static void mark_noisy(struct measure *m, const struct round_values *v, const double *all,
                       size_t count)
{
    char reason[REASON_MAX];
    if (v->without)
        snprintf(reason, sizeof reason, "%zu of %d rounds over the run gave no value: %s",
                 v->without, ROUNDS, v->reason ? v->reason : "");
    else
        snprintf(reason, sizeof reason, "over the run it took values from %.6g to %.6g",
                 cpd_quantile(all, count, 0), cpd_quantile(all, count, 1));
    m->confidence = 0.5;
    if (m->status == MEASURE_OK)
        measure_set_status(m, MEASURE_NOISY, reason);
}

static void merge_one(struct measure *m, const struct round_values *v)
{
    double all[ROUNDS] = {m->value};
    size_t count = 1;
    for (size_t i = 0; i < v->count; i++)
        all[count++] = v->values[i];
    double range = repeats_half_range(all, count);
    if (!v->confirm)
        m->value = cpd_quantile(all, count, v->highest ? 1 : 0.5);
    m->spread = fmax(m->spread, range);
    m->n += v->n;
    if (!measure_is_reported(m))
        m->confidence = fmin(m->confidence, repeats_confidence(m->value, m->spread));
    if (v->without || range > v->within * fabs(m->value))
        mark_noisy(m, v, all, count);
    measure_round(m);
}

/* Merges into the measures of the first round: the median or the highest (not of rounds that only
 * confirm), a spread that covers all rounds, and the sum of their samples; noisy if they disagree.
 */
static void rounds_merge(const struct rounds *rounds, struct measures *measures)
{
    for (size_t i = 0; i < measures->count; i++)
        for (size_t k = 0; k < rounds->count; k++) {
            if (strcmp(measures->items[i].metric, rounds->items[k].metric) != 0)
                continue;
            merge_one(&measures->items[i], &rounds->items[k]);
        }
}

static void rounds_fini(struct rounds *rounds)
{
    for (size_t i = 0; i < rounds->count; i++)
        free(rounds->items[i].reason);
    free(rounds->items);
    *rounds = (struct rounds){0};
}

/* Metrics that a failed probe did not report are added as failed, never left out. */
static void mark_failed(const struct probe *probe, struct measures *measures, const char *reason)
{
    for (size_t i = 0; i < PROBE_LIST_MAX && probe->metrics[i]; i++) {
        if (probe_entry_is_group(probe->metrics[i]) || measures_get(measures, probe->metrics[i]))
            continue;
        measures_add_missing(measures, probe->metrics[i], MEASURE_FAILED, reason);
    }
}

/* False if the GPU can measure none of the probe's metrics. */
static bool run_is_of_use(const struct probe_context *context, const struct probe *probe)
{
    for (size_t i = 0; i < PROBE_LIST_MAX && probe->metrics[i]; i++)
        if (!probe_unmeasurable(context->options->config, probe->metrics[i]))
            return true;
    return false;
}

/* What a GPU of this kind cannot measure is reported as such, also if there is a number. For a
 * probe that did not run, its first metric says so, as that of probes that the GPU does not
 * support. */
static void mark_unmeasurable(struct probe_context *context, const struct probe *probe, bool ran)
{
    for (size_t i = 0; i < (ran ? PROBE_LIST_MAX : 1) && probe->metrics[i]; i++) {
        const char *reason = probe_unmeasurable(context->options->config, probe->metrics[i]);
        if (reason && !probe_entry_is_group(probe->metrics[i]))
            measures_add_missing(context->measures, probe->metrics[i], MEASURE_UNSUPPORTED, reason);
    }
}

static int run_probe(struct probe_context *context, const struct probe *probe,
                     const struct probe_observer *observer, struct err *err)
{
    const char *name = probe->description.name;
    struct err own = {0};
    if (observer && observer->begin && observer->begin(observer->user, name))
        return err_set(err, -ECANCELED, "stopped before %s", name);
    double start_s = clock_monotonic_s();
    probe_begin(context, name, 0);
    bool of_use = run_is_of_use(context, probe);
    int rc = of_use ? probe_run(probe, context, &own) : 0;
    for (size_t i = 0; i < context->measures->count; i++)
        measure_round(&context->measures->items[i]);
    if (rc)
        mark_failed(probe, context->measures, own.text);
    mark_unmeasurable(context, probe, of_use);
    double elapsed_s = clock_monotonic_s() - start_s;
    if (observer && observer->end &&
        observer->end(observer->user, name, context->measures, elapsed_s))
        return err_set(err, -ECANCELED, "stopped after %s", name);
    if (rc == -EIO)
        return err_set(err, rc, "%s: %s", name, own.text);
    return 0;
}

static int repeat_one(struct probe_context *context, const struct probe *probe, uint32_t round,
                      const struct probe_observer *observer, struct rounds *rounds, struct err *err)
{
    const char *name = probe->description.name;
    if (observer && observer->begin && observer->begin(observer->user, name))
        return err_set(err, -ECANCELED, "stopped before repeating %s", name);
    probe_begin(context, name, round);
    return rounds_repeat(rounds, context, probe, err);
}

/* The selection in three lists: judged probes with their dependencies, those that come last, and
 * all others. Each keeps its order. */
struct plan {
    const struct probe **judged, **others, **last;
    size_t judged_count, other_count, last_count;
};

static bool depends_on(const struct probe *probe, const struct probe *needed)
{
    for (size_t i = 0; i < PROBE_LIST_MAX && probe->depends[i]; i++)
        if (strcmp(probe->depends[i], needed->description.name) == 0)
            return true;
    return false;
}

/* The dependencies of a probe stand before it in the selection, so this goes from the end to the
 * beginning. From a record, only the probes that it was made with are taken. */
static void run_make_plan(struct device *device, const struct probe_selection *selection,
                          struct plan *plan)
{
    size_t count = selection->count;
    bool *early = mem_array(count, sizeof *early);
    plan->judged = mem_array(count, sizeof *plan->judged);
    plan->others = mem_array(count, sizeof *plan->others);
    plan->last = mem_array(count, sizeof *plan->last);
    for (size_t i = count; i-- > 0;) {
        const struct probe *probe = probe_table[selection->indices[i]];
        early[i] = probe->again;
        for (size_t k = i + 1; k < count; k++)
            early[i] =
                early[i] || (early[k] && depends_on(probe_table[selection->indices[k]], probe));
    }
    for (size_t i = 0; i < count; i++) {
        const struct probe *probe = probe_table[selection->indices[i]];
        if (!device_knows(device, probe->description.name))
            continue;
        if (probe->last)
            plan->last[plan->last_count++] = probe;
        else if (early[i])
            plan->judged[plan->judged_count++] = probe;
        else
            plan->others[plan->other_count++] = probe;
    }
    free(early);
}

static int run_round(struct probe_context *context, const struct plan *plan, int round,
                     const struct probe_observer *observer, struct rounds *rounds, struct err *err)
{
    size_t parts = ROUNDS - 1; /* the other probes run between two rounds */
    for (size_t i = 0; i < plan->judged_count; i++) {
        int rc = 0;
        if (round == 0)
            rc = run_probe(context, plan->judged[i], observer, err);
        else if (plan->judged[i]->again)
            rc = repeat_one(context, plan->judged[i], (uint32_t)round, observer, rounds, err);
        if (rc)
            return rc;
    }
    size_t from = (size_t)round * plan->other_count / parts;
    size_t to = (size_t)(round + 1) * plan->other_count / parts;
    for (size_t i = from; i < to && i < plan->other_count; i++) {
        int rc = run_probe(context, plan->others[i], observer, err);
        if (rc)
            return rc;
    }
    return 0;
}

/* Its place in the table: results are in this order, whenever they were measured. */
static size_t run_place_of(const struct measure *m)
{
    for (size_t i = 0; probe_table[i]; i++)
        for (size_t k = 0; k < PROBE_LIST_MAX && probe_table[i]->metrics[k]; k++)
            if (probe_entry_is(probe_table[i]->metrics[k], m->metric))
                return i * PROBE_LIST_MAX + k;
    return SIZE_MAX;
}

static int compare_places(const void *a, const void *b)
{
    size_t x = run_place_of(a), y = run_place_of(b);
    return (x > y) - (x < y);
}

/* A replay runs the probes of its record. A probe that was requested by name but is not in the
 * record is reported. */
static void run_report_absent(struct device *device, const struct probe_selection *selection,
                              struct measures *measures)
{
    for (size_t i = 0; i < selection->count; i++) {
        const struct probe *probe = probe_table[selection->indices[i]];
        if (!selection->named[selection->indices[i]] ||
            device_knows(device, probe->description.name))
            continue;
        for (size_t k = 0; k < PROBE_LIST_MAX && probe->metrics[k]; k++)
            if (!probe_entry_is_group(probe->metrics[k]))
                measures_add_missing(measures, probe->metrics[k], MEASURE_FAILED,
                                     "the record was made without this probe");
    }
}

int probes_run(struct device *device, const struct probe_selection *selection,
               const struct probe_options *options, const struct probe_observer *observer,
               struct measures *measures, struct err *err)
{
    struct probe_context context = {.device = device, .options = options, .measures = measures};
    struct rounds rounds = {0};
    struct plan plan = {0};
    double sm_mhz;
    if (observer && observer->begin && observer->begin(observer->user, "warm-up"))
        return err_set(err, -ECANCELED, "stopped before the warm-up");
    device_mark(device, "warm-up");
    int rc = device_warm_up(device, &sm_mhz, err);
    /* -ENOENT: another warm-up than the record's; its GPU was warm, and only probes that miss their
     * own requests fail. -ETIMEDOUT: the clock does not settle; that shows in clock.sm, and is what
     * a survey looks for. */
    if (rc == -ENOENT || rc == -ETIMEDOUT)
        rc = 0;
    if (rc)
        goto out;
    rc = timer_calibrate(&context, err);
    if (rc)
        goto out;
    run_make_plan(device, selection, &plan);
    for (int round = 0; round < ROUNDS && !rc; round++)
        rc = run_round(&context, &plan, round, observer, &rounds, err);
    for (size_t i = 0; i < plan.last_count && !rc; i++)
        rc = run_probe(&context, plan.last[i], observer, err);
    if (rc)
        goto out;
    rounds_merge(&rounds, measures);
    sums_check(measures);
    run_report_absent(device, selection, measures);
out:
    if (measures->count)
        sort_stable(measures->items, measures->count, sizeof *measures->items, compare_places);
    free(plan.judged);
    free(plan.others);
    free(plan.last);
    rounds_fini(&rounds);
    return rc;
}
