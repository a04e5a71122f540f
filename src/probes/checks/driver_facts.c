/* The probes of what only the driver knows, sizes of main and shared memory and the memory clock,
 * and of the SM clock that runs. */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "device/device.h"
#include "inventory/throttle.h"
#include "probes/method/chase.h"
#include "probes/method/repeats.h"
#include "schema/facts.h"

/* Sets `throttle`: "none", or the names of the reasons; unknown if the driver does not tell. */
static void throttle_note(struct facts *notes, const struct device_clocks *clocks)
{
    if (!clocks->throttle_known) {
        facts_set_unknown(notes, "throttle", "the driver does not tell");
        return;
    }
    struct strbuf text = {0};
    throttle_put_text(clocks->throttle_reasons, &text);
    facts_set_text(notes, "throttle", text.data);
    strbuf_fini(&text);
}

/* A number from the driver's hardware facts; -1 if it is not known. */
static int driver_read_hardware(struct probe_context *context, const char *key, int64_t *out_value,
                                struct err *err)
{
    struct facts hardware = {0}, board = {0}, config = {0};
    int rc = device_identify(context->device, &hardware, &board, &config, err);
    if (!rc)
        *out_value = facts_int(&hardware, key, -1);
    facts_fini(&hardware);
    facts_fini(&board);
    facts_fini(&config);
    return rc;
}

static int run_main_size(struct probe_context *context, struct err *err)
{
    int64_t bytes;
    uint64_t usable = device_limits(context->device)->global_bytes;
    int rc = driver_read_hardware(context, "memory_bytes", &bytes, err);
    if (rc)
        return rc;
    if (bytes < 0) {
        repeats_unsupported(context, "main.size", "the driver does not tell it");
        return 0;
    }
    struct measure *m =
        measures_add(context->measures, "main.size", (double)bytes, "B", measure_reported);
    facts_set_int(&m->notes, "reported", bytes);
    if (usable)
        facts_set_int(&m->notes, "used_by_probes", (int64_t)usable);
    return 0;
}

/* A block with all the shared memory that the driver reports must run. */
static int run_largest_block(struct probe_context *context, uint64_t bytes, struct err *err)
{
    const struct device_array word = {.path = DEVICE_GLOBAL_CG, .size_bytes = 8, .stride_bytes = 8};
    struct device_job job = chase_job();
    struct device_answer *answers;
    chase_add(&job, DEVICE_CHASE, &word, 1);
    job.shared_bytes = bytes;
    int rc = chase_run(context, &job, 1, 1, &answers, err);
    if (rc)
        return rc;
    chase_free(answers, 1);
    return 0;
}

static int report_block_size(struct probe_context *context, struct err *err)
{
    static const char metric[] = "shared.size";
    uint64_t bytes = device_limits(context->device)->shared_bytes_max;
    struct err own = {0};
    int64_t reported;
    int rc = driver_read_hardware(context, "shared_per_block_bytes", &reported, err);
    if (rc)
        return rc;
    if (!bytes) {
        repeats_unsupported(context, metric, "a block has no shared memory");
        return 0;
    }
    rc = run_largest_block(context, bytes, &own);
    if (rc)
        return repeats_end(context, metric, rc, &own, err);
    struct measure *m =
        measures_add(context->measures, metric, (double)bytes, "B", "a block that uses it all ran");
    if (reported >= 0)
        facts_set_int(&m->notes, "reported", reported);
    return 0;
}

/* The shared memory of all blocks of an SM together, with what the system reserves per block. */
static int report_sm_size(struct probe_context *context, struct err *err)
{
    static const char metric[] = "shared.size_per_sm";
    int64_t bytes;
    int rc = driver_read_hardware(context, "shared_per_sm_bytes", &bytes, err);
    if (rc)
        return rc;
    if (bytes <= 0) {
        repeats_unsupported(context, metric, "the driver does not tell it");
        return 0;
    }
    struct measure *m =
        measures_add(context->measures, metric, (double)bytes, "B", measure_reported);
    facts_set_int(&m->notes, "reported", bytes);
    return 0;
}

static int run_shared_size(struct probe_context *context, struct err *err)
{
    int rc = report_block_size(context, err);
    return rc ? rc : report_sm_size(context, err);
}

static int run_memory_clock(struct probe_context *context, struct err *err)
{
    struct device_clocks clocks;
    struct err own = {0};
    int rc = device_read_clocks(context->device, &clocks, &own);
    if (rc)
        return repeats_end(context, "clock.memory", rc, &own, err);
    if (clocks.memory_mhz < 0) {
        repeats_unsupported(context, "clock.memory", "the driver does not tell it");
        return 0;
    }
    struct measure *m =
        measures_add(context->measures, "clock.memory", clocks.memory_mhz, "MHz", measure_reported);
    throttle_note(&m->notes, &clocks);
    return 0;
}

const struct probe probe_main_size = {
    .description = {"main.size", "size of main memory as the driver reports it", PROFILE_QUICK},
    .metrics = {"main.size"},
    .run = run_main_size,
};

const struct probe probe_shared_size = {
    .description = {"shared.size", "shared memory that a block can use, and that of an SM",
                    PROFILE_QUICK},
    .metrics = {"shared.size", "shared.size_per_sm"},
    .run = run_shared_size,
};

const struct probe probe_clock_memory = {
    .description = {"clock.memory", "memory clock as the driver reports it", PROFILE_QUICK},
    .metrics = {"clock.memory"},
    .run = run_memory_clock,
};

/* The probe of the SM clock under load. */

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
    chase_free(answers, count);
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

static void sm_clock_report(struct probe_context *context, const double *mhz, size_t count,
                            const struct device_clocks *clocks)
{
    struct measure *m =
        repeats_add(context, METRIC, mhz, count, "MHz", "cycles over time, all SMs busy");
    throttle_note(&m->notes, clocks);
    if (clocks->sm_mhz < 0) {
        repeats_unsupported(context, REPORTED, "the driver does not tell it");
        return;
    }
    facts_set_real(&m->notes, "reported", clocks->sm_mhz);
    m = measures_add(context->measures, REPORTED, clocks->sm_mhz, "MHz", measure_reported);
}

static int sm_clock_run(struct probe_context *context, struct err *err)
{
    const struct device_array array = {
        .path = DEVICE_GLOBAL_CA, .size_bytes = ARRAY_BYTES, .stride_bytes = STRIDE_BYTES};
    uint32_t sms = device_limits(context->device)->sm_count;
    size_t count = sms ? sms : 1;
    struct device_clocks clocks = {.sm_mhz = -1, .memory_mhz = -1};
    double mhz[REPEATS];
    struct device_job *jobs = mem_array(count, sizeof *jobs);
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
    if (mhz[0] <= 0) {
        repeats_unsupported(context, METRIC, "the device has no real-time clock");
        return 0;
    }
    sm_clock_report(context, mhz, repeats, &clocks);
    return 0;
}

const struct probe probe_clock_sm = {
    .description = {"clock.sm", "SM clock reached while all SMs work", PROFILE_QUICK},
    .metrics = {"clock.sm", "clock.sm_reported"},
    .again = true,
    .within = 0.03,
    .run = sm_clock_run,
};
