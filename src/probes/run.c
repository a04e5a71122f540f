/* Runs a selection of probes on one device.
 *
 * Judged figures are measured three times, before everything else, in the middle and at the end, so
 * that a drift shows in their spread. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "probes/method/timer.h"
#include "probes/probe.h"
#include "probes/rounds.h"
#include "probes/sums.h"

/* Metrics that a failed probe did not report are added as failed, never left out. */
static int mark_failed(const struct probe *probe, struct measures *measures, const char *reason)
{
    for (size_t i = 0; i < PROBE_LIST_MAX && probe->metrics[i]; i++) {
        if (probe_entry_is_group(probe->metrics[i]) || measures_get(measures, probe->metrics[i]))
            continue;
        if (!measures_add_missing(measures, probe->metrics[i], MEASURE_FAILED, reason))
            return -ENOMEM;
    }
    return 0;
}

static int run_one(struct probe_context *context, const struct probe *probe,
                   const struct probe_observer *observer, struct err *err)
{
    const char *name = probe->description.name;
    struct err own = {0};
    if (observer && observer->begin && observer->begin(observer->user, name))
        return err_set(err, -ECANCELED, "stopped before %s", name);
    double start_s = clock_monotonic_s();
    probe_begin(context, name, 0);
    int rc = probe_run(probe, context, &own);
    for (size_t i = 0; i < context->measures->count; i++)
        measure_round(&context->measures->items[i]);
    if (rc && mark_failed(probe, context->measures, own.text))
        return err_no_memory(err);
    double elapsed_s = clock_monotonic_s() - start_s;
    if (observer && observer->end &&
        observer->end(observer->user, name, context->measures, elapsed_s))
        return err_set(err, -ECANCELED, "stopped after %s", name);
    if (rc == -EIO || rc == -ENOMEM)
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
static int make_plan(struct device *device, const struct probe_selection *selection,
                     struct plan *plan, struct err *err)
{
    size_t count = selection->count;
    bool *early = mem_array(count, sizeof *early);
    plan->judged = mem_array(count, sizeof *plan->judged);
    plan->others = mem_array(count, sizeof *plan->others);
    plan->last = mem_array(count, sizeof *plan->last);
    int rc = early && plan->judged && plan->others && plan->last ? 0 : err_no_memory(err);
    for (size_t i = count; i-- > 0 && !rc;) {
        const struct probe *probe = probe_table[selection->indices[i]];
        early[i] = probe->again;
        for (size_t k = i + 1; k < count; k++)
            early[i] =
                early[i] || (early[k] && depends_on(probe_table[selection->indices[k]], probe));
    }
    for (size_t i = 0; i < count && !rc; i++) {
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
    return rc;
}

static int run_round(struct probe_context *context, const struct plan *plan, int round,
                     const struct probe_observer *observer, struct rounds *rounds, struct err *err)
{
    size_t parts = ROUNDS - 1; /* the other probes run between two rounds */
    for (size_t i = 0; i < plan->judged_count; i++) {
        int rc = 0;
        if (round == 0)
            rc = run_one(context, plan->judged[i], observer, err);
        else if (plan->judged[i]->again)
            rc = repeat_one(context, plan->judged[i], (uint32_t)round, observer, rounds, err);
        if (rc)
            return rc;
    }
    size_t from = (size_t)round * plan->other_count / parts;
    size_t to = (size_t)(round + 1) * plan->other_count / parts;
    for (size_t i = from; i < to && i < plan->other_count; i++) {
        int rc = run_one(context, plan->others[i], observer, err);
        if (rc)
            return rc;
    }
    return 0;
}

/* Its place in the table: results are in this order, whenever they were measured. */
static size_t place_of(const struct measure *m)
{
    for (size_t i = 0; probe_table[i]; i++)
        for (size_t k = 0; k < PROBE_LIST_MAX && probe_table[i]->metrics[k]; k++)
            if (probe_entry_is(probe_table[i]->metrics[k], m->metric))
                return i * PROBE_LIST_MAX + k;
    return SIZE_MAX;
}

static int compare_places(const void *a, const void *b)
{
    size_t x = place_of(a), y = place_of(b);
    return (x > y) - (x < y);
}

/* A replay runs the probes of its record. A probe that was requested by name but is not in the
 * record is reported. */
static int tell_absent(struct device *device, const struct probe_selection *selection,
                       struct measures *measures)
{
    for (size_t i = 0; i < selection->count; i++) {
        const struct probe *probe = probe_table[selection->indices[i]];
        if (!selection->named[selection->indices[i]] ||
            device_knows(device, probe->description.name))
            continue;
        for (size_t k = 0; k < PROBE_LIST_MAX && probe->metrics[k]; k++)
            if (!probe_entry_is_group(probe->metrics[k]) &&
                !measures_add_missing(measures, probe->metrics[k], MEASURE_FAILED,
                                      "the record was made without this probe"))
                return -ENOMEM;
    }
    return 0;
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
    /* -ENOENT: a record with a shorter warm-up; its GPU was warm. -ETIMEDOUT: the clock does not
     * settle; that shows in clock.sm, and is what a survey looks for. */
    if (rc == -ENOENT || rc == -ETIMEDOUT)
        rc = 0;
    if (rc)
        goto out;
    rc = timer_calibrate(&context, err);
    if (rc)
        goto out;
    rc = make_plan(device, selection, &plan, err);
    for (int round = 0; round < ROUNDS && !rc; round++)
        rc = run_round(&context, &plan, round, observer, &rounds, err);
    for (size_t i = 0; i < plan.last_count && !rc; i++)
        rc = run_one(&context, plan.last[i], observer, err);
    if (rc)
        goto out;
    if (rounds_merge(&rounds, measures) || sums_check(measures) ||
        tell_absent(device, selection, measures))
        rc = err_no_memory(err);
out:
    if (measures->count)
        qsort(measures->items, measures->count, sizeof *measures->items, compare_places);
    free(plan.judged);
    free(plan.others);
    free(plan.last);
    rounds_fini(&rounds);
    return rc;
}
