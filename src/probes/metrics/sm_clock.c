/* The probe of the SM clock under load. */
#include <stdlib.h>

#include "base/mem.h"
#include "probes/method/chase.h"
#include "probes/method/repeats.h"
#include "probes/method/throttle_note.h"

enum {
    REPEATS = 3,
    LOADS = 50000, /* about a millisecond of L1 hits */
    ARRAY_BYTES = 2048,
    STRIDE_BYTES = 128,
};
static const char METRIC[] = "clock.sm", REPORTED[] = "clock.sm_reported";

/* Cycles over real time, of chases on all SMs at once; 0 without a real-time clock. */
static int measure_mhz(struct probe_context *context, const struct device_job *jobs, size_t count,
                       double *out_mhz, struct err *err)
{
    struct device_answer *answers;
    double cycles = 0, ns = 0;
    int rc = chase_run(context, jobs, count, 0, &answers, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < count; i++) {
        cycles += (double)answers[i].samples[0].total_cycles;
        ns += (double)answers[i].samples[0].elapsed_ns;
    }
    *out_mhz = ns > 0 ? cycles / ns * 1e3 : 0;
    device_answers_fini(answers, count);
    free(answers);
    return 0;
}

/* The throttle reasons of all repetitions together, so that none is missed. */
static void join_clocks(struct probe_context *context, struct device_clocks *clocks)
{
    struct device_clocks now;
    struct err ignored = {0};
    if (device_read_clocks(context->device, &now, &ignored))
        return;
    now.throttle_reasons |= clocks->throttle_reasons;
    now.throttle_known |= clocks->throttle_known;
    *clocks = now;
}

static int report(struct probe_context *context, const double *mhz, size_t count,
                  const struct device_clocks *clocks, struct err *err)
{
    struct measure *m =
        repeats_add(context, METRIC, mhz, count, "MHz", "cycles over time, all SMs busy");
    if (!m || throttle_note(&m->notes, clocks) ||
        (clocks->sm_mhz >= 0 && facts_set_real(&m->notes, "reported", clocks->sm_mhz)))
        return err_no_memory(err);
    if (clocks->sm_mhz < 0)
        return repeats_unsupported(context, REPORTED, "the driver does not tell it", err);
    m = measures_add(context->measures, REPORTED, clocks->sm_mhz, "MHz", "reported");
    if (!m)
        return err_no_memory(err);
    m->n = 1;
    m->confidence = 0.5;
    return 0;
}

static int run(struct probe_context *context, struct err *err)
{
    const struct device_array array = {
        .path = DEVICE_GLOBAL_CA, .size_bytes = ARRAY_BYTES, .stride_bytes = STRIDE_BYTES};
    uint32_t sms = device_limits(context->device)->sm_count;
    size_t count = sms ? sms : 1;
    struct device_clocks clocks = {.sm_mhz = -1, .memory_mhz = -1};
    double mhz[REPEATS];
    struct device_job *jobs = mem_array(count, sizeof *jobs);
    if (!jobs)
        return err_no_memory(err);
    for (size_t i = 0; i < count; i++) {
        jobs[i] = chase_job();
        chase_add(&jobs[i], DEVICE_AVERAGE, &array, LOADS);
    }
    int rc = 0;
    size_t repeats = probe_repeats(context, REPEATS);
    for (size_t i = 0; i < repeats && !rc; i++) {
        rc = measure_mhz(context, jobs, count, &mhz[i], err);
        join_clocks(context, &clocks);
    }
    free(jobs);
    if (rc)
        return rc;
    if (mhz[0] <= 0)
        return repeats_unsupported(context, METRIC, "the device has no real-time clock", err);
    return report(context, mhz, repeats, &clocks, err);
}

const struct probe probe_clock_sm = {
    .description = {"clock.sm", "SM clock reached while all SMs work", PROFILE_QUICK},
    .metrics = {"clock.sm", "clock.sm_reported"},
    .again = true,
    .within = 0.03,
    .run = run,
};
