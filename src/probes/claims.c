/* The probes of what only the driver knows: sizes of main and shared memory, the memory clock. */
#include <errno.h>
#include <stdlib.h>

#include "probes/chase.h"
#include "probes/repeats.h"
#include "probes/throttle.h"

/* Nothing but the driver's word stands behind these. */
static const double CLAIM_CONFIDENCE = 0.5;
static const char METHOD[] = "reported";

static struct measure *add_claim(struct probe_context *context, const char *metric, double value,
                                 const char *unit)
{
    struct measure *m = measures_add(context->measures, metric, value, unit, METHOD);
    if (m) {
        m->n = 1;
        m->confidence = CLAIM_CONFIDENCE;
    }
    return m;
}

/* A number among what the driver tells of the hardware; -1 where it does not. */
static int read_hardware(struct probe_context *context, const char *key, int64_t *out_value,
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
    int rc = read_hardware(context, "memory_bytes", &bytes, err);
    if (rc)
        return rc;
    if (bytes < 0)
        return repeats_unsupported(context, "main.size", "the driver does not tell it", err);
    struct measure *m = add_claim(context, "main.size", (double)bytes, "B");
    if (!m || facts_set_int(&m->notes, "reported", bytes) ||
        (usable && facts_set_int(&m->notes, "used_by_probes", (int64_t)usable)))
        return err_no_memory(err);
    return 0;
}

/* A block with all the shared memory that the driver reports must run. */
static int run_shared_size(struct probe_context *context, struct err *err)
{
    uint64_t bytes = device_limits(context->device)->shared_bytes_max;
    const struct device_array word = {.path = DEVICE_GLOBAL_CG, .size_bytes = 8, .stride_bytes = 8};
    struct device_job job = chase_job();
    struct device_answer *answers;
    struct err own = {0};
    int64_t reported;
    int rc = read_hardware(context, "shared_per_block_bytes", &reported, err);
    if (rc)
        return rc;
    if (!bytes)
        return repeats_unsupported(context, "shared.size", "a block has no shared memory", err);
    chase_add(&job, DEVICE_CHASE, &word, 1);
    job.shared_bytes = bytes;
    rc = chase_run(context, &job, 1, 1, &answers, &own);
    if (rc)
        return repeats_end(context, "shared.size", rc, &own, err);
    device_answers_fini(answers, 1);
    free(answers);
    struct measure *m = measures_add(context->measures, "shared.size", (double)bytes, "B",
                                     "a block that uses it all ran");
    if (!m || (reported >= 0 && facts_set_int(&m->notes, "reported", reported)))
        return err_no_memory(err);
    m->n = 1;
    m->confidence = 0.99;
    return 0;
}

static int run_memory_clock(struct probe_context *context, struct err *err)
{
    struct device_clocks clocks;
    struct err own = {0};
    int rc = device_read_clocks(context->device, &clocks, &own);
    if (rc)
        return repeats_end(context, "clock.memory", rc, &own, err);
    if (clocks.memory_mhz < 0)
        return repeats_unsupported(context, "clock.memory", "the driver does not tell it", err);
    struct measure *m = add_claim(context, "clock.memory", clocks.memory_mhz, "MHz");
    if (!m || throttle_note(&m->notes, &clocks))
        return err_no_memory(err);
    return 0;
}

const struct probe probe_main_size = {
    .description = {"main.size", "size of main memory as the driver reports it", PROFILE_QUICK},
    .metrics = {"main.size"},
    .run = run_main_size,
};

const struct probe probe_shared_size = {
    .description = {"shared.size", "shared memory that a block can use", PROFILE_QUICK},
    .metrics = {"shared.size"},
    .run = run_shared_size,
};

const struct probe probe_clock_memory = {
    .description = {"clock.memory", "memory clock as the driver reports it", PROFILE_QUICK},
    .metrics = {"clock.memory"},
    .run = run_memory_clock,
};
