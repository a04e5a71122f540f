/* Runs a selection of probes on one device. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cpd/cpd.h"
#include "probes/probe.h"
#include "probes/repeats.h"

enum { ROUNDS = 3 };

/* What a failed probe did not get to report is there as failed, never left out. */
static int mark_failed(const struct probe *probe, struct measures *measures, const char *reason)
{
    for (size_t i = 0; i < PROBE_LIST_MAX && probe->metrics[i]; i++) {
        if (measures_get(measures, probe->metrics[i]))
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
    int rc = probe->run(context, &own);
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

/* The values of one metric over the run. The first entry keeps status, notes and the rest. */
struct history {
    double values[ROUNDS];
    size_t count;
    uint32_t n; /* samples of all rounds together */
};

static bool is_number(const struct measure *m)
{
    return m->kind == MEASURE_NUMBER && measure_status_valued(m->status) &&
           m->bound == MEASURE_EXACT;
}

/* The median of the rounds, and a spread that covers all of them. */
static void merge(struct measure *into, const struct history *history)
{
    double range = repeats_half_range(history->values, history->count);
    into->value = cpd_median(history->values, history->count);
    into->spread = fmax(into->spread, range);
    into->n = history->n;
    into->confidence = fmin(into->confidence, repeats_confidence(into->value, into->spread));
    measure_round(into);
}

/* One probe again, into measures of its own. What fails this time is left out: the first round
 * stands. */
static int repeat_one(struct probe_context *context, const struct probe *probe, uint32_t round,
                      struct history *histories)
{
    struct measures *first = context->measures, own = {0};
    struct err ignored = {0};
    context->measures = &own;
    probe_begin(context, probe->description.name, round);
    int rc = probe->run(context, &ignored);
    context->measures = first;
    for (size_t i = 0; i < first->count && !rc; i++) {
        const struct measure *m = measures_get(&own, first->items[i].metric);
        if (m && is_number(m) && is_number(&first->items[i])) {
            histories[i].values[histories[i].count++] = m->value;
            histories[i].n += m->n;
        }
    }
    measures_fini(&own);
    return rc == -EIO ? rc : 0;
}

/* Judged figures are measured at three times of the run, so that what drifts shows in the spread:
 * while everything is measured first, and twice after that. */
static int repeat_all(struct probe_context *context, const struct probe_selection *selection,
                      struct err *err)
{
    size_t count = context->measures->count;
    struct history *histories = mem_array(count, sizeof *histories);
    int rc = histories ? 0 : err_no_memory(err);
    context->repeating = true;
    for (size_t i = 0; i < count && !rc; i++)
        histories[i] =
            (struct history){{context->measures->items[i].value}, 1, context->measures->items[i].n};
    for (uint32_t round = 1; round < ROUNDS && !rc; round++)
        for (size_t i = 0; i < selection->count && !rc; i++)
            if (probe_table[selection->indices[i]]->again)
                rc = repeat_one(context, probe_table[selection->indices[i]], round, histories);
    if (rc == -EIO)
        rc = err_set(err, rc, "the device failed while figures were measured again");
    for (size_t i = 0; i < count && !rc; i++)
        if (histories[i].count > 1)
            merge(&context->measures->items[i], &histories[i]);
    free(histories);
    return rc;
}

int probes_run(struct device *device, const struct probe_selection *selection,
               const struct probe_options *options, const struct probe_observer *observer,
               struct measures *measures, struct err *err)
{
    struct probe_context context = {.device = device, .options = options, .measures = measures};
    double sm_mhz;
    if (observer && observer->begin && observer->begin(observer->user, "warm-up"))
        return err_set(err, -ECANCELED, "stopped before the warm-up");
    device_mark(device, "warm-up");
    int rc = device_warm_up(device, &sm_mhz, err);
    if (rc == -ENOENT) /* a record with a shorter one: its GPU was warm */
        rc = 0;
    for (size_t i = 0; i < selection->count && !rc; i++)
        rc = run_one(&context, probe_table[selection->indices[i]], observer, err);
    if (rc || options->profile == PROFILE_QUICK) /* too short to drift: repeats are in the probes */
        return rc;
    if (observer && observer->begin && observer->begin(observer->user, "repetitions"))
        return err_set(err, -ECANCELED, "stopped before the repetitions");
    return repeat_all(&context, selection, err);
}
