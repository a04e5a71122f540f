/* Probes run on a simulated GPU that a test describes in a few lines. */
#include "../check.h"

#include "probed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "catalogue/metrics.h"

static const double TOLERANCE = 0.02;

const char probed_plain[] =
    "name: Plain\nsms: 8\nmemory: {size: 1 GiB}\n"
    "clock: {sm_mhz: 1000, idle_mhz: 100, ramp_ms: 1, memory_mhz: 2000}\n"
    "timer: {overhead_cycles: 10}\n"
    "noise: {jitter_cycles: 0.5, spike_rate: 0.0002, spike_cycles: 300, bandwidth: 0.002}\n"
    "caches: {l1: {size: 16 KiB, line: 128, sector: 32, ways: 4}}\n"
    "l2: {size: 1 MiB, line: 128, ways: 16}\n"
    "bandwidth: {sm: 64, l1: 128, shared: 100, l2_read: 400, l2_write: 300, main_read: 200,"
    " main_write: 180, main_copy: 160, h2d: 24, d2h: 22, bidir: 40}\n"
    "paths: {global_ca: [l1: 30, l2: 200, main: 500], global_cg: [l2: 200, main: 500],"
    " shared: 20, host: 1000}\n";

struct measures probed_run(const struct probed *probed)
{
    struct sim_model *model = NULL;
    struct device *device = NULL;
    struct probe_selection selection = {0};
    struct measures measures = {0};
    struct err err = {0};
    const struct probe_options options = {
        .profile = probed->profile,
        .seed = 5,
        .region_bytes = probed->region_bytes,
        .ends_s = probed->limit_s > 0 ? clock_monotonic_s() + probed->limit_s : 0};
    if (sim_model_read_text(probed->model, strlen(probed->model), "model", &model, &err) ||
        sim_open(model, &probed->fault, probed->faulty, 5, &device, &err) ||
        probes_select(probed->profile, probed->list, &selection, &err))
        fail_msg("line %d: %s", err.line, err.text);
    if (probed->prepare)
        probed->prepare(device);
    if (probes_run(device, &selection, &options, NULL, &measures, &err))
        fail_msg("%s", err.text);
    for (size_t i = 0; i < measures.count; i++)
        if (metric_is_name("", measures.items[i].unit) &&
            !metric_is_name(measures.items[i].metric, NULL))
            fail_msg("%s has the unit \"id\", its row not", measures.items[i].metric);
    free(selection.indices);
    device_destroy(device);
    sim_model_destroy(model);
    return measures;
}

double probed_value(const struct measures *measures, const char *metric)
{
    double value = NAN;
    const struct measure *m = measures_get(measures, metric);
    if (!measures_value(measures, metric, &value))
        fail_msg("%s has no value: %s", metric, m && m->reason ? m->reason : "it is not there");
    return value;
}

void probed_expect(const struct measures *measures, const char *metric, double wanted,
                   const char *what)
{
    const struct measure *m = measures_get(measures, metric);
    if (!m)
        fail_msg("%s: %s is not there", what, metric);
    if (wanted == 0) {
        if (m->status != MEASURE_UNSUPPORTED || !m->reason)
            fail_msg("%s: %s is %s", what, metric, measure_status_name(m->status));
        return;
    }
    double value = probed_value(measures, metric);
    if (m->status != MEASURE_OK || fabs(value - wanted) > TOLERANCE * wanted)
        fail_msg("%s: %s is %g (%s), not %g", what, metric, value, measure_status_name(m->status),
                 wanted);
}
