/* Runs a selection of probes on one device. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "probes/probe.h"

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

int probes_run(struct device *device, const struct probe_selection *selection,
               const struct probe_options *options, const struct probe_observer *observer,
               struct measures *measures, struct err *err)
{
    struct probe_context context = {.device = device, .options = options, .measures = measures};
    double sm_mhz;
    if (observer && observer->begin && observer->begin(observer->user, "warm-up"))
        return err_set(err, -ECANCELED, "stopped before the warm-up");
    int rc = device_warm_up(device, &sm_mhz, err);
    for (size_t i = 0; i < selection->count && !rc; i++)
        rc = run_one(&context, probe_table[selection->indices[i]], observer, err);
    return rc;
}
